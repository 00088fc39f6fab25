"""What every command has: the options that all share, and what is made of them when needed."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recrawl.errors import UsageError

if TYPE_CHECKING:
    from recrawl.asking.reader import Reader
    from recrawl.clock import Clock
    from recrawl.config.model import Configuration
    from recrawl.storage import Store


class Context:
    """The options of one call of the command, and the parts that they select.

    Args:
        arguments: what argparse made of the command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments

    @property
    def json(self) -> bool:
        """Whether the answer is for a program."""
        return bool(getattr(self.arguments, "json", False))

    @cached_property
    def configuration(self) -> Configuration:
        """The effective configuration. Raises ConfigurationError."""
        return self.configured({})

    def configured(self, overrides: dict[str, dict[str, Any]]) -> Configuration:
        """The configuration with further keys set. Raises ConfigurationError."""
        from recrawl.config.load import load_configuration

        values = {section: dict(keys) for section, keys in overrides.items()}
        root = getattr(self.arguments, "root", None)
        if root is not None:
            values.setdefault("storage", {})["root"] = root
        return load_configuration(getattr(self.arguments, "config", None), overrides=values)

    @cached_property
    def configuration_in_force(self) -> Configuration:
        """The configuration with the URL rules of sites that were accepted since."""
        from recrawl.seed.site_decisions import with_decisions_of_inbox

        return with_decisions_of_inbox(self.configuration, self.store, self.clock.now())

    @cached_property
    def store(self) -> Store:
        """The storage root."""
        from recrawl.storage import Store

        return Store(self.configuration.storage)

    @cached_property
    def reader(self) -> Reader:
        """The tables, without a JVM."""
        from recrawl.asking.reader import Reader
        from recrawl.urls.canonical import Canonicalizer

        return Reader(self.store, Canonicalizer.from_settings(self.configuration_in_force.urls))

    @cached_property
    def clock(self) -> Clock:
        """The machine's clock."""
        from recrawl.clock import SystemClock

        return SystemClock()

    @property
    def who(self) -> str:
        """The person who decides: `--who`, else the user of the machine."""
        named = getattr(self.arguments, "who", None)
        if named:
            return str(named)
        try:
            return os.environ.get("USER") or getpass.getuser()
        except (KeyError, OSError):
            return "unknown"

    def note(self, text: str) -> None:
        """Say something to the person, out of the way of the answer."""
        print(text, file=sys.stderr, flush=True)

    def confirmed(self, question: str) -> bool:
        """Ask the person. Raises UsageError where nobody can answer."""
        if not sys.stdin.isatty():
            raise UsageError("Nobody is there to answer.", "Say --yes to go on without being asked.")
        self.note(question)
        return input("[y/N] ").strip().lower() in ("y", "yes")


def moment(text: str, now: datetime) -> datetime:
    """A time that a person wrote: ISO 8601 (UTC where it says nothing), or from now: `7d`, `12h`, `30m`.

    Raises:
        UsageError: neither, or not in the future.
    """
    units = {"d": "days", "h": "hours", "m": "minutes"}
    stripped = text.strip()
    if stripped[-1:] in units and stripped[:-1].isdigit():
        found = now + timedelta(**{units[stripped[-1]]: int(stripped[:-1])})
    else:
        try:
            found = datetime.fromisoformat(stripped)
        except ValueError:
            mend = "Write 2026-12-31, 2026-12-31T18:00, 7d, 12h or 30m."
            raise UsageError(f"{text!r} is not a time.", mend) from None
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    if found <= now:
        raise UsageError(f"{text!r} is not in the future.")
    return found
