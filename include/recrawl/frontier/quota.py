"""How many URLs a host may have in a round."""

from __future__ import annotations

import math

#: Stands for "no limit by time" where a host needs no gap (loopback, private ranges).
_UNBOUNDED = 2**31 - 1


def host_quota(quota: int, time_budget_seconds: float, delay_seconds: float, taken_last_day: int = 0) -> int:
    """URLs of a host in this round: min(quota, floor(time budget / delay)), less those of the last 24 h.

    Args:
        quota: of the host, a round and a sliding day.
        time_budget_seconds: how long the fetch step may take.
        delay_seconds: the host's gap (Crawl-delay or measured). A host slower than the whole
            budget gets 1: its first request waits for no gap, and without it we would never come.
        taken_last_day: requests to the host within the last 24 hours.
    """
    by_time = _UNBOUNDED if delay_seconds <= 0 else math.floor(min(time_budget_seconds / delay_seconds, _UNBOUNDED))
    return max(0, min(quota - taken_last_day, max(1, by_time)))


def host_quota_sql(quota: str, time_budget_seconds: float, delay_seconds: str, taken_last_day: str = "0") -> str:
    """SQL of `host_quota`; BIGINT; a NULL delay means none."""
    seconds = f"{float(time_budget_seconds)!r}D"
    slow = f"greatest(1L, floor(least({seconds} / {delay_seconds}, {_UNBOUNDED}D)))"
    by_time = f"CASE WHEN {delay_seconds} > 0D THEN {slow} ELSE {_UNBOUNDED}L END"
    return f"greatest(0L, least(CAST({quota} - coalesce({taken_last_day}, 0) AS BIGINT), {by_time}))"
