"""All checks of `recrawl doctor`, in the order in which a newcomer would meet them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from recrawl.bootstrap.places import Places
from recrawl.clock import Clock, SystemClock
from recrawl.config.model import Configuration
from recrawl.doctor import machine, program
from recrawl.doctor.finding import Finding, Level
from recrawl.errors import RecrawlError


def run_checks(configuration: Configuration, places: Places | None = None, clock: Clock | None = None) -> list[Finding]:
    """Look at everything that a round needs; a check that breaks is a finding too.

    Args:
        configuration: the configuration in force.
        places: the checkout; None: the one that this program runs from.
        clock: the machine's clock.
    """
    places = places or Places()
    moment = (clock or SystemClock()).now()
    checks: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("Python", program.python),
        ("packages", lambda: program.packages(places)),
        ("Java", lambda: program.java(places)),
        ("jars", program.jars),
        ("contact", lambda: program.contact(configuration)),
        ("storage", lambda: machine.storage(configuration)),
        ("free space", lambda: machine.free_space(configuration)),
        ("lease", lambda: machine.lease(configuration, moment)),
        ("Airflow", lambda: program.airflow(places)),
        ("port", lambda: program.port(places)),
        ("memory", lambda: machine.memory(configuration)),
        ("file descriptors", lambda: machine.file_descriptors(configuration)),
        ("clock", lambda: clock_is_sane(moment, places)),
    )
    return [_guarded(name, check) for name, check in checks]


def clock_is_sane(now: datetime, places: Places) -> Finding:
    """A clock that is off makes robots.txt, due times and round ids wrong."""
    newest = max((file.stat().st_mtime for file in (places.project / "pyproject.toml", places.lock_file)), default=0.0)
    # A minute: file systems on the network have clocks of their own.
    if now.timestamp() < newest - 60:
        seen = datetime.fromtimestamp(newest, UTC)
        return Finding(
            "clock",
            Level.PROBLEM,
            f"It is {now:%Y-%m-%d %H:%M} UTC here, before the project's own files ({seen:%Y-%m-%d %H:%M}).",
            "Set the clock, best by NTP (timedatectl set-ntp true).",
        )
    return Finding("clock", Level.OK, f"{now:%Y-%m-%d %H:%M:%S} UTC.")


def _guarded(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except RecrawlError as error:
        return Finding(name, Level.PROBLEM, error.message, error.mend)
    except OSError as error:
        return Finding(
            name, Level.PROBLEM, f"It can't be looked at: {error}.", "See that you may read and write there."
        )
