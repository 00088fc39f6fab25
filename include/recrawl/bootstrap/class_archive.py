"""The archive of JVM classes from which Spark sessions start faster (`recrawl.spark.class_archive`).

It belongs to one Java and one set of jars; a stamp beside it says to which.
"""

from __future__ import annotations

import hashlib
import os

from recrawl.bootstrap.java import find_java, java_environment, told_version
from recrawl.bootstrap.places import Places
from recrawl.bootstrap.processes import run, say
from recrawl.errors import EnvironmentFaultError

INSTALLED_MB = 210


#: Written into the stamp where the archive could not be made: not tried again until something changes.
_LEFT_OUT = "left out "


def archive_is_wanted(places: Places) -> bool:
    """Whether an archive is still to be written for the present Java, jars and packages."""
    try:
        stamp = places.class_archive_stamp.read_text(encoding="utf-8")
    except OSError:
        return True
    key = _key(places)
    return stamp != _LEFT_OUT + key and (stamp != key or not places.class_archive.exists())


def build_archive(places: Places) -> None:
    """Write the archive anew; where that can't be done, say so once: all works without it, slower."""
    places.class_archive_stamp.unlink(missing_ok=True)
    places.class_archive.unlink(missing_ok=True)
    key = _key(places)
    try:
        environment = {**os.environ, **java_environment(places), "PYTHONPATH": str(places.project / "include")}
        run(
            [places.python, "-m", "recrawl.spark.class_archive", places.class_archive], "archiving classes", environment
        )
    except EnvironmentFaultError as fault:
        say(f"    left out: {fault}")
    stamp = key if places.class_archive.exists() else _LEFT_OUT + key
    places.class_archive_stamp.write_text(stamp, encoding="utf-8")


def _key(places: Places) -> str:
    """What the archive depends on: the Java, every jar's name and size, the exact packages."""
    java = find_java(places)
    jars = sorted(f"{jar.name} {jar.stat().st_size}" for jar in places.jars.glob("*.jar"))
    parts = [told_version(java.home) if java else "", *jars, places.lock_file.read_text(encoding="utf-8")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
