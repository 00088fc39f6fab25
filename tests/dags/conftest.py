"""Airflow for these tests: its own home and database, made before the first import of airflow.

Never a live home: runs of a test would be taken up by a real scheduler.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.bootstrap.places import Places
from recrawl.config import load_configuration
from recrawl.orchestration.environment import CONNECTION_VARIABLE, airflow_settings, spark_connection
from recrawl.spark.settings import DELTA_JARS, JARS_VARIABLE

FOLDER = Path(tempfile.mkdtemp(prefix="recrawl-test-airflow-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
DAGS = FOLDER / "dags"
PROGRAMS = FOLDER / "programs"
JARS = FOLDER / "jars"
DAGS.mkdir()
PROGRAMS.mkdir()
JARS.mkdir()

os.environ.update(
    airflow_settings(Places())
    | {
        "AIRFLOW_HOME": str(FOLDER),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(FOLDER / "plugins"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(FOLDER / "passwords.json"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{FOLDER / 'airflow.db'}",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(FOLDER / "logs"),
        CONNECTION_VARIABLE: spark_connection(load_configuration(environment={})),
    }
)

#: In the place of Spark's launcher: runs the job file with its arguments, without a JVM.
_LAUNCHER = """#!{python}
import subprocess, sys
job = next(i for i, argument in enumerate(sys.argv) if argument.endswith(".py") and i)
sys.exit(subprocess.call([sys.executable, *sys.argv[job:]]))
"""


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """Airflow's tables, once."""
    from airflow.utils import db

    db.initdb()


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A `spark-submit` on the path that starts no JVM, and jars that only have names."""
    for name in DELTA_JARS:
        (JARS / name).touch()
    program = PROGRAMS / "spark-submit"
    program.write_text(_LAUNCHER.format(python=sys.executable), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(JARS_VARIABLE, str(JARS))
    monkeypatch.setattr(
        "recrawl.orchestration.stage_task.spark_environment",
        lambda places: {"PATH": f"{PROGRAMS}:{os.environ['PATH']}"},
    )
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    yield
