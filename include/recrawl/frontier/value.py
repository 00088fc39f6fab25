"""Crawl value: what a visit to a page is worth now.

value = importance * gain * quality * listing * priority. For a page known by its last success, the gain is
the marginal freshness of the optimal periodic policy (Cho & Garcia-Molina, "Effective Page Refresh
Policies for Web Crawlers", TODS 2003; Azar et al., PNAS 2018):

    gain(r, age) = (1 - e^(-x) - x * e^(-x)) / r       with x = r * age, in days

For a page never fetched it is the limit of that formula for an age without end, 1 / r with r of
the prior, so that discovery and refresh compare on one scale.

Two factors come from what the site and the page's text say, and are bounded, so that neither a wrong
judgement nor a site that praises itself moves much: quality (0 to 1) gives 0.5 + quality, from 0.5
to 1.5; a sitemap's priority (0 to 1, 0.5 where it says nothing, as sitemaps.org has it) gives
0.75 + priority / 2, from 0.75 to 1.25.

A page of which its sitemap says that it changed after our last visit counts as older than it is
(`recrawl.rank.listed_changes`).
"""

from __future__ import annotations

import math

#: The factor of the least quality; that of the greatest is 1 more. A wrong judgement of a page may
#: halve its value, but must not starve it.
LEAST_QUALITY_FACTOR = 0.5

#: The factor of a page to which its sitemap gives the priority 0; the priority 1 gives 0.5 more.
LEAST_LISTING_FACTOR = 0.75
LISTING_FACTOR_WIDTH = 0.5


def freshness_gain_days(rate_per_day: float, age_days: float | None) -> float:
    """The gain of a visit, in days; between 0 and 1 / rate.

    Args:
        rate_per_day: change rate, positive; the prior's for a page never fetched.
        age_days: days since the last success; None: never fetched. Negative ages count as 0.
    """
    if age_days is None:
        return 1.0 / rate_per_day
    x = rate_per_day * max(age_days, 0.0)
    # -expm1(-x) - x*e^(-x) loses no digits near 0, where 1 - (1 + x)*e^(-x) would.
    return max(0.0, -math.expm1(-x) - x * math.exp(-x)) / rate_per_day


def freshness_gain_days_sql(rate_per_day: str, age_days: str) -> str:
    """SQL of `freshness_gain_days`; DOUBLE; a NULL age means never fetched."""
    x = f"({rate_per_day} * greatest({age_days}, 0D))"
    known = f"greatest(0D, -expm1(-{x}) - {x} * exp(-{x})) / {rate_per_day}"
    return f"CASE WHEN {age_days} IS NULL THEN 1D / {rate_per_day} ELSE {known} END"


def quality_factor(quality: float | None) -> float:
    """The factor of a page's quality (0 to 1): from 0.5 to 1.5; 1 for a middling or unknown one."""
    if quality is None or math.isnan(quality):
        return 1.0
    return LEAST_QUALITY_FACTOR + min(max(quality, 0.0), 1.0)


def quality_factor_sql(quality: str) -> str:
    """SQL of `quality_factor`; DOUBLE."""
    known = f"{LEAST_QUALITY_FACTOR}D + least(greatest(CAST({quality} AS DOUBLE), 0D), 1D)"
    return f"CASE WHEN {quality} IS NULL OR isnan(CAST({quality} AS DOUBLE)) THEN 1D ELSE {known} END"


def listing_factor(priority: float | None) -> float:
    """The factor of what a sitemap gives a page (0 to 1): from 0.75 to 1.25; 1 where it says nothing."""
    if priority is None or math.isnan(priority):
        return 1.0
    return LEAST_LISTING_FACTOR + LISTING_FACTOR_WIDTH * min(max(priority, 0.0), 1.0)


def listing_factor_sql(priority: str) -> str:
    """SQL of `listing_factor`; DOUBLE."""
    bounded = f"least(greatest(CAST({priority} AS DOUBLE), 0D), 1D)"
    known = f"{LEAST_LISTING_FACTOR}D + {LISTING_FACTOR_WIDTH}D * {bounded}"
    return f"CASE WHEN {priority} IS NULL OR isnan(CAST({priority} AS DOUBLE)) THEN 1D ELSE {known} END"


def crawl_value(
    importance: float,
    rate_per_day: float,
    age_days: float | None,
    quality: float | None = None,
    priority: float = 1.0,
    listed_priority: float | None = None,
) -> float:
    """The crawl value, in the unit of `importance` times days.

    Args:
        importance: AOPIC importance, in any fixed unit.
        rate_per_day, age_days: see `freshness_gain_days`.
        quality: of the page, 0 to 1; None: not known.
        priority: a person's factor (override `priority`), not bounded.
        listed_priority: what a sitemap gives the page, 0 to 1; None: nothing.
    """
    said = quality_factor(quality) * listing_factor(listed_priority)
    return importance * freshness_gain_days(rate_per_day, age_days) * said * priority


def crawl_value_sql(
    *,
    importance: str,
    rate: str,
    age_days: str,
    quality: str = "CAST(NULL AS DOUBLE)",
    priority: str = "1D",
    listed_priority: str = "CAST(NULL AS DOUBLE)",
) -> str:
    """SQL of `crawl_value`; DOUBLE."""
    gain = freshness_gain_days_sql(rate, age_days)
    said = f"({quality_factor_sql(quality)}) * ({listing_factor_sql(listed_priority)})"
    return f"(CAST({importance} AS DOUBLE) * ({gain}) * {said} * coalesce({priority}, 1D))"
