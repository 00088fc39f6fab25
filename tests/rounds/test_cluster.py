"""A round on Spark's standalone master with two worker processes, all on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from recrawl.bootstrap.java import java_environment
from tests.rounds.crawl import ROUND_IDS, Crawl, start_round

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]

ADDRESS = "127.0.0.1"
_PATIENCE_SECONDS = 60.0


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


@contextmanager
def spark_process(folder: Path, name: str, *arguments: str) -> Iterator[Path]:
    """A master or worker that runs while the block does; gives its log."""
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
        yield log
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
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[Path]]]:
    """The master's address and the folders in which its two workers keep their executors."""
    port = free_port()
    master = f"spark://{ADDRESS}:{port}"
    common = ("--host", ADDRESS, "--webui-port", "0")
    with ExitStack() as running:
        start = "org.apache.spark.deploy.master.Master"
        log = running.enter_context(spark_process(tmp_path, "master", start, *common, "--port", str(port)))
        wait_for(log, "I have been elected leader")
        folders = [tmp_path / f"work-{number}" for number in (1, 2)]
        for folder in folders:
            start = "org.apache.spark.deploy.worker.Worker"
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder))
            log = running.enter_context(spark_process(tmp_path, folder.name, start, *common, *size, master))
            wait_for(log, "Successfully registered with master")
        yield master, folders


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps (Debian: procps), which Spark's scripts call")
def test_two_workers_give_the_rows_that_one_process_gives(
    cluster: tuple[str, list[Path]], new_crawl: Callable[[str], Crawl]
) -> None:
    master, folders = cluster
    spread, alone = new_crawl("spread"), new_crawl("alone")
    # A cluster's defaults are for tables of millions of rows; 50 tasks for each look at a log would take minutes here.
    small = {"spark.databricks.delta.snapshotPartitions": "2", "spark.sql.codegen.wholeStage": "false"}
    extra = small | {"spark.driver.host": ADDRESS, "spark.driver.bindAddress": ADDRESS}
    settings = {"master": master, "executor_memory": "800m", "shuffle_partitions": 2, "extra": extra}
    for run_id in ROUND_IDS[:2]:
        for crawl, spark in ((spread, settings), (alone, {})):
            process = start_round(crawl, run_id, crawl.form(), spark=spark)
            assert process.wait(600) == 0, (crawl.folder / "round.log").read_text(encoding="utf-8")[-3000:]
    assert all(list(folder.glob("app-*/*/stderr")) for folder in folders), "each worker had its executor"
    for table in ("fetches", "pages", "links", "discovered", "url_updates"):
        rows = spread.slice(table, ROUND_IDS[1])
        assert rows and rows == alone.slice(table, ROUND_IDS[1])
    assert spread.state("urls") == alone.state("urls")
    parts = spread.rows("SELECT DISTINCT fetch_partition FROM fetch_plan")
    assert len(parts) == 2
