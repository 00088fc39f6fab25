"""The lasting root set: what seeds that are read now change of those that were read before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: What a person may change of a seed; the rest follows from the URL or is kept.
_FIRST_READING = ("added_at", "added_by")

SeedRow = Mapping[str, Any]


def changed_seeds(known: Mapping[int, SeedRow], read: Iterable[SeedRow]) -> list[dict[str, Any]]:
    """The rows of `seeds` to insert or replace: new ones, and those with another scope, tags, credit or priority.

    A seed keeps the moment and the giver of its first reading. The root set is lasting: a seed that
    is no longer in a list stays.

    Args:
        known: url_id → the stored row, of at least the seeds read.
        read: rows of the seeds read now, one a URL.
    """
    changed = []
    for row in read:
        stored = known.get(row["url_id"])
        merged = dict(row)
        if stored is not None:
            merged |= {name: stored[name] for name in _FIRST_READING}
        if stored is None or any(stored[name] != value for name, value in merged.items()):
            changed.append(merged)
    return changed
