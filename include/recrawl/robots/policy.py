"""What follows from fetching robots.txt: RFC 9309, section 2.3.1, as a pure function."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple, Self

from recrawl.config.model import Fetch
from recrawl.tables.vocabulary import RobotsOutcome


class RobotsLifetimes(NamedTuple):
    """How long an answer holds.

    Attributes:
        rules_seconds: seconds that an answer is used before the next fetch (RFC 9309, 2.4).
        error_seconds: seconds until an unreachable robots.txt is tried again.
        stale_seconds: seconds that stored rules may stand in for an unreachable robots.txt.
    """

    rules_seconds: float
    error_seconds: float
    stale_seconds: float

    @classmethod
    def from_settings(cls, fetch: Fetch) -> Self:
        """The lifetimes that the section `fetch` of the configuration asks for."""
        return cls(fetch.robots_ttl_seconds, fetch.robots_error_ttl_seconds, fetch.robots_stale_seconds)


class RobotsVerdict(NamedTuple):
    """What a fetch of robots.txt means, and until when."""

    outcome: RobotsOutcome
    expires_at: datetime


def outcome_of(status: int | None) -> RobotsOutcome:
    """What the last answer means (RFC 9309, 2.3.1).

    Args:
        status: the HTTP status after redirects, or None for any failure of the network (DNS,
            connection, TLS, time-out, an answer that is no HTTP). A 3xx is one redirect too
            many, or one that leads nowhere.
    """
    match status:
        case int() if 200 <= status <= 299:
            return RobotsOutcome.RULES
        case 429:
            # "Too many requests" says that the server is there and wants less of us, not more.
            return RobotsOutcome.UNREACHABLE
        case int() if 300 <= status <= 499:
            # 2.3.1.2 and 2.3.1.3: unavailable.
            return RobotsOutcome.ALLOW_ALL
        case _:
            # 2.3.1.4: unreachable; also what is no status at all.
            return RobotsOutcome.UNREACHABLE


def judge(status: int | None, fetched_at: datetime, lifetimes: RobotsLifetimes) -> RobotsVerdict:
    """The outcome of a fetch of robots.txt, and when it has to be fetched again.

    Args:
        status: as `outcome_of` takes it.
        fetched_at: when the answer came or failed.
        lifetimes: how long answers hold.
    """
    outcome = outcome_of(status)
    seconds = lifetimes.error_seconds if outcome is RobotsOutcome.UNREACHABLE else lifetimes.rules_seconds
    return RobotsVerdict(outcome, fetched_at + timedelta(seconds=seconds))


def stands_in(stored_at: datetime, now: datetime, lifetimes: RobotsLifetimes) -> bool:
    """May rules fetched at `stored_at` still stand in for a robots.txt that is unreachable now?"""
    return now - stored_at <= timedelta(seconds=lifetimes.stale_seconds)
