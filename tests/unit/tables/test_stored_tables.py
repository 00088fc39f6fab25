"""Ledgers and slices that are written from rows of one process, on real Delta tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import DeltaError

from recrawl.config.model import Storage
from recrawl.errors import RoundStateError, TableError
from recrawl.round_ledger import Round, all_rounds, find_round, save_round
from recrawl.storage import Store
from recrawl.stored_tables import StoredTables, arrow_rows
from recrawl.tables.catalog import TABLES
from tests.unit.asking.small_crawl import rows_of

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
ROUND, NEXT = "20261130T030000.000000Z", "20261201T030000.000000Z"


@pytest.fixture
def stored(tmp_path: Path) -> StoredTables:
    storage = Storage(root=str(tmp_path))
    tables = StoredTables(Store(storage), storage)
    assert tables.create_missing(NOW) == list(TABLES)
    assert tables.create_missing(NOW) == []
    return tables


def rows(table: str, *given: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows_of(table, given).to_pylist(maps_as_pydicts="strict")
    return found


def test_a_row_of_a_ledger_replaces_that_of_its_key(stored: StoredTables) -> None:
    one, two = rows("seeds", {"url_id": 1, "scope": "host", "tags": ["a"]}, {"url_id": 2, "scope": "page"})
    stored.put("seeds", [one, two])
    assert sorted(stored.rows("seeds"), key=lambda row: row["url_id"]) == [one, two]
    changed = two | {"scope": "domain", "added_at": NOW}
    three = rows("seeds", {"url_id": 3, "scope": "page"})[0]
    stored.put("seeds", [changed, three])
    assert sorted(stored.rows("seeds"), key=lambda row: row["url_id"]) == [one, changed, three]
    stored.replace("seeds", [three])
    assert stored.rows("seeds") == [three]
    # Nothing of it is lost to time travel.
    assert [stored.version("seeds"), stored.open("seeds", 1).version()] == [3, 1]


def test_a_round_comes_back_as_it_was_saved(stored: StoredTables) -> None:
    values = rows("rounds", {"round_id": ROUND, "round_number": 1, "round_kind": "crawl", "round_state": "open"})[0]
    values |= {
        "versions_at_open": {"urls": 3},
        "opened_at": NOW,
        "now": NOW,
        "cash_before": 10**30,
        "value_cutoff": 0.5,
    }
    save_round(stored, Round(values))
    row = find_round(stored, ROUND)
    assert (row.now, row.version_at_open("urls"), int(row["cash_before"])) == (NOW, 3, 10**30)
    save_round(stored, row.with_values(round_state="closed", closed_at=NOW))
    save_round(stored, Round(values | {"round_id": NEXT, "round_number": 2}))
    assert [(r.round_id, str(r.state)) for r in all_rounds(stored)] == [(ROUND, "closed"), (NEXT, "open")]
    with pytest.raises(RoundStateError, match="There is no round never"):
        find_round(stored, "never")
    with pytest.raises(RoundStateError, match="did not freeze the table hosts"):
        row.version_at_open("hosts")


def test_a_slice_replaces_itself_and_no_other(stored: StoredTables) -> None:
    def reject(step: str, target: str, round_id: str = ROUND) -> dict[str, Any]:
        return rows(
            "rejects", {"round_id": round_id, "dst_url": target, "step": step, "filter": "scope", "reject_reason": "x"}
        )[0]

    stored.replace_slice("rejects", ROUND, [reject("seed", "a"), reject("seed", "b")], "seed")
    stored.replace_slice("rejects", ROUND, [reject("parse", "c")], "parse")
    stored.replace_slice("rejects", NEXT, [reject("seed", "d", NEXT)], "seed")
    stored.replace_slice("rejects", ROUND, [reject("seed", "e")], "seed")
    assert sorted(row["dst_url"] for row in stored.rows("rejects")) == ["c", "d", "e"]
    stored.delete_slice("rejects", ROUND)
    assert [row["dst_url"] for row in stored.rows("rejects")] == ["d"]
    stored.delete_slice("rejects", "never")
    assert len(stored.rows("rejects")) == 1


@pytest.mark.parametrize(
    "spoilt", [{"scope": "planet"}, {"credit_granted": -1}], ids=["not in the vocabulary", "below the least value"]
)
def test_rows_that_break_a_constraint_are_refused(stored: StoredTables, spoilt: dict[str, Any]) -> None:
    good = rows("seeds", {"url_id": 1, "scope": "host"})[0]
    for write in (stored.put, stored.replace):
        with pytest.raises(DeltaError, match="failed validation check"):
            write("seeds", [good | spoilt])
    assert (stored.rows("seeds"), stored.version("seeds")) == ([], 0)


def test_rows_that_do_not_fit_the_columns_are_refused() -> None:
    with pytest.raises(TableError, match="Rows do not fit the table seeds"):
        arrow_rows("seeds", [{"url_id": "many"}])


def test_a_table_that_is_not_there_has_no_version(stored: StoredTables) -> None:
    with pytest.raises(TableError, match="The table nothing has no commits"):
        stored.version("nothing")
