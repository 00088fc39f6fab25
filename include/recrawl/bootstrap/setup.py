"""The phases of the set-up: what is missing, what it costs, doing it."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recrawl.bootstrap import class_archive, jars, java, packages
from recrawl.bootstrap.places import Places
from recrawl.bootstrap.processes import say
from recrawl.errors import EnvironmentFaultError

_SPARE_MB = 700


@dataclass(frozen=True)
class Phase:
    """One part of the set-up that is still to do.

    Attributes:
        title: what it does.
        download_mb: megabytes that it fetches when nothing of it is cached.
        about: how long it takes, in words.
        disk_mb: megabytes that it leaves on the disk.
        run: does it.
    """

    title: str
    download_mb: int
    about: str
    disk_mb: int
    run: Callable[[], object]


def phases_to_do(places: Places, s3: bool = False) -> list[Phase]:
    """What is missing on this machine, in order; empty when all is there.

    Args:
        s3: the jars for an S3-compatible store are wanted too.
    """
    phases: list[Phase] = []
    if not packages.packages_are_installed(places):
        phases.append(
            Phase(
                "Python environment in .venv, exact versions from requirements.lock",
                packages.DOWNLOAD_MB,
                "1 to 5 minutes",
                packages.INSTALLED_MB,
                lambda: packages.install_packages(places),
            )
        )
    if phases or not packages.project_is_installed(places):
        phases.append(Phase("the command recrawl", 2, "5 seconds", 1, lambda: packages.install_project(places)))
    if java.find_java(places) is None:
        phases.append(
            Phase(
                f"Java (none from version {java.OLDEST_JAVA} on was found)",
                java.DOWNLOAD_MB,
                "10 seconds to 1 minute",
                120,
                lambda: java.install_java(places),
            )
        )
    if jars.missing_jars(places):
        phases.append(
            Phase("Delta Lake's two jars", jars.DOWNLOAD_MB, "10 seconds", 20, lambda: jars.fetch_jars(places))
        )
    if s3 and jars.missing_jars(places, jars.S3_JARS):
        phases.append(
            Phase(
                "jars for an S3-compatible store",
                jars.S3_DOWNLOAD_MB,
                "1 to 5 minutes",
                jars.S3_DOWNLOAD_MB,
                lambda: jars.fetch_jars(places, jars.S3_JARS),
            )
        )
    if class_archive.archive_is_wanted(places) or not packages.packages_are_installed(places):
        phases.append(
            Phase(
                "an archive of Spark's classes, so that sessions start faster",
                0,
                "40 seconds",
                class_archive.INSTALLED_MB,
                lambda: build_class_archive(places),
            )
        )
    return phases


def build_class_archive(places: Places) -> None:
    """Put the shim in front of Java first: what it leaves out would keep JVMs from using the archive."""
    java.adopt_java(places)
    class_archive.build_archive(places)


def set_up(places: Places, s3: bool = False) -> None:
    """Do what is missing, saying beforehand what it downloads and about how long it takes.

    Raises:
        EnvironmentFaultError: something that only a person can mend.
    """
    packages.check_python()
    phases = phases_to_do(places, s3)
    if not phases:
        java.adopt_java(places)
        say("Set-up: all there.")
        return
    say("Set-up, once; about to download and install:")
    for phase in phases:
        say(f"  - {phase.title}: {phase.download_mb} MB, {phase.about}")
    total_mb = sum(phase.download_mb for phase in phases)
    say(f"  {total_mb} MB in all, less where the package cache has it; no questions asked.")
    check_disk(places.project, sum(phase.disk_mb for phase in phases) + _SPARE_MB)
    for number, phase in enumerate(phases, 1):
        say(f"[{number}/{len(phases)}] {phase.title}")
        started = time.monotonic()
        phase.run()
        say(f"    done in {time.monotonic() - started:.0f} s")
    java.adopt_java(places)


def check_disk(folder: Path, needed_mb: int) -> None:
    """Raises EnvironmentFaultError when `folder`'s disk has less than `needed_mb` megabytes free."""
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    if free_mb < needed_mb:
        raise EnvironmentFaultError(
            f"The disk of {folder} has {free_mb} MB free; the set-up needs about {needed_mb} MB.",
            "Free some space and run the same command again.",
        )


def main() -> int:
    """Set the machine up; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m recrawl.bootstrap", description="Sets this machine up, once.")
    parser.add_argument("--s3", action="store_true", help="fetch the jars for an S3-compatible store as well")
    arguments = parser.parse_args()
    try:
        set_up(Places(), arguments.s3)
    except EnvironmentFaultError as fault:
        print(f"\n{fault}", file=sys.stderr)
        return fault.exit_status
    except OSError as error:
        print(f"\nThe set-up failed: {error}. Mend it and run the same command again.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next run goes on from here.", file=sys.stderr)
        return 130
    return 0
