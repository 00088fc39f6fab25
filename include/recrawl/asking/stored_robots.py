"""robots.txt files as they are stored, and what they say to `/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recrawl.asking.reader import Reader
from recrawl.asking.verdict import utc
from recrawl.config.model import Configuration
from recrawl.robots.policy import RobotsLifetimes, stands_in
from recrawl.robots.rules import RobotsRules
from recrawl.tables.vocabulary import RobotsOutcome

Row = Mapping[str, Any]

_SCHEMES = ("http", "https", "ftp")


@dataclass(frozen=True)
class RobotsFile:
    """A robots.txt as it is stored.

    Attributes:
        fetched_at, status, outcome, expires_at: of the newest try.
        body: the file in force as it was stored; None where there is none.
        body_fetched_at: when it was fetched: earlier than the newest try where that did not get it.
        root_allowed, root_rule: what it says to `/`, and the line that decides; "" without one.
        crawl_delay_seconds, sitemaps: what it asks for and names.
        redirect_target: where it was in the end; None: where it was asked for.
    """

    scheme: str
    fetched_at: datetime
    status: int | None
    outcome: str
    expires_at: datetime
    body: str | None
    body_fetched_at: datetime | None
    root_allowed: bool
    root_rule: str
    crawl_delay_seconds: float | None
    sitemaps: Sequence[str]
    redirect_target: str | None


def stored_robots(reader: Reader, host: str, configuration: Configuration, now: datetime) -> list[RobotsFile]:
    """The robots.txt of a host under each scheme that was ever asked for it."""
    if reader.version("robots") is None:
        return []
    lifetimes = RobotsLifetimes.from_settings(configuration.fetch)
    found = []
    for scheme in _SCHEMES:
        newest = _newest(reader, scheme, host, "")
        if newest is None:
            continue
        in_force = newest
        if newest["robots_outcome"] == RobotsOutcome.UNREACHABLE.value:
            older = _newest(reader, scheme, host, f" AND robots_outcome <> '{RobotsOutcome.UNREACHABLE}'")
            if older is not None and older["body"] is not None and stands_in(utc(older["fetched_at"]), now, lifetimes):
                in_force = older
        found.append(_robots_file(scheme, newest, in_force, configuration.agent.name))
    return found


def _newest(reader: Reader, scheme: str, host: str, condition: str) -> Row | None:
    name = host.replace("'", "''")
    where = f"scheme = '{scheme}' AND host = '{name}'{condition}"
    rows = reader.query(f"SELECT * FROM robots WHERE {where} ORDER BY fetched_at DESC LIMIT 1").to_pylist()
    return rows[0] if rows else None


def _robots_file(scheme: str, newest: Row, in_force: Row, agent: str) -> RobotsFile:
    body = in_force["body"]
    allowed, rule, delay, sitemaps = False, "", None, []
    if in_force["robots_outcome"] == RobotsOutcome.RULES.value:
        rules = RobotsRules.parse(body or "", agent)
        decision = rules.decide(f"{scheme}://{in_force['host']}/")
        allowed, rule = decision.allowed, decision.rule
        delay, sitemaps = rules.crawl_delay_seconds, list(rules.sitemaps)
    elif in_force["robots_outcome"] == RobotsOutcome.ALLOW_ALL.value:
        allowed = True
    return RobotsFile(
        scheme=scheme,
        fetched_at=utc(newest["fetched_at"]),
        status=newest["status"],
        outcome=newest["robots_outcome"],
        expires_at=utc(newest["expires_at"]),
        body=body,
        body_fetched_at=None if body is None else utc(in_force["fetched_at"]),
        root_allowed=allowed,
        root_rule=rule,
        crawl_delay_seconds=delay,
        sitemaps=sitemaps,
        redirect_target=newest["redirect_target"],
    )
