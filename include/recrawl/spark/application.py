"""One Spark application: a single step (as a DAG runs it) or a whole round in one JVM.

Both ways go through `run_step`: the lease, the assignment of the run, the frozen configuration,
the step's `run`, its summary.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from recrawl.assignment import Assignment, require_assignment, save_step_summary, step_summary
from recrawl.clock import Clock, SystemClock
from recrawl.config import load_configuration
from recrawl.config.form import RoundForm
from recrawl.config.model import Configuration
from recrawl.errors import RecrawlError
from recrawl.lease import Lease, acquire
from recrawl.round_ledger import FOLDED_STATES, Round, find_round
from recrawl.rounds import round_id_of
from recrawl.spark.delta import Tables
from recrawl.spark.session import open_session
from recrawl.stages import STEP_NAMES
from recrawl.storage import Store
from recrawl.stored_tables import StoredTables
from recrawl.tables.vocabulary import RoundState

Summary = dict[str, Any]
HEARTBEAT_SECONDS = 10.0


class Application:
    """What every step of one process shares: configuration, storage, session.

    The session starts when it is first used: a step with nothing to do never waits for a JVM.
    """

    def __init__(self, configuration: Configuration, clock: Clock | None = None) -> None:
        self.configuration = configuration
        self.clock = clock or SystemClock()
        self.store = Store(configuration.storage)
        self.stored = StoredTables(self.store, configuration.storage)
        self._starting: Future[SparkSession] | None = None

    def start_session(self) -> None:
        """Begin to start the session beside what this thread does next."""
        self._starting = self._starting or ThreadPoolExecutor(1).submit(open_session, self.configuration)

    @cached_property
    def spark(self) -> SparkSession:
        """The session."""
        self.start_session()
        assert self._starting is not None
        return self._starting.result()

    def forget_kept(self) -> None:
        """Let go of every frame that a step persisted: plans and rows would stay as long as the session."""
        if self._starting is not None and self._starting.done() and self._starting.exception() is None:
            self.spark.catalog.clearCache()

    @cached_property
    def tables(self) -> Tables:
        """The crawl's tables as Spark sees them."""
        return Tables(self.spark, self.stored)

    @contextmanager
    def lease(self, owner: str, purpose: str, keep: bool) -> Iterator[Lease]:
        """Hold the lease; `keep` leaves it to the owner's next process when all went well."""
        lease = acquire(self.store, owner, purpose, self.configuration.storage.lease_seconds, self.clock)
        with lease:
            yield lease
            if keep:
                lease.leave()


@dataclass(frozen=True)
class Step:
    """What a step's `run` gets: the frozen round and readers bound to its opening versions."""

    application: Application
    round: Round
    assignment: Assignment
    configuration: Configuration
    lease: Lease

    @property
    def spark(self) -> SparkSession:
        return self.application.spark

    @property
    def tables(self) -> Tables:
        return self.application.tables

    @property
    def store(self) -> Store:
        return self.application.store

    @property
    def round_id(self) -> str:
        return self.round.round_id

    @property
    def buckets(self) -> int:
        return self.configuration.storage.buckets

    def opening(self, table: str) -> DataFrame:
        """A state table or ledger as this round found it (rule R4)."""
        return self.tables.read(table, self.round.version_at_open(table))

    def opening_rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a small ledger as this round found it, without Spark."""
        return self.application.stored.rows(table, self.round.version_at_open(table))

    def slice(self, table: str) -> DataFrame:
        """This round's rows of an event table."""
        return self.tables.read_slice(table, self.round_id)

    def write(self, table: str, rows: DataFrame, step: str | None = None) -> None:
        """Replace this round's slice of an event table."""
        self.lease.check()
        self.tables.write_slice(table, self.round_id, rows, step)


def say(text: str) -> None:
    """One line for the operator: the task's log in Airflow, the terminal elsewhere."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


@contextmanager
def progress(line: Callable[[], str], seconds: float = HEARTBEAT_SECONDS) -> Iterator[None]:
    """Say `line()` every few seconds while the block runs."""
    ended = threading.Event()

    def speak() -> None:
        while not ended.wait(seconds):
            text = line()
            if text:
                say(text)

    thread = threading.Thread(target=speak, name="recrawl-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=seconds)


def stage_progress(spark: SparkSession, step: str) -> Callable[[], str]:
    """A line with the Spark tasks that run now."""

    def line() -> str:
        tracker = spark.sparkContext.statusTracker()
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
        done, total = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
        running = sum(s.numActiveTasks for s in stages)
        return f"{step}: {done} of {total} Spark tasks done, {running} running" if stages else f"{step}: at work"

    return line


def run_step(application: Application, name: str, run_id: str, form: RoundForm) -> Summary:
    """Run one step for a run; a step with nothing to do says so and returns at once.

    Raises:
        RecrawlError: whatever stops the step.
    """
    started = time.monotonic()
    if name != "seed":
        assignment = require_assignment(application.store, run_id)
        if not assignment.covers(name):
            say(f"{name}: done before in round {assignment.round_id}; this run begins with {assignment.first_step}.")
            return {"done_before": True}
        if assignment.plan_only and name not in ("frontier", "rank"):
            say(f"{name}: plan only, nothing to do.")
            return {"plan_only": True}
        if name in _NEEDS_A_PLAN and _plan_is_empty(application, assignment.round_id):
            say(f"{name}: nothing was planned, nothing to do.")
            save_step_summary(application.store, assignment.round_id, name, {"planned": 0})
            return {"planned": 0}
    with application.lease(run_id, f"the step {name} of run {run_id}", keep=name != STEP_NAMES[-1]) as lease:
        if name == "seed":
            summary: Summary = importlib.import_module("jobs.seed").run(application, run_id, form, lease)
        else:
            summary = _run_in_round(application, name, run_id, lease)
    say(f"{name}: finished in {time.monotonic() - started:.1f} s. {_brief(summary)}")
    return summary


#: Steps whose slices stay empty where the plan is.
_NEEDS_A_PLAN = ("fetch", "parse", "dedupe")


def _plan_is_empty(application: Application, round_id: str) -> bool:
    return (step_summary(application.store, round_id, "frontier") or {}).get("planned") == 0


def _run_in_round(application: Application, name: str, run_id: str, lease: Lease) -> Summary:
    assignment = require_assignment(application.store, run_id)
    row = find_round(application.stored, assignment.round_id)
    if row.state in (*FOLDED_STATES, RoundState.UNDONE, RoundState.UNDOING):
        say(f"{name}: round {row.round_id} is {row.state}; nothing to do.")
        return {"round_state": str(row.state)}
    step = Step(application, row, assignment, row.configuration(application.configuration), lease)
    job = importlib.import_module(f"jobs.{name}")
    line = job.progress_line(step) if hasattr(job, "progress_line") else stage_progress(application.spark, name)
    try:
        with progress(line):
            summary: Summary = job.run(step)
    finally:
        application.forget_kept()
    save_step_summary(application.store, row.round_id, name, summary)
    return summary


def _brief(summary: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in summary.items() if isinstance(value, int | str))


def run_round(configuration: Configuration, form: RoundForm, run_id: str | None = None) -> dict[str, Summary]:
    """All six steps in this process, one JVM start; the summaries by step.

    Raises:
        RecrawlError: whatever stops a step; the next round continues from there.
    """
    application = Application(configuration)
    application.start_session()
    run_id = run_id or form.round_id or round_id_of(application.clock.now())
    summaries: dict[str, Summary] = {}
    for name in STEP_NAMES:
        summaries[name] = run_step(application, name, run_id, form)
    return summaries


def step_main(name: str) -> None:
    """The command line of `jobs/<name>.py`: `--run RUN_ID --form JSON`."""
    parser = argparse.ArgumentParser(description=f"The step {name} of a crawl round.")
    parser.add_argument("--run", required=True, help="the run's round id, e.g. 20261130T030000.000000Z")
    parser.add_argument("--form", default="{}", help="the trigger form as JSON")
    arguments = parser.parse_args()
    try:
        form = RoundForm.from_json(arguments.form)
        configuration = load_configuration(overrides=form.overrides())
        summary = run_step(Application(configuration), name, arguments.run, form)
    except RecrawlError as error:
        print(f"recrawl: {error}", file=sys.stderr, flush=True)
        raise SystemExit(error.exit_status) from None
    print(json.dumps({"step": name, **summary}, default=str), flush=True)
