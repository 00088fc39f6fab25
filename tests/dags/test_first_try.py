"""`make round` and `make up` as a newcomer meets them, in a checkout of their own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

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
        assert done.stdout.count("recrawl --config .recrawl/sample/recrawl.toml sql ") == 3
        assert "make round SEEDS=" in done.stdout
    log = next(
        (tmp_path / ".recrawl" / "airflow" / "logs").glob("dag_id=crawl_round/run_id=*/task_id=rank/attempt=1.log")
    )
    assert "rank: finished" in log.read_text(encoding="utf-8")


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
