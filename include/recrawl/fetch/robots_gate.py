"""robots.txt before content, per scheme and authority (RFC 9309).

The gate knows which files are at hand and what they say, and judges answers to requests for
them; asking is the loop's part, politely, like any other request.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from recrawl.config.model import Configuration
from recrawl.fetch.journal import Row, parse_time, time_text
from recrawl.fetch.spill import Place, SpillFile
from recrawl.robots.lines import MAX_BYTES
from recrawl.robots.policy import RobotsLifetimes, judge, stands_in
from recrawl.robots.rules import RobotsRules
from recrawl.tables.vocabulary import Outcome, RobotsOutcome

#: RFC 9309, section 2.3.1.2.
MAX_ROBOTS_REDIRECTS = 5
MAX_ROBOTS_BYTES = MAX_BYTES

#: An answer holds this long at least, whatever lifetimes are configured: one fetch must serve.
_LEAST_LIFE = timedelta(seconds=60)

#: Of the files held parsed, long and ordinary ones apart, so that a few huge ones can't push all
#: others out. Rules take some eighteen times the bytes of their lines: 80 MB at most.
_MAX_LONG_PARSED_BYTES = 2 << 20
_MAX_PARSED_BYTES = 5 << 19
_LONG_BYTES = 32 * 1024
#: What even an empty file takes, in the same measure.
_LEAST_BYTES = 100

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
    """The file in force for one scheme and authority; its text lies in the scratch file."""

    __slots__ = ("digest", "expires_at", "failure", "failure_detail", "fetched_at", "is_allow_all", "place")

    def __init__(
        self, place: Place | None, digest: str | None, expires_at: datetime, fetched_at: datetime, is_allow_all: bool
    ) -> None:
        self.place = place
        self.digest = digest
        self.expires_at = expires_at
        self.fetched_at = fetched_at
        self.is_allow_all = is_allow_all
        self.failure: Outcome | None = None
        self.failure_detail = ""


class RobotsFetch(NamedTuple):
    """How asking for a robots.txt ended, redirects followed.

    Attributes:
        status: of the last answer; None for a failure of the network.
        body: the file, decoded; b"" without one.
        fetched_at: when it ended.
        failure: the network's failure.
        detail: of the failure.
        redirect_target: where the file was in the end; None: where it was asked for.
        may_pass: the failure is one that may pass in a moment, though others of its kind don't.
    """

    status: int | None
    body: bytes
    fetched_at: datetime
    failure: Outcome | None = None
    detail: str = ""
    redirect_target: str | None = None
    may_pass: bool = False


class _ParsedRules:
    """Rules in use by the digest of their file, which many hosts share.

    The longest unused ones are dropped when the bytes of the files pass a bound.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rules: OrderedDict[str, tuple[RobotsRules, int]] = OrderedDict()
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._rules)

    def get(self, digest: str) -> RobotsRules | None:
        found = self._rules.get(digest)
        if found is None:
            return None
        self._rules.move_to_end(digest)
        return found[0]

    def put(self, digest: str, rules: RobotsRules, size_bytes: int) -> None:
        self._rules[digest] = rules, size_bytes
        self._size_bytes += size_bytes
        while len(self._rules) > 1 and self._size_bytes > self._max_bytes:
            _, (_, dropped_bytes) = self._rules.popitem(last=False)
            self._size_bytes -= dropped_bytes


class RobotsGate:
    """The robots.txt files of a fetch task.

    Args:
        configuration: agent name and lifetimes.
        spill: holds the files; the rules of those in use are in memory too.
    """

    def __init__(self, configuration: Configuration, spill: SpillFile | None = None) -> None:
        self._agent = configuration.agent.name
        self._lifetimes = RobotsLifetimes.from_settings(configuration.fetch)
        self._spill = spill or SpillFile()
        self._entries: dict[RobotsKey, _Entry] = {}
        self._parsed = _ParsedRules(_MAX_PARSED_BYTES)
        self._long_parsed = _ParsedRules(_MAX_LONG_PARSED_BYTES)

    def learn(self, key: RobotsKey, stored: StoredRobots) -> None:
        """Take in a file that was known before the round; what this round found out stays in force."""
        entry, found = self._entry_of(stored), self._entries.get(key)
        if found is not None:
            if found.failure is None or found.digest is not None or entry.digest is None:
                return
            entry.expires_at, entry.failure, entry.failure_detail = (
                found.expires_at,
                found.failure,
                found.failure_detail,
            )
        self._entries[key] = entry

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
            decision = self._rules(entry).decide(url)
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
        return self._rules(entry).crawl_delay_seconds

    def can_stand_in(self, key: RobotsKey, now: datetime) -> bool:
        """Whether rules fetched earlier may be used while the file is unreachable."""
        entry = self._entries.get(key)
        if entry is None or entry.digest is None or entry.is_allow_all:
            return False
        return stands_in(entry.fetched_at, now, self._lifetimes)

    def digest_and_expiry(self, key: RobotsKey) -> tuple[str | None, datetime] | None:
        """Digest and expiry of the file in force; None when there is none."""
        entry = self._entries.get(key)
        return None if entry is None else (entry.digest, entry.expires_at)

    def accept(self, key: RobotsKey, fetch: RobotsFetch, round_id: str) -> Row:
        """Take in a fetched file; its row of `robots`."""
        outcome, expires_at = judge(fetch.status, fetch.fetched_at, self._lifetimes)
        expires_at = max(expires_at, fetch.fetched_at + _LEAST_LIFE)
        body = digest = None
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
            entry = _Entry(self._kept(body), digest, expires_at, fetch.fetched_at, is_allow_all)
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
        if robots.outcome is RobotsOutcome.UNREACHABLE and before is not None and before.digest is not None:
            before.expires_at = robots.expires_at
            before.failure = Outcome.ROBOTS_UNAVAILABLE
            return
        self._entries[key] = self._entry_of(robots)

    def _entry_of(self, robots: StoredRobots) -> _Entry:
        body = None if robots.body is None else robots.body.encode("utf-8", "surrogatepass")
        digest = (robots.digest or sha256(body).hexdigest()) if body is not None else None
        is_allow_all = robots.outcome is RobotsOutcome.ALLOW_ALL
        entry = _Entry(self._kept(body), digest, robots.expires_at, robots.fetched_at, is_allow_all)
        if robots.outcome is RobotsOutcome.UNREACHABLE:
            entry.failure = Outcome.ROBOTS_UNAVAILABLE
        return entry

    def _kept(self, body: bytes | None) -> Place | None:
        return self._spill.append(zlib.compress(body, 1)) if body else None

    def _rules(self, entry: _Entry) -> RobotsRules:
        digest = entry.digest or ""
        rules = self._parsed.get(digest) or self._long_parsed.get(digest)
        if rules is None:
            body = zlib.decompress(self._spill.read(entry.place)) if entry.place is not None else b""
            rules = RobotsRules.parse(body, self._agent)
            pool = self._long_parsed if len(body) > _LONG_BYTES else self._parsed
            pool.put(digest, rules, len(body) + _LEAST_BYTES)
        return rules
