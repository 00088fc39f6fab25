"""When a page is due again.

The frontier takes a page when its crawl value w * g(x) / r passes that of the last page that
fitted into the round: mu. Here w is importance times quality, r the change rate, x = r * age and
g(x) = 1 - e^(-x) - x * e^(-x) (Cho & Garcia-Molina, "Effective Page Refresh Policies", TODS 2003;
Azar et al., "Tractable Near-Optimal Policies for Crawling", PNAS 2018). So the page is due at
the x with g(x) = mu * r / w, and asking earlier would only cost a look.

g is the distribution function of Gamma(2, 1); with s = -ln(1 - y) its inverse is
x = -1 - W_-1(-e^(-1-s)). The closed approximation of that branch of Lambert's W by Barry et al.
("Analytical approximations for real values of the Lambert W-function", Math. Comput. Simul. 53,
2000) needs no iteration, so SQL computes the same: the relative error of x is below 3e-4 for
every x in (0, 700] (tested; the jitter is 300 times that).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from recrawl.rank.transitions import (
    OUTCOME_KINDS,
    OutcomeKind,
    outcome_kind_sql,
    succeeded,
    succeeded_sql,
)
from recrawl.tables.vocabulary import Outcome, UrlState

SECONDS_PER_DAY = 86_400

#: First wait after a passing fault (5xx, 429, time-out, robots.txt not to be had); doubles each time.
PASSING_RETRY_DAYS = 1.0 / 24.0

#: Due times are spread by this share either way, or pages found together would stay together.
JITTER_SHARE = 0.1

#: Barry et al. (2000), the constants of the branch W_-1.
_M1, _M2, _M3 = 0.3361, -0.0042, -0.0201

_JITTER_STEPS = 10_007


@dataclass(frozen=True)
class IntervalLimits:
    """The limits of an interval, in days (`rank.*` of the configuration)."""

    first_days: float
    min_days: float
    max_days: float


def optimal_age(level: float) -> float:
    """The x with 1 - e^(-x) - x * e^(-x) = level, relative error below 3e-4; inf from level 1 on, 0 up to level 0."""
    if level <= 0.0:
        return 0.0
    if level >= 1.0:
        return math.inf
    s = -math.log1p(-level)
    tail = 1.0 + _M2 * s * math.exp(_M3 * math.sqrt(s))
    return s + (2.0 / _M1) * (1.0 - 1.0 / (1.0 + _M1 * math.sqrt(s / 2.0) / tail))


def _optimal_age_sql(level: str) -> str:
    s = f"(-log1p(-{level}))"
    tail = f"(1D + ({_M2!r}D) * {s} * exp(({_M3!r}D) * sqrt({s})))"
    return f"({s} + {2.0 / _M1!r}D * (1D - 1D / (1D + {_M1!r}D * sqrt({s} / 2D) / {tail})))"


def _clamp(days: float, low: float, high: float) -> float:
    return min(max(days, low), high)


def policy_interval_days(rate_per_day: float, weight: float, threshold: float | None, limits: IntervalLimits) -> float:
    """Days between visits of a page that answers.

    Args:
        rate_per_day: r, positive (`change_rate`).
        weight: w, importance times quality, in the unit of the frontier's crawl values.
        threshold: mu, crawl value of the last page that fitted; None when all due pages fitted,
            then the interval is the page's own 1 / r.
        limits: the result stays within.
    """
    if threshold is None:
        return _clamp(1.0 / rate_per_day, limits.min_days, limits.max_days)
    if weight <= 0.0 or threshold * rate_per_day >= weight:
        return limits.max_days
    age = optimal_age(threshold * rate_per_day / weight)
    return _clamp(age / rate_per_day, limits.min_days, limits.max_days)


def policy_interval_days_sql(rate_per_day: str, weight: str, threshold: str | None, limits: IntervalLimits) -> str:
    """SQL of `policy_interval_days`; DOUBLE. `threshold`: an expression, or None for no threshold."""
    low, high = f"{limits.min_days!r}D", f"{limits.max_days!r}D"
    if threshold is None:
        return f"least(greatest(1D / {rate_per_day}, {low}), {high})"
    level = f"greatest(0D, {threshold} * {rate_per_day} / {weight})"
    interval = f"least(greatest({_optimal_age_sql(level)} / {rate_per_day}, {low}), {high})"
    worthless = f"coalesce({weight}, 0D) <= 0D OR {threshold} * {rate_per_day} >= {weight}"
    return f"CASE WHEN {worthless} THEN {high} ELSE {interval} END"


def failure_interval_days(kind: OutcomeKind, streak: int, policy_days: float, limits: IntervalLimits) -> float:
    """Days after the `streak`-th failure in a row: the interval doubled each time.

    The doubled interval starts from at least a day (or the first interval, if that is shorter),
    so that spaced tries are spaced for pages visited hourly too. Passing faults are tried again
    after 1 h, 2 h, 4 h ... but never later than the doubled interval.
    """
    base = max(policy_days, min(1.0, limits.first_days))
    factor = 2.0 ** min(streak, 32)
    doubled = min(base * factor, limits.max_days)
    if kind == OutcomeKind.PASSING_FAULT:
        return min(PASSING_RETRY_DAYS * factor / 2.0, doubled)
    return doubled


def interval_days(
    *,
    state: UrlState,
    next_state: UrlState,
    outcome: Outcome,
    last_outcome: Outcome | None,
    streak_before: int,
    streak: int,
    first_success: bool,
    policy_days: float,
    limits: IntervalLimits,
) -> float:
    """Days until the page may be visited again, before jitter.

    Gone pages wait the longest interval. The first success waits the first interval, whatever the
    prior says. A success after lasting failures comes back at half the interval that the failures
    had reached, the next one at the policy's; after passing faults at the policy's at once.

    Args:
        state, next_state: before and after the try. outcome, last_outcome: this and the last try's.
        streak_before, streak: `failure_streak` before and after the try.
        first_success: no success came before this one.
        policy_days: `policy_interval_days`.
    """
    if next_state == UrlState.GONE:
        return limits.max_days
    if not succeeded(state, outcome):
        return failure_interval_days(OUTCOME_KINDS[outcome], streak, policy_days, limits)
    usual = _clamp(limits.first_days, limits.min_days, limits.max_days) if first_success else policy_days
    if streak_before == 0 or last_outcome is None or OUTCOME_KINDS[last_outcome] == OutcomeKind.PASSING_FAULT:
        return usual
    reached = failure_interval_days(OUTCOME_KINDS[last_outcome], streak_before, policy_days, limits)
    return max(usual, reached / 2.0)


def _doubled_sql(streak: str, policy_days: str, limits: IntervalLimits) -> str:
    base = f"greatest({policy_days}, {min(1.0, limits.first_days)!r}D)"
    return f"least({base} * power(2D, least({streak}, 32)), {limits.max_days!r}D)"


def interval_days_sql(
    *,
    state: str,
    next_state: str,
    outcome: str,
    last_outcome: str,
    streak_before: str,
    streak: str,
    first_success: str,
    policy_days: str,
    limits: IntervalLimits,
) -> str:
    """SQL of `interval_days`; DOUBLE. Give columns rather than long expressions: each is named several times."""
    doubled = _doubled_sql(streak, policy_days, limits)
    passing = f"least({PASSING_RETRY_DAYS!r}D * power(2D, least({streak}, 32)) / 2D, {doubled})"
    first = _clamp(limits.first_days, limits.min_days, limits.max_days)
    usual = f"CASE WHEN {first_success} THEN {first!r}D ELSE {policy_days} END"
    calm = (
        f"coalesce({streak_before}, 0) = 0 OR {last_outcome} IS NULL "
        f"OR {outcome_kind_sql(last_outcome)} = '{OutcomeKind.PASSING_FAULT}'"
    )
    reached = _doubled_sql(streak_before, policy_days, limits)
    return (
        f"CASE WHEN {next_state} = '{UrlState.GONE}' THEN {limits.max_days!r}D "
        f"WHEN NOT {succeeded_sql(state, outcome)} THEN "
        f"CASE WHEN {outcome_kind_sql(outcome)} = '{OutcomeKind.PASSING_FAULT}' THEN {passing} ELSE {doubled} END "
        f"WHEN {calm} THEN {usual} ELSE greatest({usual}, {reached} / 2D) END"
    )


def jitter_factor(url_id: int) -> float:
    """The page's own factor in [0.9, 1.1]; `url_id` is a hash already, so its remainder is even."""
    step = url_id % _JITTER_STEPS
    return (1.0 - JITTER_SHARE) + 2.0 * JITTER_SHARE * step / (_JITTER_STEPS - 1)


def jitter_factor_sql(url_id: str) -> str:
    """SQL of `jitter_factor`; DOUBLE."""
    low, width = 1.0 - JITTER_SHARE, 2.0 * JITTER_SHARE
    return f"({low!r}D + {width!r}D * pmod({url_id}, {_JITTER_STEPS}L) / {float(_JITTER_STEPS - 1)!r}D)"


def next_fetch_at(visited_at: datetime, interval: float, url_id: int, limits: IntervalLimits) -> datetime:
    """The due time: the interval with jitter, whole seconds after the visit.

    The interval is drawn in by the jitter's width first, so that pages at a limit spread as well
    and none passes it. Passing faults may be tried again sooner than `limits.min_days` says.
    """
    drawn = min(interval, limits.max_days / (1.0 + JITTER_SHARE))
    seconds = math.floor(drawn * jitter_factor(url_id) * SECONDS_PER_DAY)
    return visited_at + timedelta(seconds=seconds)


def next_fetch_at_sql(visited_at: str, interval_days: str, url_id: str, limits: IntervalLimits) -> str:
    """SQL of `next_fetch_at`; TIMESTAMP."""
    drawn = f"least({interval_days}, {limits.max_days / (1.0 + JITTER_SHARE)!r}D)"
    seconds = f"CAST(floor({drawn} * {jitter_factor_sql(url_id)} * {SECONDS_PER_DAY}) AS BIGINT)"
    return f"timestamp_micros(unix_micros({visited_at}) + {seconds} * 1000000L)"
