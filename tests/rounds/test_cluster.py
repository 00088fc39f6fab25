"""A round on Spark's standalone master with two worker processes, all on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from recrawl.bootstrap.java import java_environment
from tests.rounds.crawl import HOSTS, ROUND_IDS, Crawl, audit_of_cash, start_round
from tests.web import MisbehavingWeb

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]

ADDRESS = "127.0.0.1"
_PATIENCE_SECONDS = 60.0


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Cluster:
    """The master's address, its workers and the folders in which these keep their executors."""

    master: str
    workers: list[subprocess.Popen[bytes]]
    folders: list[Path]

    def settings(self) -> dict[str, object]:
        """The section `spark` of a crawl that runs here."""
        # A cluster's defaults are for millions of rows; 50 tasks for each look at a log would take minutes here.
        small = {"spark.databricks.delta.snapshotPartitions": "2", "spark.sql.codegen.wholeStage": "false"}
        extra = small | {"spark.driver.host": ADDRESS, "spark.driver.bindAddress": ADDRESS}
        return {"master": self.master, "executor_memory": "800m", "shuffle_partitions": 2, "extra": extra}


@contextmanager
def spark_process(folder: Path, name: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A master or worker, at the head of a process group, that runs while the block does; and its log."""
    log = folder / f"{name}.log"
    environment = os.environ | java_environment() | {
        "SPARK_LOCAL_IP": ADDRESS,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "SPARK_NO_DAEMONIZE": "1",
    }  # fmt: skip
    command = [str(Path(sys.executable).parent / "spark-class"), *arguments]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment, start_new_session=True)
    try:
        yield process, log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(log: Path, words: str) -> None:
    """Wait until a log says something."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while words not in log.read_text(encoding="utf-8", errors="replace"):
        assert time.monotonic() < deadline, log.read_text(encoding="utf-8", errors="replace")[-2000:]
        time.sleep(0.2)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers of one core."""
    if shutil.which("ps") is None:
        pytest.skip("needs ps (Debian: procps), which Spark's scripts call")
    port = free_port()
    master = f"spark://{ADDRESS}:{port}"
    common = ("--host", ADDRESS, "--webui-port", "0")
    with ExitStack() as running:
        start = "org.apache.spark.deploy.master.Master"
        _, log = running.enter_context(spark_process(tmp_path, "master", start, *common, "--port", str(port)))
        wait_for(log, "I have been elected leader")
        workers, folders = [], [tmp_path / f"work-{number}" for number in (1, 2)]
        for folder in folders:
            start = "org.apache.spark.deploy.worker.Worker"
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder))
            worker, log = running.enter_context(spark_process(tmp_path, folder.name, start, *common, *size, master))
            wait_for(log, "Successfully registered with master")
            workers.append(worker)
        yield Cluster(master, workers, folders)


def test_two_workers_give_the_rows_that_one_process_gives(cluster: Cluster, new_crawl: Callable[[str], Crawl]) -> None:
    spread, alone = new_crawl("spread"), new_crawl("alone")
    for run_id in ROUND_IDS[:2]:
        for crawl, spark in ((spread, cluster.settings()), (alone, {})):
            process = start_round(crawl, run_id, crawl.form(), spark=spark)
            assert process.wait(600) == 0, (crawl.folder / "round.log").read_text(encoding="utf-8")[-3000:]
    assert all(list(folder.glob("app-*/*/stderr")) for folder in cluster.folders), "each worker had its executor"
    for table in ("fetches", "pages", "links", "discovered", "url_updates"):
        rows = spread.slice(table, ROUND_IDS[1])
        assert rows and rows == alone.slice(table, ROUND_IDS[1])
    assert spread.state("urls") == alone.state("urls")
    parts = spread.rows("SELECT DISTINCT fetch_partition FROM fetch_plan")
    assert len(parts) == 2


def test_a_worker_killed_in_fetch_costs_a_retry_and_nothing_is_counted_twice(
    cluster: Cluster, new_crawl: Callable[[str], Crawl], web: MisbehavingWeb
) -> None:
    # Given: a round of 36 pages, a second between those of a host; both workers fetch.
    crawl = new_crawl("killed")
    pages = [f"/page/{number}.html" for number in range(1, 13)]
    form = crawl.form(seeds=[f"{web.url(host, page)} scope=page" for host in HOSTS for page in pages])
    web.clear_log()
    polite = {"min_delay_seconds": 1, "latency_factor": 0}
    process = start_round(crawl, ROUND_IDS[0], form, spark=cluster.settings(), fetch=polite)

    def contents() -> list[tuple[str, str]]:
        return [(hit.host, hit.path) for hit in web.log if hit.path in pages]

    deadline = time.monotonic() + 300
    while {host for host, _ in contents()} != set(HOSTS) or len(contents()) < 9:
        assert process.poll() is None and time.monotonic() < deadline, (crawl.folder / "round.log").read_text()[-3000:]
        time.sleep(0.05)

    # When: one of them goes, with its executor.
    os.killpg(cluster.workers[0].pid, signal.SIGKILL)
    before = contents()

    # Then
    assert process.wait(600) == 0, (crawl.folder / "round.log").read_text(encoding="utf-8")[-3000:]
    assert len(before) < len(HOSTS) * len(pages), "the worker was killed while there was something to fetch"
    assert crawl.rows("SELECT round_state FROM rounds") == [{"round_state": "closed"}]
    planned = sorted(row["url_id"] for row in crawl.rows("SELECT url_id FROM fetch_plan"))
    final = [row["planned_url_id"] for row in crawl.rows("SELECT planned_url_id FROM fetches WHERE final")]
    skipped = [row["url_id"] for row in crawl.rows("SELECT url_id FROM skips WHERE step = 'fetch'")]
    assert len(planned) == len(HOSTS) * len(pages)
    assert sorted(final + skipped) == planned
    # What was under way when it was killed is asked for again; the rest was in what the retry found.
    asked = Counter(contents())
    assert max(asked.values()) <= 2
    assert sum(count - 1 for count in asked.values()) <= len(HOSTS)
    audit = web.audit()
    assert set(audit.max_concurrency().values()) == {1}
    assert min(audit.min_gap_seconds().values()) > 0.9
    held, granted = audit_of_cash(crawl)
    assert held == granted
