"""`make round` and `make up` as a newcomer meets them, in a checkout of their own."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.asking.reader import Reader
from recrawl.config import load_configuration
from recrawl.sampleweb import SampleWeb
from recrawl.storage import Store
from tests.dags.airflow_api import AirflowApi
from tests.dags.checkouts import checkout, processes_in

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]


def first_try(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run what `make round` runs."""
    command = [sys.executable, "-m", "recrawl.firsttry", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_two_rounds_over_the_sample_web_end_with_something_to_read(tmp_path: Path) -> None:
    environment = checkout(tmp_path)
    for number in (1, 2):
        done = first_try(tmp_path, environment)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
        assert f"Round {number} (" in done.stdout and "closed" in done.stdout
        assert "One of its pages: " in done.stdout
        queries = [
            line for line in done.stdout.splitlines() if "recrawl --config .recrawl/sample/recrawl.toml sql " in line
        ]
        assert len(queries) == 3
        assert "make round SEEDS=" in done.stdout
    log = next(
        (tmp_path / ".recrawl" / "airflow" / "logs").glob("dag_id=crawl_round/run_id=*/task_id=rank/attempt=1.log")
    )
    assert "rank: finished" in log.read_text(encoding="utf-8")
    # They are there to be copied; the engine without a JVM answers them as well.
    for query in queries:
        arguments = [*shlex.split(query)[1:], "--engine", "arrow", "--json"]
        command = [sys.executable, "-m", "recrawl.cli.main", *arguments]
        asked = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert asked.returncode == 0 and json.loads(asked.stdout), query + asked.stderr


def test_own_seeds_are_crawled_within_the_limits_of_a_first_try(tmp_path: Path) -> None:
    environment = checkout(tmp_path)
    (tmp_path / "recrawl.toml").write_text(
        '[dns]\nhosts_file = "hosts"\n[fetch]\nallowed_private_ranges = ["127.0.0.0/8"]\nmin_delay_seconds = 0\n',
        encoding="utf-8",
    )
    with SampleWeb(edition=1) as web:
        web.write_hosts(tmp_path / "hosts")
        host = f"garden.sample.test:{web.port}"
        (tmp_path / "seeds.txt").write_text(f"http://{host}/\nhttp://{host}/articles/3\n", encoding="utf-8")
        done = first_try(tmp_path, environment, "--seeds", "seeds.txt")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "your seeds in seeds.txt" in done.stdout and "Limits of a first try: scope host" in done.stdout
    reader = Reader(
        Store(load_configuration(None, {}, {"storage": {"root": str(tmp_path / ".recrawl/crawl")}}).storage)
    )
    assert [row["fetched"] for row in reader.rounds()] == [2]
    assert reader.query("SELECT DISTINCT host FROM urls").to_pylist() == [{"host": host}]
    # The front page links to its friends: each was seen and left out, with the reason.
    assert reader.query("SELECT count(*) AS n FROM rejects WHERE filter = 'scope'").to_pylist()[0]["n"] >= 7


def test_a_round_that_was_cut_off_is_continued(tmp_path: Path) -> None:
    environment = checkout(tmp_path)
    command = [sys.executable, "-m", "recrawl.firsttry"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("fetch: "):
                process.send_signal(signal.SIGTERM)
                break
        process.stdout.read()
    assert process.returncode == 130
    assert processes_in(tmp_path) == []
    done = first_try(tmp_path, environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "frontier: Done before in round" in done.stdout
    assert "Round 1 (" in done.stdout


def test_no_contact_is_told_with_the_lines_to_write(tmp_path: Path) -> None:
    environment = checkout(tmp_path)
    (tmp_path / "seeds.txt").write_text("http://site.test/\n", encoding="utf-8")
    done = first_try(tmp_path, environment, "--seeds", "seeds.txt")
    assert done.returncode == 2
    assert 'contact = "you@example.org"' in done.stderr
    missing = first_try(tmp_path, environment, "--seeds", "nowhere.txt")
    assert missing.returncode == 2 and "There is no seed file" in missing.stderr


def test_airflow_comes_up_beside_a_taken_port_and_goes_down_whole(tmp_path: Path) -> None:
    environment = checkout(tmp_path)
    command = [sys.executable, "-m", "recrawl.orchestration.standalone"]
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 8080))
        taken.listen()
        up = subprocess.run([*command, "up"], env=environment, capture_output=True, text=True, check=False)
        assert up.returncode == 0, up.stdout + up.stderr
        home = tmp_path / ".recrawl" / "airflow"
        running = json.loads((home / "standalone.json").read_text(encoding="utf-8"))
        assert running["port"] != 8080
        assert (home / "passwords.json").stat().st_mode & 0o777 == 0o600
        try:
            api = AirflowApi(tmp_path)
            assert api.address in up.stdout and api.password in up.stdout
            dag = api.dag()
            assert dag is not None and dag["is_paused"] is False
            again = subprocess.run([*command, "up"], env=environment, capture_output=True, text=True, check=True)
            assert str(running["port"]) in again.stdout
        finally:
            down = subprocess.run([*command, "down"], env=environment, capture_output=True, text=True, check=False)
    assert down.stdout == "Airflow has stopped.\n"
    assert processes_in(tmp_path) == []
    assert (
        subprocess.run([*command, "down"], env=environment, capture_output=True, check=True).stdout
        == b"Nothing runs.\n"
    )
