"""Airflow's metadata on a real Postgres: migrated, then a DAG run recorded in it."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.bootstrap.places import Places
from recrawl.config import load_configuration
from recrawl.orchestration.environment import (
    CONNECTION_VARIABLE,
    airflow_settings,
    process_environment,
    spark_connection,
)
from recrawl.sampleweb import SampleWeb
from recrawl.stages import STEP_NAMES
from tests.dags.checkouts import checkout


def _programs_folder() -> Path | None:
    """Where initdb and postgres lie: on the path, or in Debian's folder of the newest version."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return found[-1].parent if found else None


PROGRAMS = _programs_folder()

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(PROGRAMS is None, reason="needs Postgres (Debian: postgresql)"),
]


class Postgres:
    """A server of its own in a folder of its own, reached by its socket alone."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAMS is not None
        self.folder = folder
        # Postgres refuses to run as root.
        self._user = _unprivileged_user() if os.getuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        made = ("--pgdata", str(folder / "data"), "--encoding", "UTF8", "--username", "airflow", "--auth", "trust")
        self._run("initdb", *made, "--no-sync")
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        self._run(
            "pg_ctl", "--pgdata", str(folder / "data"), "--wait", "--log", str(folder / "log"), "-o", options, "start"
        )
        self._run("createdb", "--host", str(folder), "--username", "airflow", "airflow")

    @property
    def address(self) -> str:
        """For SQLAlchemy."""
        return f"postgresql+psycopg2://airflow@/airflow?host={self.folder}"

    def ask(self, query: str) -> list[list[str]]:
        """The rows of a query."""
        client = ("psql", "--host", str(self.folder), "--username", "airflow", "--no-align", "--tuples-only")
        return [line.split("|") for line in self._run(*client, "--command", query, "airflow").splitlines()]

    def stop(self) -> None:
        """End the server."""
        self._run("pg_ctl", "--pgdata", str(self.folder / "data"), "--wait", "--mode", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> str:
        assert PROGRAMS is not None
        # Not a pipe for pg_ctl: the server that it leaves behind would hold it open.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [str(PROGRAMS / program), *arguments],
                cwd="/", user=self._user, env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
            output.seek(0)
            text = output.read()
        assert done.returncode == 0, text
        return text


def _unprivileged_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A running server."""
    # Not pytest's folder: only this user may enter that.
    folder = Path(tempfile.mkdtemp(prefix="recrawl-postgres-"))
    try:
        server = Postgres(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def test_a_round_is_recorded_in_postgres(postgres: Postgres, tmp_path: Path) -> None:
    places = Places(tmp_path)
    environment = checkout(tmp_path) | {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": postgres.address,
        "RECRAWL__STORAGE__ROOT": str(tmp_path / "crawl"),
        "RECRAWL__STORAGE__BUCKETS": "4",
        "RECRAWL__DNS__HOSTS_FILE": str(tmp_path / "hosts"),
        "RECRAWL__FETCH__ALLOWED_PRIVATE_RANGES": '["127.0.0.0/8"]',
        "RECRAWL__FETCH__MIN_DELAY_SECONDS": "0",
        CONNECTION_VARIABLE: spark_connection(load_configuration("/dev/null", {})),
    }
    settings = airflow_settings(places)
    environment = process_environment(environment, settings, places)
    Path(settings["AIRFLOW_HOME"]).mkdir(parents=True)
    assert environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == postgres.address
    airflow = [sys.executable, "-m", "airflow"]
    migrated = subprocess.run([*airflow, "db", "migrate"], env=environment, capture_output=True, text=True, check=False)
    assert migrated.returncode == 0, migrated.stdout[-2000:] + migrated.stderr[-2000:]
    assert postgres.ask("SELECT count(*) FROM alembic_version") == [["1"]]
    with SampleWeb(edition=1) as web:
        web.write_hosts(tmp_path / "hosts")
        form = json.dumps({"seeds": web.seeds()[:8]})
        command = [sys.executable, "-m", "recrawl.orchestration.single_run", form]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
    assert postgres.ask("SELECT dag_id, state FROM dag_run") == [["crawl_round", "success"]]
    tasks = postgres.ask("SELECT task_id, state FROM task_instance ORDER BY start_date")
    assert tasks == [[name, "success"] for name in STEP_NAMES]
    assert not (places.state / "airflow" / "airflow.db").exists()
