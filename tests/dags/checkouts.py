"""A second checkout of the project for tests that make and change what lies in `.recrawl`."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from recrawl.config.load import PROJECT_FOLDER
from recrawl.spark.settings import jars_folder

_PARTS = ("include", "jobs", "dags", "plugins", "pyproject.toml", "requirements.lock", "Makefile")


def checkout(folder: Path) -> dict[str, str]:
    """Copy the project to `folder`; gives the environment in which the copy is the one that runs.

    Packages and jars are those of this checkout.
    """
    for name in _PARTS:
        source = PROJECT_FOLDER / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, folder / name)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "RECRAWL"))}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join((str(folder / "include"), str(folder))),
        "RECRAWL_JARS": str(jars_folder()),
    }


def processes_in(folder: Path) -> list[str]:
    """The command lines of processes that work in a folder, after a moment to end."""
    for _ in range(50):
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                if str(folder) in command or os.readlink(process / "cwd").startswith(str(folder)):
                    found.append(command)
            except OSError:
                continue
        if not found:
            return []
        time.sleep(0.2)
    return found
