"""What the crawler knows of one host, and why its URLs wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from recrawl.asking.reader import Reader
from recrawl.asking.stored_robots import RobotsFile, stored_robots
from recrawl.asking.verdict import utc
from recrawl.asking.waits import waits
from recrawl.config.model import Configuration
from recrawl.errors import UsageError
from recrawl.frontier.quota import host_quota
from recrawl.inbox import read_events
from recrawl.seed import decisions
from recrawl.storage import Store
from recrawl.tables.vocabulary import OverrideKind, RoundState
from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.keys import bucket_of

Row = Mapping[str, Any]


@dataclass(frozen=True)
class HostReport:
    """What is known of a host.

    Attributes:
        host: the authority: a name, with its port where that is not the scheme's default.
        waits: why nothing is asked of it now, in sentences; or that nothing keeps it.
        known: its row of `hosts`; None: no round has met it.
        decisions: what people decided about it, its domain or URLs of it, in force now.
        delay_seconds: gap that the next round plans with.
        quota: URLs that a round takes at most, by decision, configuration and time.
        earliest_at: when it may be asked again after its last access; None: at once.
        urls: its URLs by state: how many, how many are due, when the next one is.
        planned: its URLs in the plan of the open round, and their fetch partition; None: none is open.
        visits: rows of `host_visits`, newest first.
        outcomes, skips: how the tries and the URLs given back ended, by round, newest first.
        robots: its robots.txt by scheme.
    """

    host: str
    domain: str
    bucket: int
    waits: Sequence[str]
    known: Row | None
    decisions: Sequence[Row]
    delay_seconds: float
    quota: int
    earliest_at: datetime | None
    urls: Sequence[Row]
    planned: Row | None
    visits: Sequence[Row]
    outcomes: Sequence[Row]
    skips: Sequence[Row]
    robots: Sequence[RobotsFile]


def host_named(text: str, configuration: Configuration) -> str:
    """The host that a person means by a name, an authority or a URL, as tables write it.

    Raises:
        UsageError: it names none.
    """
    subject = text.strip()
    scheme = "https" if subject.endswith(":443") else "http"
    url = subject if "://" in subject else f"{scheme}://{subject}/"
    # The host as named, though it may be another's alias.
    urls = configuration.urls.model_copy(update={"site_rules": []})
    canonical = Canonicalizer.from_settings(urls).canonical(url)
    if canonical is None or ("://" not in subject and canonical != f"{scheme}://{host_of(canonical)}/"):
        raise UsageError(f"{text!r} is no host.", "Write it as example.org or example.org:8080.")
    return host_of(canonical)


def host_report(
    host: str, reader: Reader, store: Store, configuration: Configuration, now: datetime, rounds: int = 10
) -> HostReport:
    """Look at a host from every side.

    Args:
        host: as `host_named` gives it.
        now: what "due", "blocked" and "in force" mean.
        rounds: the newest rounds whose rows are looked through.
    """
    facts = _Facts(host, reader, store, configuration, now, rounds)
    known, in_force = facts.known(), facts.decisions()
    delay_seconds = max(
        _seconds(known, "crawl_delay_seconds"), _seconds(known, "adaptive_delay_seconds"),
        configuration.fetch.min_delay_seconds,
    )  # fmt: skip
    last_access_at = None if known is None else known["last_access_at"]
    earliest_at = None if last_access_at is None else utc(last_access_at) + timedelta(seconds=delay_seconds)
    parts: dict[str, Any] = {
        "known": known,
        "decisions": in_force,
        "delay_seconds": delay_seconds,
        "quota": _quota(known, in_force, configuration, delay_seconds),
        "earliest_at": earliest_at if earliest_at is not None and earliest_at > now else None,
        "urls": facts.urls(),
        "planned": facts.planned(),
        "visits": facts.of_rounds("host_visits", "*", "ORDER BY round_id DESC"),
        "outcomes": facts.counts("fetches", "outcome"),
        "skips": facts.counts("skips", "step, skip_reason"),
        "robots": stored_robots(reader, host, configuration, now),
    }
    return HostReport(host, facts.domain, facts.bucket, waits(parts, now), **parts)


class _Facts:
    """The queries behind a report; each reads one bucket or the slices of a few rounds."""

    def __init__(
        self, host: str, reader: Reader, store: Store, configuration: Configuration, now: datetime, rounds: int
    ) -> None:
        self._reader, self._store, self._configuration, self._now = reader, store, configuration, now
        self._host = host
        self._name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        self.domain = registered_domain(host)
        self.bucket = bucket_of(host, configuration.storage.buckets)
        self._rounds = reader.rounds()
        ids = sorted(str(row["round_id"]) for row in self._rounds)[-rounds:]
        self._since = ids[0] if ids else ""

    def _rows(self, table: str, sql: str) -> list[dict[str, Any]]:
        if self._reader.version(table) is None:
            return []
        rows: list[dict[str, Any]] = self._reader.query(sql).to_pylist()
        return rows

    def known(self) -> Row | None:
        where = f"bucket = {self.bucket} AND host = {_text(self._host)}"
        rows = self._rows("hosts", f"SELECT * FROM hosts WHERE {where}")
        return rows[0] if rows else None

    def of_rounds(self, table: str, columns: str, tail: str) -> list[dict[str, Any]]:
        where = f"round_id >= {_text(self._since)} AND host = {_text(self._host)}"
        return self._rows(table, f"SELECT {columns} FROM {table} WHERE {where} {tail}")

    def counts(self, table: str, what: str) -> list[dict[str, Any]]:
        tail = f"GROUP BY round_id, {what} ORDER BY round_id DESC, {what}"
        return self.of_rounds(table, f"round_id, {what}, count(*) AS urls", tail)

    def urls(self) -> list[dict[str, Any]]:
        now = f"CAST('{self._now.astimezone(UTC).isoformat()}' AS TIMESTAMP)"
        return self._rows(
            "urls",
            "SELECT state, count(*) AS urls, sum(CASE WHEN next_fetch_at IS NULL OR "
            f"CAST(next_fetch_at AS TIMESTAMP) <= {now} THEN 1 ELSE 0 END) AS due, min(next_fetch_at) AS next_fetch_at "
            f"FROM urls WHERE bucket = {self.bucket} AND host = {_text(self._host)} GROUP BY state ORDER BY state",
        )

    def planned(self) -> Row | None:
        """What the open round plans of the host."""
        opened = [str(row["round_id"]) for row in self._rounds if row["round_state"] == RoundState.OPEN.value]
        if not opened:
            return None
        rows = self._rows(
            "fetch_plan",
            "SELECT round_id, fetch_partition, count(*) AS urls, max(predicted_seconds) AS predicted_seconds "
            f"FROM fetch_plan WHERE round_id = {_text(opened[-1])} AND host = {_text(self._host)} "
            "GROUP BY round_id, fetch_partition",
        )
        return rows[0] if rows else {"round_id": opened[-1], "urls": 0}

    def decisions(self) -> list[Row]:
        in_force = decisions.fold_decisions(read_events(self._store), self._now).overrides
        return [{**vars(o), "kind": o.kind.value} for o in in_force if self._concerns(o.subject)]

    def _concerns(self, subject: str) -> bool:
        if "://" in subject:
            return subject.partition("://")[2].partition("/")[0] == self._host
        return subject in (self._host, self._name) or self._name.endswith(f".{subject}")


def _quota(known: Row | None, in_force: Sequence[Row], configuration: Configuration, delay_seconds: float) -> int:
    """As the step `frontier` has it: the decision with the longest name, the host's own, and time."""
    quota = configuration.frontier.host_quota
    decided = [row for row in in_force if row["kind"] == OverrideKind.QUOTA.value and "://" not in row["subject"]]
    if decided:
        quota = int(max(decided, key=lambda row: len(row["subject"]))["value"])
    if known is not None and known["quota_urls_per_round"] is not None:
        quota = min(quota, int(known["quota_urls_per_round"]))
    return host_quota(quota, configuration.fetch.time_budget_seconds, delay_seconds)


def _seconds(known: Row | None, column: str) -> float:
    return float((known[column] if known is not None else None) or 0.0)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
