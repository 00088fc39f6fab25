"""Checks of what is installed and set: Python, packages, Java, jars, contact, Airflow, its port."""

from __future__ import annotations

import sys

from recrawl.bootstrap.jars import JARS, digest_of
from recrawl.bootstrap.java import OLDEST_JAVA, find_java
from recrawl.bootstrap.packages import FIRST_UNTRIED_PYTHON, OLDEST_PYTHON, packages_are_installed
from recrawl.bootstrap.places import Places
from recrawl.config.model import Configuration
from recrawl.doctor.finding import Finding, Level
from recrawl.orchestration.environment import DEFAULT_PORT
from recrawl.orchestration.standalone import PARTS, free_ports, health, running
from recrawl.spark.settings import jars_folder

_INSTALL = "Run `make install`."


def python() -> Finding:
    """The running Python."""
    found = f"Python {sys.version.split()[0]} ({sys.executable})."
    if OLDEST_PYTHON <= sys.version_info[:2] < FIRST_UNTRIED_PYTHON:
        return Finding("Python", Level.OK, found)
    return Finding("Python", Level.PROBLEM, found, "Use Python 3.11, 3.12 or 3.13: make install PYTHON=python3.12.")


def packages(places: Places) -> Finding:
    """Whether the environment is that of the lock file."""
    if not places.lock_file.is_file() or not places.venv.is_dir():
        # Installed in another way, such as in an image.
        return Finding("packages", Level.OK, "Not managed by this checkout.")
    if packages_are_installed(places):
        return Finding("packages", Level.OK, "As requirements.lock says.")
    return Finding("packages", Level.WARNING, "requirements.lock is newer than the environment.", _INSTALL)


def java(places: Places) -> Finding:
    """A Java that Spark runs on."""
    found = find_java(places)
    if found is None:
        mend = f"{_INSTALL} It brings one; or install a JDK from {OLDEST_JAVA} on."
        return Finding("Java", Level.PROBLEM, f"There is no Java {OLDEST_JAVA} or newer.", mend)
    return Finding("Java", Level.OK, f"Java {found.version} ({found.home}).")


def jars() -> Finding:
    """Delta's two jars, by checksum."""
    folder = jars_folder()
    for jar in JARS:
        digest = digest_of(folder / jar.file_name)
        if not digest:
            return Finding("jars", Level.PROBLEM, f"{folder / jar.file_name} is missing.", _INSTALL)
        if digest != jar.sha256:
            mend = f"Delete it and run `make install`: {folder / jar.file_name}"
            return Finding("jars", Level.PROBLEM, f"{jar.file_name} is not the file that was published.", mend)
    return Finding("jars", Level.OK, f"{', '.join(jar.file_name for jar in JARS)}.")


def contact(configuration: Configuration) -> Finding:
    """Whether site owners can reach the operator."""
    agent = configuration.agent
    if agent.contact:
        return Finding("contact", Level.OK, f"We say that we are {agent.user_agent}.")
    return Finding(
        "contact",
        Level.WARNING,
        "No contact is set: only loopback and explicitly allowed private addresses are fetched from.",
        'Write into recrawl.toml: [agent] contact = "you@example.org" (or set RECRAWL__AGENT__CONTACT).',
    )


def airflow(places: Places) -> Finding:
    """Whether Airflow runs, and whether all of it does."""
    found = running(places)
    if found is None:
        home = places.state / "airflow"
        state = "not started" if (home / "airflow.db").exists() else "never started"
        return Finding("Airflow", Level.OK, f"{state.capitalize()}; `make up` starts it.")
    states = health(found)
    ill = [part for part in PARTS if states.get(part) != "healthy"]
    if ill:
        mend = f"Run `make down` and `make up`; the log is {places.state / 'airflow' / 'standalone.log'}."
        return Finding("Airflow", Level.PROBLEM, f"At {found.address}, but not healthy: {', '.join(ill)}.", mend)
    return Finding("Airflow", Level.OK, f"Healthy at {found.address}.")


def port(places: Places) -> Finding:
    """Where `make up` would listen."""
    found = running(places)
    if found is not None:
        return Finding("port", Level.OK, f"{found.port}, in use by our Airflow.")
    first = free_ports(DEFAULT_PORT, 1)[0]
    taken = "" if first == DEFAULT_PORT else f"{DEFAULT_PORT} is taken; "
    return Finding("port", Level.OK, f"{taken}`make up` takes {first}.")
