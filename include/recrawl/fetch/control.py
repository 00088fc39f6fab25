"""What people ask of a running fetch: stop, block a host, exclude a prefix. Read every few seconds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from recrawl.inbox import InboxReader, read_stop
from recrawl.storage import Store
from recrawl.tables.vocabulary import OverrideKind

_KINDS = (OverrideKind.BLOCK, OverrideKind.EXCLUDE)


class Control:
    """Stop file and inbox of a round.

    Args:
        blocked: hosts and domains blocked when the round was planned.
        excluded: URL prefixes excluded then.
    """

    def __init__(self, store: Store, round_id: str, blocked: Iterable[str], excluded: Iterable[str] = ()) -> None:
        self._store = store
        self._round_id = round_id
        self._reader = InboxReader(store)
        self._planned = {OverrideKind.BLOCK: frozenset(blocked), OverrideKind.EXCLUDE: frozenset(excluded)}
        self._blocked = set(self._planned[OverrideKind.BLOCK])
        self._excluded = tuple(self._planned[OverrideKind.EXCLUDE])

    def refresh(self, now: datetime) -> bool:
        """Look again; whether the set of blocked hosts changed. Later events outweigh earlier ones."""
        subjects = {kind: set(self._planned[kind]) for kind in _KINDS}
        for event in self._reader.read().events:
            in_force = event.until is None or event.until > now
            if event.kind in _KINDS and in_force:
                subjects[event.kind].add(_folded(event.kind, event.subject))
            elif event.kind is OverrideKind.LIFT:
                for kind in _KINDS:
                    if not event.value or event.value == kind.value:
                        subjects[kind].discard(_folded(kind, event.subject))
        changed = subjects[OverrideKind.BLOCK] != self._blocked
        self._blocked = subjects[OverrideKind.BLOCK]
        self._excluded = tuple(sorted(subjects[OverrideKind.EXCLUDE]))
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

    def is_excluded(self, url: str) -> bool:
        """Whether a canonical URL begins with an excluded prefix."""
        return url.startswith(self._excluded)


def _folded(kind: OverrideKind, subject: str) -> str:
    """A subject as it is compared: names without case, prefixes as they are."""
    return subject.lower() if kind is OverrideKind.BLOCK else subject
