"""The root set under other URL rules: which rows of `seeds` change, and how that is taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recrawl.tables.vocabulary import Scope

SeedRow = Mapping[str, Any]

#: From the narrowest to the widest.
_SCOPES = (Scope.PAGE, Scope.PREFIX, Scope.HOST, Scope.DOMAIN, Scope.ANYWHERE)


@dataclass(frozen=True)
class SeedChanges:
    """What becomes of the root set.

    Attributes:
        put: rows to insert or replace. removed: url_ids whose rows go.
        put_back, removed_again: the same for the way back.
    """

    put: tuple[dict[str, Any], ...] = ()
    removed: tuple[int, ...] = ()
    put_back: tuple[dict[str, Any], ...] = ()
    removed_again: tuple[int, ...] = ()


def rekeyed_seeds(
    rows: Callable[[], Iterable[SeedRow]], identity: Callable[[SeedRow], Mapping[str, Any] | None]
) -> SeedChanges:
    """The changes that give every seed its new identity.

    Seeds that become one keep the credit of all (so that nothing is granted twice), the widest scope, all
    tags and the highest priority.

    Args:
        rows: gives all rows of `seeds`, as often as it is called; only those that change are kept.
        identity: url_id, url, host, registered_domain and request_url of a seed now; None: it stays as it is.
    """
    groups: dict[int, list[SeedRow]] = {}
    originals: list[SeedRow] = []
    for row in rows():
        named = identity(row)
        if named is not None and named["url_id"] != row["url_id"]:
            groups.setdefault(int(named["url_id"]), []).append({**row, **named})
            originals.append(row)
    moved = {row["url_id"] for row in originals}
    residents = [row for row in rows() if row["url_id"] in groups and row["url_id"] not in moved]
    for row in residents:
        groups[row["url_id"]].insert(0, row)
    before = {row["url_id"] for row in (*originals, *residents)}
    return SeedChanges(
        put=tuple(_merged(group) for _, group in sorted(groups.items())),
        removed=tuple(sorted(before - groups.keys())),
        put_back=tuple(dict(row) for row in sorted((*originals, *residents), key=lambda row: row["url_id"])),
        removed_again=tuple(sorted(groups.keys() - before)),
    )


def _merged(group: list[SeedRow]) -> dict[str, Any]:
    first, *others = sorted(group, key=lambda row: (row["added_at"], row["raw_seed"]))
    merged = dict(first)
    for row in others:
        merged["credit_granted"] += row["credit_granted"]
        merged["scope"] = max(merged["scope"], row["scope"], key=lambda scope: _SCOPES.index(Scope(scope)))
        merged["tags"] = [*merged["tags"], *(tag for tag in row["tags"] if tag not in merged["tags"])]
        merged["manual_priority"] = max(merged["manual_priority"], row["manual_priority"])
    return merged
