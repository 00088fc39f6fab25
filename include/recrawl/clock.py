"""Time as an argument: pure code takes a `Clock`, never the system's time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What code may know about time."""

    def now(self) -> datetime:
        """The wall clock, in UTC, aware."""

    def monotonic_seconds(self) -> float:
        """Seconds on a clock that never goes back; only differences mean something."""

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_seconds(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass
class ManualClock:
    """A clock that moves only when told; for tests and simulations."""

    at: datetime
    elapsed_seconds: float = field(default=0.0)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at.timestamp() + self.elapsed_seconds, UTC)

    def monotonic_seconds(self) -> float:
        return self.elapsed_seconds

    def sleep(self, seconds: float) -> None:
        self.elapsed_seconds += max(0.0, seconds)
