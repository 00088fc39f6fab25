"""The live figures of a running fetch: what its tasks write every 10 s, added up."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from recrawl.rounds import progress_folder
from recrawl.storage import Store


@dataclass(frozen=True)
class LiveFigures:
    """All fetch partitions of a round together.

    Attributes:
        planned, fetched, errors: URLs and tries so far.
        pages_per_second: of all tasks together, over their last interval.
        ready, in_flight, waiting, backing_off: hosts by what they are doing.
        tails: the longest host queues, (host, URLs left, seconds predicted), longest first.
        seconds_left: until the deadline.
        partitions: tasks that have reported.
    """

    planned: int
    fetched: int
    errors: int
    pages_per_second: float
    ready: int
    in_flight: int
    waiting: int
    backing_off: int
    tails: tuple[tuple[str, int, float], ...]
    seconds_left: float
    partitions: int

    def line(self) -> str:
        """One line for a log."""
        tails = ", ".join(f"{host} {left} URLs {seconds:.0f} s" for host, left, seconds in self.tails[:3])
        return (
            f"fetch: {self.fetched} of {self.planned} fetched, {self.pages_per_second:.1f} pages/s, "
            f"{self.errors} errors; hosts {self.ready} ready, {self.in_flight} in flight, {self.waiting} waiting, "
            f"{self.backing_off} backing off"
            + (f"; longest tails {tails}" if tails else "")
            + f"; {self.seconds_left:.0f} s left"
        )


def live_figures(store: Store, round_id: str) -> LiveFigures | None:
    """The figures of a round's fetch tasks; None when none has reported."""
    reports: list[dict[str, Any]] = []
    for name in store.names(progress_folder(round_id)):
        data = store.read_bytes(name)
        if data:
            reports.append(json.loads(data))
    if not reports:
        return None

    def total(key: str) -> int:
        return sum(int(report.get(key, 0)) for report in reports)

    tails = [
        (str(tail["host"]), int(tail["remaining"]), float(tail["seconds"]))
        for report in reports
        for tail in report.get("longest_tails", [])
    ]
    return LiveFigures(
        planned=total("planned"),
        fetched=total("fetched"),
        errors=total("errors"),
        pages_per_second=sum(float(report.get("pages_per_second", 0.0)) for report in reports),
        ready=total("ready"),
        in_flight=total("in_flight"),
        waiting=total("waiting"),
        backing_off=total("backing_off"),
        tails=tuple(sorted(tails, key=lambda tail: -tail[2])[:5]),
        seconds_left=max(float(report.get("seconds_left", 0.0)) for report in reports),
        partitions=len(reports),
    )
