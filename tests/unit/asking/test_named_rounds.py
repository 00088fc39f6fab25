"""How people name rounds."""

from __future__ import annotations

from typing import Any

import pytest

from recrawl.asking.named_rounds import resolve_round
from recrawl.errors import UsageError


def _row(number: int, round_id: str, state: str = "closed") -> dict[str, Any]:
    return {"round_number": number, "round_id": round_id, "round_state": state}


ROUNDS = [
    _row(1, "20261130T030000.000000Z"),
    _row(2, "20261201T030000.000000Z", "undone"),
    _row(3, "20261201T150000.000000Z", "abandoned"),
    _row(4, "20261202T030000.000000Z"),
    _row(5, "20261203T030000.000000Z", "open"),
]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("20261130T030000.000000Z", 1),
        ("1", 1),
        ("#5", 5),
        ("2", 2),
        ("last", 4),
        ("-1", 4),
        ("-2", 3),
        ("-3", 1),
        ("2026-11-30", 1),
        ("20261202", 4),
        ("20261201T15", 3),
        ("2026-12-01 15:00", 3),
        (" 2026-12-03 ", 5),
    ],
)
def test_each_form_names_its_round(text: str, number: int) -> None:
    assert resolve_round(ROUNDS, text)["round_number"] == number
    assert resolve_round(list(reversed(ROUNDS)), text)["round_number"] == number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-12-01", "2 (20261201T030000.000000Z, undone), 3 (20261201T150000.000000Z, abandoned)"),
        ("2027", "No round begins with '2027'"),
        ("-4", "3 rounds have ended"),
        ("-0", "names no round"),
        ("yesterday", "`last` or `-2`"),
        ("", "names no round"),
        ("9", "names no round"),
    ],
)
def test_what_names_none_or_several_is_refused_with_the_candidates(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        resolve_round(ROUNDS, text)
    assert said in str(refused.value)
    assert "20261201T150000.000000Z" in str(refused.value)


def test_a_crawl_without_rounds_says_so() -> None:
    with pytest.raises(UsageError, match="no round yet"):
        resolve_round([], "last")
