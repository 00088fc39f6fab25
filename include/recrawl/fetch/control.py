"""What people ask of a running fetch: stop, block a host. Read every 10 s."""

from __future__ import annotations

from datetime import datetime

from recrawl.inbox import InboxReader, read_stop
from recrawl.storage import Store
from recrawl.tables.vocabulary import OverrideKind


class Control:
    """Stop file and inbox of a round.

    Args:
        blocked: hosts and domains blocked when the round was planned.
    """

    def __init__(self, store: Store, round_id: str, blocked: frozenset[str]) -> None:
        self._store = store
        self._round_id = round_id
        self._reader = InboxReader(store)
        self._planned = blocked
        self._blocked = set(blocked)

    def refresh(self, now: datetime) -> bool:
        """Look again; whether the set of blocked hosts changed."""
        blocked = set(self._planned)
        for event in self._reader.read().events:
            in_force = event.until is None or event.until > now
            if event.kind is OverrideKind.BLOCK and in_force:
                blocked.add(event.subject.lower())
            elif event.kind is OverrideKind.LIFT and event.value == OverrideKind.BLOCK.value:
                blocked.discard(event.subject.lower())
        changed = blocked != self._blocked
        self._blocked = blocked
        return changed

    def is_stopped(self) -> bool:
        """Whether somebody asked for the round's fetch to be drained."""
        return read_stop(self._store, self._round_id) is not None

    def is_blocked(self, host: str) -> bool:
        """Whether a host (an authority), or a domain above it, is blocked."""
        if not self._blocked:
            return False
        if host in self._blocked:
            return True
        name = host if host.startswith("[") else host.partition(":")[0]
        while name:
            if name in self._blocked:
                return True
            name = name.partition(".")[2]
        return False
