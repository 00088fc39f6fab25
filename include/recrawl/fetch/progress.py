"""The small file of figures that each fetch task writes every 10 s."""

from __future__ import annotations

import json
from collections import deque
from datetime import datetime

from recrawl.clock import Clock
from recrawl.fetch.journal import time_text
from recrawl.fetch.politeness import Politeness
from recrawl.fetch.work import Work
from recrawl.rounds import progress_folder
from recrawl.storage import Store

_RATE_WINDOW_SECONDS = 60.0


class ProgressFile:
    """Writes the figures of one partition for the driver's log, `recrawl status` and the dashboard."""

    def __init__(self, store: Store, round_id: str, partition: int, clock: Clock) -> None:
        self._store = store
        self._name = f"{progress_folder(round_id)}/p{partition:05d}.json"
        self._partition = partition
        self._clock = clock
        self._points: deque[tuple[float, int]] = deque([(clock.monotonic_seconds(), 0)])

    def write(
        self, politeness: Politeness[Work], planned: int, settled: int, answered: int, errors: int, deadline: datetime
    ) -> None:
        """Write the figures as of now.

        Args:
            planned: URLs of the plan.
            settled: of them, those with a final row or a skip.
            answered: page requests that this attempt has behind it.
            errors: faults.
        """
        now, wall = self._clock.monotonic_seconds(), self._clock.now()
        counts = politeness.counts(now)
        self._points.append((now, answered))
        while len(self._points) > 2 and self._points[0][0] < now - _RATE_WINDOW_SECONDS:
            self._points.popleft()
        (first_at, first), (last_at, last) = self._points[0], self._points[-1]
        figures = {
            "partition": self._partition,
            "planned": planned,
            "fetched": settled,
            "errors": errors,
            "hosts_ready": counts.ready,
            "hosts_in_flight": counts.in_flight,
            "hosts_waiting": counts.waiting,
            "hosts_backing_off": counts.backing_off,
            "pages_per_second": round((last - first) / (last_at - first_at), 2) if last_at > first_at else 0.0,
            "longest_tails": [
                {"host": host, "remaining": remaining, "seconds": round(seconds, 1)}
                for host, remaining, seconds in politeness.longest_tails(now)
            ],
            "seconds_left": max(0.0, round((deadline - wall).total_seconds(), 1)),
            "updated_at": time_text(wall),
        }
        self._store.write_bytes(self._name, json.dumps(figures).encode())
