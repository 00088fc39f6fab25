"""What a fetch task is given, and the pieces of work that it makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from recrawl.config.model import Configuration
from recrawl.fetch.robots_gate import RobotsKey, StoredRobots
from recrawl.urls.scope import ScopeSet


@dataclass(frozen=True, slots=True)
class PlannedUrl:
    """A row of `fetch_plan`, as far as fetching needs it; see the columns of the same names."""

    url_id: int
    url: str
    request_url: str
    host: str
    rank_in_host: int
    crawl_value: float
    depth: int
    max_bytes: int
    etag: str | None = None
    last_modified: str | None = None
    last_payload_digest: str | None = None
    last_warc_file: str | None = None
    last_warc_record_id: str | None = None
    last_warc_date: datetime | None = None
    earliest_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HostRecord:
    """What the crawl knows of a host; see the columns of `hosts`."""

    host: str
    ips: tuple[str, ...] = ()
    crawl_delay_seconds: float | None = None
    adaptive_delay_seconds: float | None = None
    last_access_at: datetime | None = None
    blocked_until: datetime | None = None
    error_streak: int = 0


@dataclass(frozen=True, slots=True)
class KnownHost:
    """What is known of a host; stands in the stream of a plan before the host's URLs.

    Attributes:
        record: its row of `hosts`; None for a new host.
        robots: (scheme, file) pairs as known before the round.
    """

    host: str
    record: HostRecord | None = None
    robots: tuple[tuple[str, StoredRobots], ...] = ()


PlanItem = PlannedUrl | KnownHost


@dataclass(frozen=True)
class PartitionTask:
    """One fetch partition of a round.

    Attributes:
        deadline: no request starts after it.
        scope: what redirects may lead to.
        blocked_hosts: hosts and domains that are never contacted.
        excluded_prefixes: URLs that begin so are never fetched.
        attempt_token: unique for this attempt; the owner file holds it.
        drained: fetch nothing; what is not settled becomes a skip `operator` (an abandoned round).
    """

    round_id: str
    partition: int
    configuration: Configuration
    deadline: datetime
    scope: ScopeSet
    blocked_hosts: frozenset[str]
    attempt_token: str
    excluded_prefixes: tuple[str, ...] = ()
    drained: bool = False


@dataclass(frozen=True)
class PartitionSummary:
    """What one attempt did; `final` and `skipped` include what earlier attempts had settled.

    Attributes:
        planned: URLs of the plan.
        final: of them, those with a final row in `fetches`.
        skipped: of them, those with a row in `skips`.
        requests: requests of this attempt, robots.txt and redirect hops included.
        errors: of them, faults of a host.
        warc_files: published by this attempt, salvaged ones included.
        seconds: how long it took.
    """

    planned: int
    final: int
    skipped: int
    requests: int
    errors: int
    warc_files: tuple[str, ...]
    seconds: float


@dataclass(slots=True)
class PageWork:
    """A URL to be asked for: a planned one (hop 0) or a redirect's target.

    Attributes:
        attempt: the try within the round, from 1; the same for all hops of a chain.
        chain: the URLs requested before this one, hop 0 first.
    """

    planned: PlannedUrl
    attempt: int
    hop: int
    url_id: int
    url: str
    request_url: str
    host: str
    chain: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        return self.request_url.partition(":")[0]

    @property
    def robots_key(self) -> RobotsKey:
        return self.scheme, self.host


@dataclass(slots=True)
class RobotsWork:
    """A robots.txt to be asked for: `key` is whose, `url` and `host` where it is looked for now.

    Attributes:
        hop: redirects behind it.
        attempt: the try within the round, from 1.
    """

    key: RobotsKey
    url: str
    host: str
    hop: int = 0
    attempt: int = 1

    @classmethod
    def first(cls, key: RobotsKey, attempt: int = 1) -> Self:
        """The file where RFC 9309 puts it."""
        scheme, host = key
        return cls(key, f"{scheme}://{host}/robots.txt", host, 0, attempt)


Work = PageWork | RobotsWork
