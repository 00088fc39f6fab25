"""A crawl for tests of single steps: its tables filled by hand, a round opened on them, a step to run.

One Spark session serves the whole folder (and whatever runs after it in the process); each module
has a storage root of its own, copied from one whose empty tables were created once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from recrawl.assignment import Assignment
from recrawl.clock import SystemClock
from recrawl.config import load_configuration
from recrawl.config.form import RoundForm
from recrawl.config.model import Configuration
from recrawl.lease import Lease, acquire
from recrawl.rank.aopic import Ledger
from recrawl.round_ledger import Round, find_round, frozen_configuration, save_round
from recrawl.rounds import moment_of
from recrawl.spark.application import Application, Step
from recrawl.spark.delta import in_parallel
from recrawl.stored_tables import StoredTables
from recrawl.tables.catalog import STATE_TABLES, TABLES, TableKind
from recrawl.tables.vocabulary import RoundKind, RoundState
from recrawl.urls.canonical import host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.keys import bucket_of, url_id
from tests.unit.asking.small_crawl import rows_of

BEFORE = "20261129T030000.000000Z"
ROUND = "20261130T030000.000000Z"
NOW = moment_of(ROUND)
DAY = timedelta(days=1)
BUCKETS = 4

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def settings(root: Path, **sections: dict[str, Any]) -> Configuration:
    """The defaults, everything small; `sections` are stronger."""
    overrides: dict[str, dict[str, Any]] = {
        "storage": {"root": str(root), "buckets": BUCKETS, "lease_seconds": 3_600},
        "fetch": {"slots": 2},
        "parse": {"text_extractor": "resiliparse"},
        "spark": {"driver_memory": "2g"},
    }
    for section, keys in sections.items():
        overrides[section] = overrides.get(section, {}) | keys
    return load_configuration(environment={}, overrides=overrides)


def frame(spark: SparkSession, table: str, rows: Rows) -> DataFrame:
    """Rows of a table: what is not given has a harmless value."""
    return spark.createDataFrame(rows_of(table, rows))


def plain(rows: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The rows' columns as sorted tuples; times are aware, in UTC."""
    return sorted((tuple(map(_value, row)) for row in rows.select(*columns).collect()), key=repr)


def _value(value: Any) -> Any:
    # Spark hands out naive times of the process's zone.
    return value.astimezone(UTC) if isinstance(value, datetime) else value


class JobCrawl:
    """The tables under one folder, and rounds on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.application = Application(settings(root))
        self._lease: Lease | None = None

    def copy(self, root: Path) -> JobCrawl:
        """The same tables in another folder."""
        shutil.copytree(self.root, root)
        return JobCrawl(root)

    @property
    def spark(self) -> SparkSession:
        return self.application.spark

    @property
    def tables(self) -> Any:
        return self.application.tables

    @property
    def stored(self) -> StoredTables:
        return self.application.stored

    @property
    def lease(self) -> Lease:
        if self._lease is None:
            self._lease = acquire(self.application.store, "tests", "tests", 3_600, SystemClock())
        return self._lease

    def frame(self, table: str, rows: Rows) -> DataFrame:
        """Rows of a table: what is not given has a harmless value."""
        return frame(self.spark, table, rows)

    def know(self, **tables: Rows) -> None:
        """Put rows into state tables and ledgers, and slices of earlier rounds into event tables."""

        def put(table: str, rows: Rows) -> None:
            kind = TABLES[table].kind
            if kind is TableKind.STATE:
                self.tables.fold(table, f"test/{table}", None, self.frame(table, rows))
            elif kind is TableKind.LEDGER:
                self.stored.replace(table, rows_of(table, rows).to_pylist(maps_as_pydicts="strict"))
            else:
                for round_id in {row["round_id"] for row in rows}:
                    own = [row for row in rows if row["round_id"] == round_id]
                    self.tables.write_slice(table, round_id, self.frame(table, own))

        in_parallel([lambda item=item: put(*item) for item in tables.items()])  # type: ignore[misc]

    def open(
        self,
        round_id: str = ROUND,
        ledger: Ledger | None = None,
        known: int = 0,
        form: RoundForm | None = None,
        number: int = 1,
        generation: int = 0,
        **sections: dict[str, Any],
    ) -> Step:
        """Open a round on the tables as they are now; the step that works on it."""
        form, ledger = form or RoundForm(), ledger or Ledger()
        asked_for = {section: sections.get(section, {}) | keys for section, keys in form.overrides().items()}
        configuration = settings(self.root, **{**sections, **asked_for})
        row = Round(
            {
                "round_id": round_id, "round_number": number, "round_kind": str(RoundKind.CRAWL),
                "round_state": str(RoundState.OPEN), "run_id": round_id, "opened_at": moment_of(round_id),
                "now": moment_of(round_id), "configuration": frozen_configuration(configuration, form),
                "engine_versions": {"recrawl": "test"},
                "versions_at_open": self.stored.versions((*STATE_TABLES, "seeds", "overrides")),
                "generation": generation, "known_before": known, "cash_before": ledger.total_credit,
                "lambda_cash": ledger.lambda_cash, "lambda_index_after": ledger.lambda_index,
                "payable_urls": ledger.payable_urls, "total_credit": ledger.total_credit,
            }
        )  # fmt: skip
        save_round(self.stored, row)
        return self.step(round_id)

    def step(self, round_id: str = ROUND) -> Step:
        """A step of a round that is there."""
        row = find_round(self.stored, round_id)
        assignment = Assignment(round_id, round_id, "seed", abandon=False, plan_only=False, started_at=row.now)
        configuration = row.configuration(self.application.configuration)
        return Step(self.application, row, assignment, configuration, self.lease)


def write(step: Step, **slices: Rows) -> None:
    """Slices of the step's round, one a table (and step, where rows name one)."""

    def put(table: str, rows: Rows) -> None:
        given = frame(step.spark, table, [{"round_id": step.round_id, **row} for row in rows])
        if "step" not in TABLES[table].column_names:
            step.write(table, given)
            return
        for name in {row["step"] for row in rows}:
            step.write(table, given.where(F.col("step") == name), name)

    in_parallel([lambda item=item: put(*item) for item in slices.items()])  # type: ignore[misc]


def row_of_url(url: str, **values: Any) -> Row:
    """A row of `urls`: fetched once, a day before the round."""
    host = host_of(url)
    return {
        "url_id": url_id(url), "url": url, "host": host, "bucket": bucket_of(host, BUCKETS), "state": "fetched",
        "discovered_round": BEFORE, "last_round_id": BEFORE, "manual_priority": 1.0, "canonical_rules_version": 1,
        **values,
    }  # fmt: skip


def row_of_host(host: str, **values: Any) -> Row:
    """A row of `hosts`."""
    return {
        "host": host, "bucket": bucket_of(host, BUCKETS), "registered_domain": registered_domain(host),
        "zone": "default", "last_round_id": BEFORE, **values,
    }  # fmt: skip


def row_of_seed(url: str, **values: Any) -> Row:
    """A row of `seeds` that opens its host."""
    host = host_of(url)
    return {
        "url_id": url_id(url), "url": url, "host": host, "registered_domain": registered_domain(host), "raw_seed": url,
        "scope": "host", "manual_priority": 1.0, "request_url": url, **values,
    }  # fmt: skip


def row_of_plan(url: str, **values: Any) -> Row:
    """A row of `fetch_plan`."""
    return {
        "url_id": url_id(url), "url": url, "request_url": url, "host": host_of(url), "rank_in_host": 1,
        "max_bytes": 1_000_000, "queue": "discovery", **values,
    }  # fmt: skip


def row_of_fetch(url: str, outcome: str = "ok", planned: str | None = None, **values: Any) -> Row:
    """A row of `fetches`: the first and last try of its planned URL."""
    return {
        "url_id": url_id(url), "planned_url_id": url_id(planned or url), "url": url, "host": host_of(url),
        "attempt": 1, "hop": 0, "final": True, "outcome": outcome, "started_at": NOW, "ended_at": NOW, **values,
    }  # fmt: skip


def row_of_page(url: str, checksum: int | None = None, **values: Any) -> Row:
    """A row of `pages`: a first capture."""
    return {
        "url_id": url_id(url), "planned_url_id": url_id(url), "url": url, "host": host_of(url), "fetched_at": NOW,
        "handler": "html", "parse_outcome": "ok", "change_verdict": "first", "content_checksum": checksum,
        "content_round_id": ROUND, **values,
    }  # fmt: skip


def row_of_link(source: str, target: str, **values: Any) -> Row:
    """A row of `links`: a followed anchor."""
    return {
        "src_url_id": url_id(source), "src_url": source, "src_host": host_of(source),
        "src_domain": registered_domain(host_of(source)), "dst_url_id": url_id(target), "dst_url": target,
        "dst_host": host_of(target), "dst_domain": registered_domain(host_of(target)), "link_kind": "a",
        "followed": True, **values,
    }  # fmt: skip


def row_of_outlinks(source: str, targets: Iterable[str], outlink_count: int) -> Row:
    """A row of `outlinks`."""
    return {
        "bucket": bucket_of(host_of(source), BUCKETS), "src_url_id": url_id(source), "links_round_id": BEFORE,
        "dst_url_ids": sorted(map(url_id, targets)), "outlink_count": outlink_count, "last_round_id": BEFORE,
    }  # fmt: skip


def row_of_content(checksum: int, representative: str) -> Row:
    """A row of `contents`."""
    return {
        "bucket": checksum % BUCKETS, "identity_checksum": checksum, "content_checksum": checksum,
        "first_url_id": url_id(representative), "first_round_id": BEFORE, "last_round_id": BEFORE,
    }  # fmt: skip


class Comparison:
    """SQL expressions against what Python says of the same rows, all over one frame.

    Args:
        spark: the session.
        schema: DDL of the columns.
        rows: their values.
    """

    def __init__(self, spark: SparkSession, schema: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._frame = spark.createDataFrame(list(rows), schema)
        self._rows = rows
        self._expected: list[tuple[str, Callable[..., Any], float]] = []

    def add(self, sql: str, oracle: Callable[..., Any], tolerance: float = 0.0) -> None:
        """An expression, and the function of a row's values that it must equal."""
        self._expected.append((sql, oracle, tolerance))

    def differences(self) -> list[str]:
        """A line for each value that differs; empty: SQL and Python agree."""
        found = self._frame.selectExpr(*[f"{sql} AS v{i}" for i, (sql, _, _) in enumerate(self._expected)]).collect()
        lines = []
        for row, values in zip(self._rows, found, strict=True):
            for (sql, oracle, tolerance), value in zip(self._expected, values, strict=True):
                wanted = oracle(*row)
                if not _alike(_value(value), wanted, tolerance):
                    lines.append(f"{sql[:60]}… of {row}: SQL {value!r}, Python {wanted!r}")
        return lines


def _alike(found: Any, wanted: Any, tolerance: float) -> bool:
    if found is None or wanted is None or not tolerance:
        return bool(found == wanted)
    return bool(found == wanted or abs(found - wanted) <= tolerance * max(abs(found), abs(wanted)))
