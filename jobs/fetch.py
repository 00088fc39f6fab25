"""fetch: one Spark task a fetch partition, politely, into WARC files.

The tasks' truth is the journals beside the WARC files (rule R4); `fetches`, `host_visits`,
`robots`, `warc_files` and the skips of this step are built from them.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.fetch_tables import MERGED_TABLES, OWN_TABLES, TablesTask
from recrawl.clock import SystemClock
from recrawl.config.model import Configuration
from recrawl.fetch.journal import journal_names
from recrawl.fetch.partition import HostRecord, KnownHost, PartitionTask, PlannedUrl, StoredRobots, run_partition
from recrawl.fetch.work import PlanItem
from recrawl.live import live_figures
from recrawl.spark.application import Step, Summary, stage_progress, step_main
from recrawl.spark.scope import scope_set
from recrawl.table_parts import PartFile
from recrawl.tables.vocabulary import OverrideKind, RobotsOutcome
from recrawl.urls.scope import ScopeSet

_PLAN_COLUMNS = [
    "url_id",
    "url",
    "request_url",
    "host",
    "rank_in_host",
    "crawl_value",
    "depth",
    "max_bytes",
    "etag",
    "last_modified",
    "last_payload_digest",
    "last_warc_file",
    "last_warc_record_id",
    "last_warc_date",
    "earliest_at",
]
_HOST_COLUMNS = [
    "ips",
    "crawl_delay_seconds",
    "adaptive_delay_seconds",
    "last_access_at",
    "blocked_until",
    "error_streak",
]

#: The last try decides what holds now; the last file with rules may stand in for an unreachable one.
_NEWEST_ROBOTS = "max_by(struct(robots_outcome, expires_at, fetched_at), fetched_at)"
_NEWEST_RULES = (
    "max_by(struct(body, body_digest, fetched_at), fetched_at) "
    f"FILTER (WHERE robots_outcome <> '{RobotsOutcome.UNREACHABLE}')"
)

#: Rows of an Arrow batch that are Python objects at the same time.
_ROWS_AT_ONCE = 500

_SUMMARY_SCHEMA = "fetch_partition INT, summary STRING"


def progress_line(step: Step) -> Callable[[], str]:
    """The live figures of the fetch tasks; Spark's own while none has reported."""
    fallback = stage_progress(step.spark, "fetch")

    def line() -> str:
        figures = live_figures(step.store, step.round_id)
        return figures.line() if figures else fallback()

    return line


def run(step: Step) -> Summary:
    """Fetch what is planned, then build the tables from the journals."""
    plan = step.slice("fetch_plan")
    deadline = _deadline(step)
    task = partial(
        fetch_partition,
        round_id=step.round_id,
        configuration=step.configuration,
        deadline=deadline,
        scope=scope_set(step),
        blocked=frozenset(_decided(step, OverrideKind.BLOCK)),
        excluded=tuple(_decided(step, OverrideKind.EXCLUDE)),
        drained=step.assignment.abandon,
    )
    partitions = _partition_count(plan)
    summaries: list[dict[str, Any]] = []
    if partitions:
        work = with_host_state(step, plan).repartitionById(partitions, F.col("fetch_partition"))
        rows = work.sortWithinPartitions("host", "rank_in_host").mapInArrow(task, _SUMMARY_SCHEMA).collect()
        summaries = [json.loads(row["summary"]) for row in rows]
    write_tables(step)
    figures = {key: sum(int(s[key]) for s in summaries) for key in ("planned", "final", "skipped", "requests")}
    return {**figures, "partitions": partitions}


def _deadline(step: Step) -> datetime:
    """When this run's fetching ends: fixed when it begins, the same after a retry."""
    name = f"control/runs/{step.assignment.run_id}.deadline"
    proposed = step.application.clock.now() + timedelta(seconds=step.configuration.fetch.time_budget_seconds)
    step.store.create(name, proposed.isoformat().encode())
    stored = step.store.read_bytes(name)
    return datetime.fromisoformat(stored.decode()) if stored else proposed


def _partition_count(plan: DataFrame) -> int:
    row = plan.agg(F.max("fetch_partition")).first()
    return 0 if row is None or row[0] is None else int(row[0]) + 1


def with_host_state(step: Step, plan: DataFrame) -> DataFrame:
    """The plan; a host's first row also carries what is known of the host and its robots.txt files."""
    hosts = step.opening("hosts").select("host", F.struct(*_HOST_COLUMNS).alias("known_host"))
    robots = (
        step.tables.read("robots")
        .where(F.col("round_id") < step.round_id)
        .groupBy("host", "scheme")
        .agg(F.expr(_NEWEST_ROBOTS).alias("newest"), F.expr(_NEWEST_RULES).alias("rules"))
        .selectExpr(
            "host",
            "struct(scheme, newest.robots_outcome AS outcome, rules.body AS body, rules.body_digest AS digest, "
            "newest.expires_at AS expires_at, coalesce(rules.fetched_at, newest.fetched_at) AS fetched_at) AS file",
        )
        .groupBy("host")
        .agg(F.collect_list("file").alias("known_robots"))
    )
    planned_hosts = plan.select("host").distinct()
    known = planned_hosts.join(hosts, "host", "left").join(robots, "host", "left")
    first = F.col("rank_in_host") == 1
    return plan.join(known, "host").select(
        "fetch_partition",
        *_PLAN_COLUMNS,
        F.when(first, F.col("known_host")).alias("known_host"),
        F.when(first, F.col("known_robots")).alias("known_robots"),
    )


def _decided(step: Step, kind: OverrideKind) -> list[str]:
    """The subjects of a kind of decision in force when the round opened."""
    return sorted(row["subject"] for row in step.opening_rows("overrides") if row["override_kind"] == str(kind))


def fetch_partition(
    batches: Iterator[pa.RecordBatch],
    *,
    round_id: str,
    configuration: Configuration,
    deadline: datetime,
    scope: ScopeSet,
    blocked: frozenset[str],
    excluded: tuple[str, ...],
    drained: bool,
) -> Iterator[pa.RecordBatch]:
    """One Spark task: the whole of a fetch partition; yields one row with its summary."""
    rows = _rows_of(batches)
    first = next(rows, None)
    if first is None:
        return
    partition = first["fetch_partition"]
    token = uuid.uuid4().hex
    task = PartitionTask(
        round_id=round_id,
        partition=partition,
        configuration=configuration,
        deadline=deadline,
        scope=scope,
        blocked_hosts=blocked,
        excluded_prefixes=excluded,
        attempt_token=token,
        drained=drained,
    )
    plan = _plan_of(chain([first], rows))
    summary = run_partition(task, plan, SystemClock(), random.Random(f"{round_id}/{partition}/{token}"))
    yield pa.RecordBatch.from_pydict(
        {"fetch_partition": pa.array([partition], pa.int32()), "summary": [json.dumps(asdict(summary), default=str)]}
    )


def _rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """The rows of a partition, a few at a time in memory."""
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield from batch.slice(start, _ROWS_AT_ONCE).to_pylist()


def _plan_of(rows: Iterable[dict[str, Any]]) -> Iterator[PlanItem]:
    """The plan as the task reads it: what is known of a host, then its URLs."""
    for row in rows:
        del row["fetch_partition"]
        host, known, files = row["host"], row.pop("known_host"), row.pop("known_robots")
        if known is not None or files:
            record = HostRecord(host=host, **{**known, "ips": tuple(known["ips"] or ())}) if known else None
            yield KnownHost(host, record, tuple(_stored_robots(file) for file in files or ()))
        yield PlannedUrl(**row)


def _stored_robots(file: dict[str, Any]) -> tuple[str, StoredRobots]:
    scheme = file.pop("scheme")
    return scheme, StoredRobots(**{**file, "outcome": RobotsOutcome(file["outcome"])})


def write_tables(step: Step) -> None:
    """Build this step's slices from every published journal of the round."""
    journals = journal_names(step.store, step.round_id)
    said = _written_parts(step, journals).collect() if journals else []
    parts = [PartFile.from_text(row["row"]) for row in said]
    for table in (*OWN_TABLES, *MERGED_TABLES):
        step.lease.check()
        own_step = "fetch" if table == "skips" else None
        step.application.stored.commit_parts(table, step.round_id, parts, own_step)


def _written_parts(step: Step, journals: list[str]) -> DataFrame:
    """One row a data file: tasks read whole journals, then tasks merge what several say of one host."""
    task = TablesTask(step.round_id, step.configuration.storage)
    schema = "host STRING, table STRING, row STRING"
    # Few long journals or many short ones: as many tasks as there is something to do for.
    spread = min(len(journals), 4 * step.spark.sparkContext.defaultParallelism)
    names = step.spark.createDataFrame(pa.table({"journal": journals}))
    lines = names.repartition(spread).mapInArrow(task.read, schema)
    return lines.repartition("host").sortWithinPartitions("host").mapInArrow(task.merge, schema)


if __name__ == "__main__":
    step_main("fetch")
