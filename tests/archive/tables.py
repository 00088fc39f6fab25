"""The tables of one round, written from its journals without Spark: for what reads tables and WARC files together."""

from __future__ import annotations

from typing import Any

from deltalake import write_deltalake

from recrawl.config.model import Configuration
from recrawl.fetch.journal import parse_time
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES, TABLES_FOLDER
from tests.fetch.crawl import ROUND_ID, rows
from tests.unit.asking.small_crawl import rows_of


def write_tables(store: Store, settings: Configuration) -> None:
    """The tables of the round as its steps would write them, as far as a verification reads them."""
    for table in ("fetches", "warc_files", "host_visits", "robots"):
        times = [column.name for column in TABLES[table].columns if column.type == "TIMESTAMP"]
        found = [
            {**row, **{name: parse_time(row[name]) for name in times if row[name] is not None}}
            for row in rows(settings, table)
        ]
        _write(store, table, found)
    _write(store, "rounds", [{"round_number": 1, "round_id": ROUND_ID, "round_state": "closed"}])


def _write(store: Store, table: str, found: list[dict[str, Any]]) -> None:
    address = store.uri(f"{TABLES_FOLDER}/{table}")
    write_deltalake(address, rows_of(table, found), storage_options=store.delta_options(), mode="append")
