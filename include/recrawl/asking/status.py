"""How the crawl stands: rounds, the live one step by step, the lease, table sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recrawl.asking.reader import Reader, TableSize
from recrawl.assignment import step_summary
from recrawl.inbox import StopRequest, read_stop
from recrawl.lease import LeaseState, read
from recrawl.live import LiveFigures, live_figures
from recrawl.stages import STEP_NAMES
from recrawl.storage import Store
from recrawl.tables.vocabulary import RoundState

#: The columns of `rounds` that a status shows.
ROUND_COLUMNS = (
    "round_number", "round_id", "round_kind", "round_state", "opened_at", "closed_at", "planned", "fetched",
    "skipped_after_plan", "new_urls", "known_after", "outcomes_ok", "outcomes_unchanged", "outcomes_failed",
    "warc_bytes",
)  # fmt: skip

_LIVE = frozenset({RoundState.OPEN.value, RoundState.FOLDING.value, RoundState.UNDOING.value})


@dataclass(frozen=True)
class LiveRound:
    """A round that runs or stands still.

    Attributes:
        steps_done: the finished steps in order, with their figures.
        current_step: the first step that has not finished; None when all have.
        figures: what the fetch tasks wrote last, added up; None when none has written yet.
        stop: who asked it to stop fetching, if anybody did.
    """

    round_id: str
    round_number: int
    state: str
    steps_done: Mapping[str, Any]
    current_step: str | None
    figures: LiveFigures | None
    stop: StopRequest | None


@dataclass(frozen=True)
class CrawlStatus:
    """All of it. `lease_expired` means that anybody may take the lease over."""

    root: str
    at: datetime
    lease: LeaseState | None
    lease_expired: bool
    rounds: tuple[Mapping[str, Any], ...]
    live: tuple[LiveRound, ...]
    tables: tuple[TableSize, ...]


def crawl_status(reader: Reader, store: Store, at: datetime, shown_rounds: int = 10, sizes: bool = True) -> CrawlStatus:
    """How the crawl stands at `at`.

    Args:
        shown_rounds: the newest rounds that are listed.
        sizes: table sizes too; they take the longest.
    """
    rounds = reader.rounds()
    lease = read(store)
    return CrawlStatus(
        root=store.root,
        at=at,
        lease=lease,
        lease_expired=lease is not None and lease.expires_at <= at,
        rounds=tuple({name: row[name] for name in ROUND_COLUMNS} for row in rounds[-shown_rounds:]),
        live=tuple(_live(store, row) for row in rounds if row["round_state"] in _LIVE),
        tables=tuple(reader.table_sizes()) if sizes else (),
    )


def _live(store: Store, row: Mapping[str, Any]) -> LiveRound:
    round_id = str(row["round_id"])
    done = _summaries(store, round_id)
    return LiveRound(
        round_id=round_id,
        round_number=int(row["round_number"]),
        state=str(row["round_state"]),
        steps_done=done,
        current_step=next((name for name in STEP_NAMES if name not in done), None),
        figures=live_figures(store, round_id),
        stop=read_stop(store, round_id),
    )


def _summaries(store: Store, round_id: str) -> dict[str, Any]:
    found = {name: step_summary(store, round_id, name) for name in STEP_NAMES}
    return {name: summary for name, summary in found.items() if summary is not None}
