"""The project's Python environment: exactly the packages of requirements.lock.

Two marks in the environment say what is done: the packages of which lock file, and the project
itself with which pyproject.toml. A missing or older mark means work; equal marks mean none.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from recrawl.bootstrap.places import Places
from recrawl.bootstrap.processes import run, say
from recrawl.errors import EnvironmentFaultError

#: The installer that reads the lock file in parallel; pip alone takes several times as long.
UV_VERSION = "0.13.9"

#: Measured for Linux x86-64 with an empty cache: 843 MB of packages and 20 MB of uv.
DOWNLOAD_MB = 863
INSTALLED_MB = 1_400

OLDEST_PYTHON = (3, 11)
FIRST_UNTRIED_PYTHON = (3, 14)

_MARK_FILE = "recrawl-installed.json"


def packages_are_installed(places: Places) -> bool:
    """Whether the environment holds the packages of today's lock file."""
    return places.python.exists() and _marks(places).get("lock") == _digest(places.lock_file)


def project_is_installed(places: Places) -> bool:
    """Whether the project itself (its command, its packages) is known to the environment."""
    return places.program("recrawl").exists() and _marks(places).get("project") == _project_digest(places)


def install_packages(places: Places) -> None:
    """Make the environment hold the packages of the lock file, no more and no less.

    Raises:
        EnvironmentFaultError: no network, disk full, no venv module, a package that fails.
    """
    _make_venv(places)
    environment = installer_environment(places)
    try:
        run(_pip(places, "install", "--quiet", f"uv=={UV_VERSION}"), "installing the installer (uv)", environment)
    except EnvironmentFaultError as fault:
        say(f"    uv can't be had ({fault.message}); pip does it, which takes longer")
        run(
            _pip(places, "install", "--quiet", "--require-hashes", "-r", str(places.lock_file)),
            "installing packages with pip",
            environment,
        )
    else:
        run(
            [places.program("uv"), "pip", "sync", "--python", places.python, "--require-hashes", places.lock_file],
            "installing packages",
            environment,
        )
    _mark(places, "lock", _digest(places.lock_file))


def install_project(places: Places) -> None:
    """Make the project importable and its command callable, from where it lies."""
    environment = installer_environment(places)
    arguments = ("install", "--quiet", "--no-deps", "--editable", str(places.project))
    if places.program("uv").exists():
        command: list[str | Path] = [places.program("uv"), "pip", *arguments, "--python", places.python]
        run(command, "installing the project", environment)
    else:
        run(_pip(places, *arguments), "installing the project", environment)
    _mark(places, "project", _project_digest(places))


def check_python() -> None:
    """Raises EnvironmentFaultError when the running Python is none that the project supports."""
    if not OLDEST_PYTHON <= sys.version_info[:2] < FIRST_UNTRIED_PYTHON:
        found = ".".join(str(part) for part in sys.version_info[:3])
        raise EnvironmentFaultError(
            f"Python {found} is not one that recrawl runs on (3.11, 3.12, 3.13).",
            "Install one of these and name it: make round PYTHON=python3.12.",
        )


def _make_venv(places: Places) -> None:
    if places.python.exists() and places.program("pip").exists():
        return
    # --clear: an environment without Python or pip is the rest of a run that was cut off.
    run([sys.executable, "-m", "venv", "--clear", places.venv], "making the environment")


def _pip(places: Places, *arguments: str) -> list[str | Path]:
    return [places.python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]


def installer_environment(places: Places) -> dict[str, str]:
    """The environment for uv: it does not read pip's settings, so they are handed on."""
    environment = dict(os.environ)
    environment.pop("VIRTUAL_ENV", None)
    for pip_option, uv_variable in (
        ("index-url", "UV_DEFAULT_INDEX"),
        ("extra-index-url", "UV_INDEX"),
        ("find-links", "UV_FIND_LINKS"),
        ("cert", "SSL_CERT_FILE"),
    ):
        value = _pip_setting(places, pip_option)
        if value and uv_variable not in environment:
            environment[uv_variable] = value
    return environment


def _pip_setting(places: Places, option: str) -> str:
    from_environment = os.environ.get(f"PIP_{option.upper().replace('-', '_')}")
    if from_environment:
        return from_environment
    found = subprocess.run(
        [str(part) for part in _pip(places, "config", "get", f"global.{option}")],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() if found.returncode == 0 else ""


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _project_digest(places: Places) -> str:
    # The folder is part of it: an environment that was moved or copied points to the old place.
    return f"{_digest(places.project / 'pyproject.toml')} {places.project}"


def _marks(places: Places) -> dict[str, str]:
    try:
        marks: dict[str, str] = json.loads((places.venv / _MARK_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return marks


def _mark(places: Places, name: str, value: str) -> None:
    marks = {**_marks(places), name: value}
    temporary = places.venv / f".{_MARK_FILE}"
    temporary.write_text(json.dumps(marks, indent=1), encoding="utf-8")
    temporary.replace(places.venv / _MARK_FILE)
