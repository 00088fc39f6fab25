"""How people name a round: an id, a number, a date prefix, `last`, or `-2`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from recrawl.errors import UsageError
from recrawl.tables.vocabulary import RoundState

#: States in which a round has an end that can be looked at.
ENDED_STATES = frozenset({RoundState.CLOSED.value, RoundState.ABANDONED.value})

_RELATIVE = re.compile(r"last|-([1-9]\d{0,5})")
_NUMBER = re.compile(r"#?(\d{1,7})")
_PREFIX = re.compile(r"\d{4,8}(?:T[\d.]*Z?)?")
_SHOWN = 5

RoundRow = Mapping[str, Any]


def resolve_round(rounds: Sequence[RoundRow], text: str) -> RoundRow:
    """The round that `text` means.

    Args:
        rounds: rows of the table `rounds`, in any order.
        text: a round id; a round number; the beginning of an id or date (`2026-11-30`,
            `20261130T03`); `last` (the last round that ended); `-2` (the one before it), `-3` …

    Raises:
        UsageError: no round, or more than one, is meant; the candidates are named.
    """
    ordered = sorted(rounds, key=lambda row: int(row["round_number"]))
    if not ordered:
        raise UsageError("This crawl has no round yet.", "Run one: `recrawl round --seeds FILE`.")
    wanted = text.strip()
    for row in ordered:
        if row["round_id"] == wanted:
            return row
    relative = _RELATIVE.fullmatch(wanted)
    if relative:
        return _from_the_end(ordered, wanted, int(relative[1] or 1))
    number = _NUMBER.fullmatch(wanted)
    if number:
        for row in ordered:
            if int(row["round_number"]) == int(number[1]):
                return row
    prefix = wanted.replace("-", "").replace(":", "").replace(" ", "T")
    if _PREFIX.fullmatch(prefix):
        return _only(ordered, wanted, [row for row in ordered if str(row["round_id"]).startswith(prefix)])
    raise UsageError(
        f"{text!r} names no round.",
        f"A round is an id, a number, the beginning of a date, `last` or `-2`; there are {_shown(ordered)}.",
    )


def _from_the_end(ordered: list[RoundRow], text: str, back: int) -> RoundRow:
    ended = [row for row in ordered if row["round_state"] in ENDED_STATES]
    if back > len(ended):
        raise UsageError(
            f"{text!r} names no round: {len(ended)} {'round has' if len(ended) == 1 else 'rounds have'} ended.",
            f"There are {_shown(ordered)}.",
        )
    return ended[-back]


def _only(ordered: list[RoundRow], text: str, found: list[RoundRow]) -> RoundRow:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"No round begins with {text!r}.", f"There are {_shown(ordered)}.")
    raise UsageError(f"{text!r} may mean {len(found)} rounds.", f"Say which: {_shown(found)}.")


def _shown(rows: list[RoundRow]) -> str:
    names = [f"{row['round_number']} ({row['round_id']}, {row['round_state']})" for row in rows[-_SHOWN:]]
    older = f"{len(rows) - _SHOWN} older ones, " if len(rows) > _SHOWN else ""
    return older + ", ".join(names)
