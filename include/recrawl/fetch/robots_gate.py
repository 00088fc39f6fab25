"""robots.txt before content, per scheme and authority (RFC 9309).

The gate knows which files are at hand and what they say, and judges answers to requests for
them; asking is the loop's part, politely, like any other request.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from recrawl.config.model import Configuration
from recrawl.fetch.journal import Row, parse_time, time_text
from recrawl.robots.lines import MAX_BYTES
from recrawl.robots.policy import RobotsLifetimes, judge, stands_in
from recrawl.robots.rules import RobotsRules
from recrawl.tables.vocabulary import Outcome, RobotsOutcome

#: RFC 9309, section 2.3.1.2.
MAX_ROBOTS_REDIRECTS = 5
MAX_ROBOTS_BYTES = MAX_BYTES

#: An answer holds this long at least, whatever lifetimes are configured: one fetch must serve.
_LEAST_LIFE = timedelta(seconds=60)

_MAX_PARSED = 2_000
_MAX_PARSED_BYTES = 16 << 20
#: Longer files are held compressed while they are not in use.
_COMPRESS_FROM_BYTES = 4_096

RobotsKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StoredRobots:
    """A robots.txt known before the task began.

    Attributes:
        outcome: how fetching it ended the last time.
        body: the rules to go by, of the last fetch that got them; None when none ever did.
        digest: SHA-256 of the file, hexadecimal.
        expires_at: when it is fetched again.
        fetched_at: when `body` was fetched (or, without one, the last try).
    """

    outcome: RobotsOutcome
    body: str | None
    digest: str | None
    expires_at: datetime
    fetched_at: datetime


class Verdict(NamedTuple):
    """What robots.txt says to one URL.

    Attributes:
        outcome: None when it may be fetched, else how its row ends.
        digest: of the file that decided.
        rule: the line that decided.
        detail: for people.
    """

    outcome: Outcome | None
    digest: str | None
    rule: str
    detail: str = ""


class _Entry:
    """The file in force for one scheme and authority."""

    __slots__ = ("_packed", "digest", "expires_at", "failure", "failure_detail", "fetched_at", "is_allow_all")

    def __init__(
        self, body: bytes | None, digest: str | None, expires_at: datetime, fetched_at: datetime, is_allow_all: bool
    ) -> None:
        is_long = body is not None and len(body) >= _COMPRESS_FROM_BYTES
        self._packed = (is_long, zlib.compress(body, 1) if is_long and body is not None else body)
        self.digest = digest
        self.expires_at = expires_at
        self.fetched_at = fetched_at
        self.is_allow_all = is_allow_all
        self.failure: Outcome | None = None
        self.failure_detail = ""

    @property
    def body(self) -> bytes | None:
        is_packed, data = self._packed
        return zlib.decompress(data) if is_packed and data is not None else data


class RobotsFetch(NamedTuple):
    """How asking for a robots.txt ended, redirects followed.

    Attributes:
        status: of the last answer; None for a failure of the network.
        body: the file, decoded; b"" without one.
        fetched_at: when it ended.
        failure: the network's failure.
        detail: of the failure.
        redirect_target: where the file was in the end; None: where it was asked for.
    """

    status: int | None
    body: bytes
    fetched_at: datetime
    failure: Outcome | None = None
    detail: str = ""
    redirect_target: str | None = None


class RobotsGate:
    """The robots.txt files of a fetch task.

    Args:
        configuration: agent name and lifetimes.
        stored: files known before.
    """

    def __init__(self, configuration: Configuration, stored: Mapping[RobotsKey, StoredRobots]) -> None:
        self._agent = configuration.agent.name
        self._lifetimes = RobotsLifetimes.from_settings(configuration.fetch)
        self._entries: dict[RobotsKey, _Entry] = {}
        self._parsed: OrderedDict[RobotsKey, tuple[RobotsRules, int]] = OrderedDict()
        self._parsed_bytes = 0
        for key, robots in stored.items():
            self._entries[key] = self._entry_of(robots)

    def is_known(self, key: RobotsKey, now: datetime) -> bool:
        """Whether the file is at hand and has not expired."""
        entry = self._entries.get(key)
        return entry is not None and entry.expires_at > now

    def judge_url(self, key: RobotsKey, url: str, now: datetime) -> Verdict:
        """What the file in force says to a URL; call when `is_known`."""
        entry = self._entries[key]
        if entry.is_allow_all:
            return Verdict(None, entry.digest, "")
        if entry.digest is not None and (entry.failure is None or stands_in(entry.fetched_at, now, self._lifetimes)):
            decision = self._rules(key, entry).decide(url)
            outcome = None if decision.allowed else Outcome.ROBOTS_DENIED
            return Verdict(outcome, entry.digest, decision.rule)
        # A name that does not resolve and an address that is refused say more than that the file is missing.
        if entry.failure in (Outcome.DNS_ERROR, Outcome.ADDRESS_REFUSED):
            return Verdict(entry.failure, None, "", entry.failure_detail)
        return Verdict(Outcome.ROBOTS_UNAVAILABLE, None, "", f"robots.txt: {entry.failure_detail or 'unreachable'}")

    def crawl_delay_seconds(self, key: RobotsKey) -> float | None:
        """The Crawl-delay in force."""
        entry = self._entries.get(key)
        if entry is None or entry.is_allow_all or entry.digest is None:
            return None
        return self._rules(key, entry).crawl_delay_seconds

    def digest_and_expiry(self, key: RobotsKey) -> tuple[str | None, datetime] | None:
        """Digest and expiry of the file in force; None when there is none."""
        entry = self._entries.get(key)
        return None if entry is None else (entry.digest, entry.expires_at)

    def accept(self, key: RobotsKey, fetch: RobotsFetch, round_id: str) -> Row:
        """Take in a fetched file; its row of `robots`."""
        outcome, expires_at = judge(fetch.status, fetch.fetched_at, self._lifetimes)
        expires_at = max(expires_at, fetch.fetched_at + _LEAST_LIFE)
        body = digest = None
        self._forget_parsed(key)
        if outcome is RobotsOutcome.UNREACHABLE:
            entry = self._entries.get(key)
            if entry is None or entry.is_allow_all:
                entry = _Entry(None, None, expires_at, fetch.fetched_at, is_allow_all=False)
            entry.expires_at = expires_at
            entry.failure = fetch.failure or Outcome.ROBOTS_UNAVAILABLE
            entry.failure_detail = fetch.detail or f"status {fetch.status}"
        else:
            is_allow_all = outcome is RobotsOutcome.ALLOW_ALL
            if not is_allow_all:
                body, digest = fetch.body, sha256(fetch.body).hexdigest()
            entry = _Entry(body, digest, expires_at, fetch.fetched_at, is_allow_all)
        self._entries[key] = entry
        return {
            "round_id": round_id,
            "scheme": key[0],
            "host": key[1],
            "fetched_at": time_text(fetch.fetched_at),
            "status": fetch.status,
            "robots_outcome": outcome.value,
            "body": None if body is None else body.decode("utf-8", "replace"),
            "body_digest": digest,
            "expires_at": time_text(expires_at),
            "redirect_target": fetch.redirect_target,
            "crawl_delay_seconds": self.crawl_delay_seconds(key) if body is not None else None,
        }

    def restore(self, row: Row) -> None:
        """Take in the row of `robots` that an earlier attempt of the task wrote."""
        key = (row["scheme"], row["host"])
        robots = StoredRobots(
            RobotsOutcome(row["robots_outcome"]), row["body"], row["body_digest"],
            parse_time(row["expires_at"]), parse_time(row["fetched_at"]),
        )  # fmt: skip
        before = self._entries.get(key)
        self._forget_parsed(key)
        if robots.outcome is RobotsOutcome.UNREACHABLE and before is not None and before.digest is not None:
            before.expires_at = robots.expires_at
            before.failure = Outcome.ROBOTS_UNAVAILABLE
            return
        self._entries[key] = self._entry_of(robots)

    @staticmethod
    def _entry_of(robots: StoredRobots) -> _Entry:
        body = None if robots.body is None else robots.body.encode("utf-8", "surrogatepass")
        digest = (robots.digest or sha256(body).hexdigest()) if body is not None else None
        is_allow_all = robots.outcome is RobotsOutcome.ALLOW_ALL
        entry = _Entry(body, digest, robots.expires_at, robots.fetched_at, is_allow_all)
        if robots.outcome is RobotsOutcome.UNREACHABLE:
            entry.failure = Outcome.ROBOTS_UNAVAILABLE
        return entry

    def _rules(self, key: RobotsKey, entry: _Entry) -> RobotsRules:
        found = self._parsed.get(key)
        if found is not None:
            self._parsed.move_to_end(key)
            return found[0]
        body = entry.body or b""
        rules = RobotsRules.parse(body, self._agent)
        self._parsed[key] = rules, len(body)
        self._parsed_bytes += len(body)
        while len(self._parsed) > 1 and (len(self._parsed) > _MAX_PARSED or self._parsed_bytes > _MAX_PARSED_BYTES):
            _, (_, size_bytes) = self._parsed.popitem(last=False)
            self._parsed_bytes -= size_bytes
        return rules

    def _forget_parsed(self, key: RobotsKey) -> None:
        found = self._parsed.pop(key, None)
        if found is not None:
            self._parsed_bytes -= found[1]
