"""How answers look."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from recrawl.cli import output

_CELLS = st.text(max_size=40)


def test_ids_are_text_in_json() -> None:
    row = {"url_id": 5, "dst_url_ids": [1, 2], "content_checksum": -3, "cash": 2**60, "n": 7, "state": None}
    assert output.jsonable(row) == {
        "url_id": "5", "dst_url_ids": ["1", "2"], "content_checksum": "-3", "cash": str(2**60), "n": 7, "state": None,
    }  # fmt: skip


def test_times_are_utc_in_json() -> None:
    moment = datetime(2026, 11, 30, 4, 0, tzinfo=timezone(timedelta(hours=1)))
    assert output.jsonable(moment) == "2026-11-30T03:00:00Z"
    assert output.jsonable(datetime(2026, 11, 30, 3, 0)) == "2026-11-30T03:00:00Z"
    assert output.jsonable([Decimal(10) ** 37, b"\x01", True, 1.5]) == [str(10**37), "01", True, 1.5]


@given(st.lists(st.tuples(_CELLS, _CELLS, _CELLS), max_size=6), st.integers(20, 120))
def test_a_table_keeps_to_the_terminal(rows: list[tuple[str, str, str]], width: int) -> None:
    cells = [[output.cell(value) for value in row] for row in rows]
    lines = output.table_lines(("a", "b", "c"), cells, width)
    assert len(lines) == len(rows) + 2
    for line in lines:
        assert output._cells(line) <= max(width, 3 * output._MIN_WIDTH + 4)
        assert line.isprintable()


def test_numbers_stand_to_the_right_and_wide_text_is_cut() -> None:
    lines = output.table_lines(("name", "n"), [["x" * 100, "5"], ["日本語", "12"]], 40)
    assert lines[2].endswith("…   5")
    assert lines[3].endswith(" 12")
    assert len({output._cells(line) for line in lines[2:]}) == 1


def test_pages_can_not_drive_the_terminal() -> None:
    assert "\x1b" not in output.cell("\x1b[2Jtitle\r\n")


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=("Cs",))), st.none() | st.integers()), max_size=5))
def test_csv_is_read_back(rows: list[tuple[str, int | None]]) -> None:
    text = output.csv_text(("text", "n"), rows)
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read[0] == ["text", "n"]
    assert read[1:] == [[text, "" if n is None else str(n)] for text, n in rows]


def test_csv_holds_lists_as_json() -> None:
    assert json.loads(next(csv.reader([output.csv_text(("a",), [([1, 2],)]).splitlines()[1]]))[0]) == [1, 2]


def test_sizes_and_times_for_people() -> None:
    assert [output.size_text(n) for n in (5, 1500, 2_500_000, 3 * 10**13)] == ["5 B", "1.5 kB", "2.5 MB", "30.0 TB"]
    assert [output.duration_text(n) for n in (5, 130, 7500)] == ["5 s", "2 min 10 s", "2 h 5 min"]
    assert output.cell(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02 03:04:05"
