"""What a sitemap's `lastmod` is worth: a claim that a page changed, believed within bounds.

A sitemap (or feed) of the page's own domain tells when the page changed last. That claim *stands*
when the time lies after our last successful visit and not in the future. It ends with the next
visit, whatever that finds.

While a claim stands, the page counts as `CLAIMED_AGE_FACTOR` times as old as it is:

- due: at last success + max(shortest interval, wait / 4), where wait is what was decided at the last
  visit. Only the first claim after a visit moves the due time, so that claims don't add up.
- crawl value: the gain is that of the greater age (`recrawl.frontier.value`).

So a site whose sitemap always says "now" gets its pages visited at most four times as often. Each
such visit that finds nothing new lowers the change rate, from which the next wait follows, up to
the longest interval: what a lie can take shrinks by itself.

As evidence the claim counts only together with a visit: where the visit finds a change, the claim
tells when it was, as a Last-Modified does (`recrawl.rank.change_rate`); where it finds none, the
days count as quiet like any others.
"""

from __future__ import annotations

from datetime import datetime

from recrawl.rank.schedule import IntervalLimits

#: How many times its age a page counts that is said to have changed.
CLAIMED_AGE_FACTOR = 4


def claim_stands(listed_at: datetime | None, last_success_at: datetime | None, now: datetime) -> bool:
    """Whether a listed change lies after the last visit and not in the future."""
    return listed_at is not None and last_success_at is not None and last_success_at < listed_at <= now


def claim_stands_sql(listed_at: str, last_success_at: str, now: str) -> str:
    """SQL of `claim_stands`; BOOLEAN, never NULL."""
    return f"coalesce({last_success_at} < {listed_at} AND {listed_at} <= {now}, false)"


def counted_age_days(age_days: float | None, claimed: bool) -> float | None:
    """The age that a page's gain is reckoned from."""
    return age_days * CLAIMED_AGE_FACTOR if claimed and age_days is not None else age_days


def counted_age_days_sql(age_days: str, claimed: str) -> str:
    """SQL of `counted_age_days`; DOUBLE."""
    return f"(({age_days}) * CASE WHEN {claimed} THEN {CLAIMED_AGE_FACTOR}D ELSE 1D END)"


def due_after_claim(last_success_at: datetime, next_fetch_at: datetime, limits: IntervalLimits) -> datetime:
    """When a page is due that is said to have changed; never later than `next_fetch_at`, whole seconds."""
    wait = (next_fetch_at - last_success_at).total_seconds()
    shorter = max(int(wait // CLAIMED_AGE_FACTOR), round(limits.min_days * 86_400))
    return min(
        next_fetch_at, datetime.fromtimestamp(int(last_success_at.timestamp()) + shorter, last_success_at.tzinfo)
    )


def due_after_claim_sql(last_success_at: str, next_fetch_at: str, limits: IntervalLimits) -> str:
    """SQL of `due_after_claim`; TIMESTAMP."""
    wait = f"(unix_micros({next_fetch_at}) - unix_micros({last_success_at})) / 1000000D"
    shorter = f"greatest(CAST(floor({wait} / {CLAIMED_AGE_FACTOR}) AS BIGINT), {round(limits.min_days * 86_400)}L)"
    return f"least({next_fetch_at}, timestamp_seconds(unix_seconds({last_success_at}) + {shorter}))"
