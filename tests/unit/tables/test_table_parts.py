"""Data files that tasks write and one commit makes visible."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.config.model import Storage
from recrawl.errors import TableError
from recrawl.storage import Store
from recrawl.stored_tables import StoredTables
from recrawl.table_parts import PartFile, PartWriter, check_constraints, write_parts
from recrawl.tables.catalog import EVENT_TABLES, TABLES
from recrawl.tables.ddl import arrow_schema
from tests.unit.asking.small_crawl import rows_of

ROUND = "20261130T030000.000000Z"
OWN = {"round_id": ROUND, "step": "parse"}


@pytest.fixture
def stored(tmp_path: Path) -> StoredTables:
    storage = Storage(root=str(tmp_path))
    tables = StoredTables(Store(storage), storage)
    tables.create_missing(datetime(2026, 11, 30, 3, tzinfo=UTC))
    return tables


def reject(target: str, **values: Any) -> dict[str, Any]:
    return {"dst_url": target, "filter": "scope", "reject_reason": "far", **values}


def part(stored: StoredTables, *targets: str) -> PartFile:
    writer = PartWriter(stored.store, "rejects", OWN)
    writer.write([reject(target) for target in targets])
    written = writer.close()
    assert written is not None
    return written


def targets(stored: StoredTables) -> list[str]:
    return sorted(row["dst_url"] for row in stored.rows("rejects"))


def data_files(stored: StoredTables) -> list[str]:
    return [
        path.name for path in Path(stored.path("rejects")).rglob("*") if path.is_file() and "_delta" not in str(path)
    ]


def test_files_are_seen_from_the_commit_on_and_replace_those_of_an_earlier_one(stored: StoredTables) -> None:
    stored.replace_slice("rejects", ROUND, [{"round_id": ROUND, "step": "seed", **reject("seed's")}], "seed")
    first = [part(stored, "a", "b"), part(stored, "c")]
    assert targets(stored) == ["seed's"]
    stored.commit_parts("rejects", ROUND, first, "parse")
    assert targets(stored) == ["a", "b", "c", "seed's"]
    # The step is run again: an attempt that was lost left a file that nobody names.
    part(stored, "lost")
    stored.commit_parts("rejects", ROUND, [part(stored, "a", "d")], "parse")
    assert targets(stored) == ["a", "d", "seed's"]
    actions = stored.open("rejects").get_add_actions(flatten=True)
    assert sorted(actions.column("num_records").to_pylist()) == [1, 2]
    # Nothing is left of the slice; nothing was, and then there is no commit.
    stored.commit_parts("rejects", ROUND, [], "parse")
    assert targets(stored) == ["seed's"]
    version = stored.version("rejects")
    stored.commit_parts("rejects", ROUND, [], "parse")
    assert stored.version("rejects") == version


def test_parts_of_other_tables_are_left_aside(stored: StoredTables) -> None:
    stored.commit_parts("links", ROUND, [part(stored, "a")])
    assert (stored.version("links"), targets(stored)) == (0, [])


def test_without_rows_there_is_no_file(stored: StoredTables) -> None:
    writer = PartWriter(stored.store, "rejects", OWN)
    writer.write([])
    assert writer.close() is None
    assert data_files(stored) == []


def test_what_a_failed_task_wrote_is_removed(stored: StoredTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.table_parts._ROW_GROUP_BYTES", 1)
    writer = PartWriter(stored.store, "rejects", OWN)
    writer.write([reject("a")])
    assert len(data_files(stored)) == 1
    writer.abandon()
    assert data_files(stored) == []


def test_rows_come_back_as_they_were_written_in_several_row_groups(
    stored: StoredTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.table_parts._ROW_GROUP_BYTES", 1)
    writer = PartWriter(stored.store, "pages", {"round_id": ROUND})
    pages = rows_of("pages", [{"round_id": ROUND, "url_id": n, "title": f"Page {n}"} for n in range(5)]).to_pylist()
    for page in pages:
        writer.write([{name: value for name, value in page.items() if name != "round_id"}])
    written = writer.close()
    assert written is not None
    stored.commit_parts("pages", ROUND, [written])
    assert sorted(stored.rows("pages"), key=lambda row: row["url_id"]) == pages


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"filter": "whim"}, "rejects.filter knows no 'whim'"),
        ({"dst_url": None}, "rejects.dst_url may not be NULL"),
        ({"src_url_id": "one"}, "Rows do not fit the table rejects"),
    ],
)
def test_rows_that_the_table_does_not_allow_are_refused(
    stored: StoredTables, values: dict[str, Any], said: str
) -> None:
    writer = PartWriter(stored.store, "rejects", OWN)
    with pytest.raises(TableError, match=said):
        writer.write([reject("fine"), reject("a", **values)])


def test_the_least_value_is_held() -> None:
    table = TABLES["content_seen"]
    rows = rows_of("content_seen", [{"captures": 3}, {"captures": -1}])
    with pytest.raises(TableError, match=r"content_seen\.captures is at least 0, not -1"):
        check_constraints(table, rows)
    check_constraints(table, rows.slice(0, 1))


@given(st.sampled_from(EVENT_TABLES), st.data())
def test_any_column_with_a_constraint_is_held_against_it(name: str, data: st.DataObject) -> None:
    table = TABLES[name]
    bounded = [column for column in table.columns if column.values is not None or column.minimum is not None]
    good = rows_of(name, [{}])
    check_constraints(table, good)
    if not bounded:
        return
    column = data.draw(st.sampled_from(bounded))
    broken: Any = "no such word" if column.values is not None else (column.minimum or 0) - 1
    place = good.schema.get_field_index(column.name)
    spoilt = pa.array([broken], arrow_schema(table).field(column.name).type)
    rows = good.set_column(place, column.name, spoilt)
    with pytest.raises(TableError, match=column.name):
        check_constraints(table, rows)


def written(stored: StoredTables, table: str, rows: pa.Table, **partitions: str) -> list[PartFile]:
    said = pa.Table.from_batches(write_parts(rows.to_batches(max_chunksize=2), stored.store, table, partitions))
    return [PartFile.from_text(text) for text in said.column("part").to_pylist()]


def url(bucket: int, name: str, next_fetch_at: datetime | None) -> dict[str, Any]:
    return {"bucket": bucket, "url_id": len(name), "url": name, "host": name, "next_fetch_at": next_fetch_at}


def test_a_state_table_gets_a_file_a_bucket_and_what_files_are_skipped_by(stored: StoredTables) -> None:
    odd, even = datetime(2026, 11, 30, 3, 0, 0, 123_456, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    rows = rows_of("urls", [url(1, "b", odd), url(1, "aaa", None), url(1, "cc", odd), url(7, "dddd", even)])
    parts = written(stored, "urls", rows)
    assert [(part.partitions, part.rows) for part in parts] == [({"bucket": "1"}, 3), ({"bucket": "7"}, 1)]
    assert parts[0].statistics == {
        "minValues": {"url_id": 1, "host": "aaa", "next_fetch_at": "2026-11-30T03:00:00.123Z"},
        # Whole milliseconds, and no value lies above the greatest.
        "maxValues": {"url_id": 3, "host": "cc", "next_fetch_at": "2026-11-30T03:00:00.124Z"},
        "nullCount": {"url_id": 0, "host": 0, "next_fetch_at": 1, "content_checksum": 3},
    }
    assert parts[1].statistics["maxValues"]["next_fetch_at"] == "2026-12-01T00:00:00.000Z"
    stored.append_parts("urls", "fold/urls/0", parts)
    assert sorted(stored.rows("urls"), key=lambda row: row["url"]) == sorted(
        rows.to_pylist(), key=lambda row: row["url"]
    )
    actions = stored.open("urls").get_add_actions(flatten=True)
    assert sorted(actions.column("max.host").to_pylist()) == ["cc", "dddd"]


def test_a_fold_is_appended_once_a_transaction(stored: StoredTables) -> None:
    parts = written(stored, "urls", rows_of("urls", [url(1, "a", None)]))
    for _ in range(2):
        stored.append_parts("urls", "fold/urls/0", parts)
        assert (stored.version("urls"), len(stored.rows("urls"))) == (1, 1)
    stored.append_parts("urls", "fold/urls/1", [])
    assert (stored.has_committed("urls", "fold/urls/0"), stored.has_committed("urls", "fold/urls/1")) == (True, False)
    with pytest.raises(TableError, match="rejects is a table of another kind"):
        stored.append_parts("rejects", "fold", parts)


def test_an_event_tables_rows_are_one_file_whatever_their_batches(stored: StoredTables) -> None:
    rows = rows_of("rejects", [{**OWN, **reject(str(n))} for n in range(5)])
    [part] = written(stored, "rejects", rows, **OWN)
    assert (part.partitions, part.rows) == (OWN, 5)
    assert written(stored, "rejects", rows.slice(0, 0), **OWN) == []
    stored.commit_parts("rejects", ROUND, [part], "parse")
    assert targets(stored) == list("01234")


def test_rows_that_break_off_leave_no_file(stored: StoredTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.table_parts._ROW_GROUP_BYTES", 1)
    rows = rows_of("rejects", [reject("a"), reject("b"), reject("c", filter="whim")])
    with pytest.raises(TableError, match="knows no 'whim'"):
        written(stored, "rejects", rows, **OWN)
    assert data_files(stored) == []
    with pytest.raises(TableError, match="Rows do not fit the table links"):
        written(stored, "links", rows, round_id=ROUND)
