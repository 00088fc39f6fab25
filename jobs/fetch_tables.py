"""fetch's tables, built from the journals of its tasks in one pass.

Rows that stand for themselves are written by the task that reads their journal; `host_visits` and
`robots` are merged a host at a time by the task that gets the host. This module needs no pyspark:
a worker imports the module of what it runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, TypeVar

import pyarrow as pa

from recrawl.config.model import Storage
from recrawl.fetch.journal import Row, parse_time, read_journal
from recrawl.fetch.merged import newest_robots, whole_visit
from recrawl.storage import Store
from recrawl.table_parts import PartWriter
from recrawl.tables.catalog import TABLES

T = TypeVar("T")

#: Written by the task that reads the journal.
OWN_TABLES = ("fetches", "skips", "warc_files")
#: Merged over all journals of the round.
MERGED_TABLES = ("host_visits", "robots")

_ROWS_AT_ONCE = 1_000
_HOSTS_AT_ONCE = 200

#: A row to be merged, or (without a host) a data file that was written.
LINE_SCHEMA = pa.schema([("host", pa.string()), ("table", pa.string()), ("row", pa.string())])


@dataclass(frozen=True)
class TablesTask:
    """What the tasks need besides their rows."""

    round_id: str
    storage: Storage

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the journals that the batches name: write the rows of own tables, pass on those to be merged."""
        store = Store(self.storage)
        with self._writers(OWN_TABLES, store) as writers:
            for name in _column(batches, "journal"):
                for lines in _batched(read_journal(store, name), _ROWS_AT_ONCE):
                    for table, writer in writers.items():
                        writer.write([_typed(table, row) for row_table, row in lines if row_table == table])
                    merged = [(row["host"], table, json.dumps(row)) for table, row in lines if table in MERGED_TABLES]
                    yield _lines(merged)
            yield _lines(_written(writers))

    def merge(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge rows that come sorted by host, write them; say where all data files are."""
        store = Store(self.storage)
        with self._writers(MERGED_TABLES, store) as writers:
            rows = (row for batch in batches for row in batch.to_pylist())
            hosts = groupby(rows, key=lambda row: row["host"])
            for group in _batched(((host, list(of_host)) for host, of_host in hosts), _HOSTS_AT_ONCE):
                merged = [_merged(of_host) for host, of_host in group if host is not None]
                for table, writer in writers.items():
                    writer.write([_typed(table, row) for of_host in merged for row in of_host[table]])
                yield from (_lines(_plain(of_host)) for host, of_host in group if host is None)
            yield _lines(_written(writers))

    @contextmanager
    def _writers(self, tables: Iterable[str], store: Store) -> Iterator[dict[str, PartWriter]]:
        own = {"round_id": self.round_id}
        writers = {
            table: PartWriter(store, table, own | ({"step": "fetch"} if "step" in TABLES[table].partition_by else {}))
            for table in tables
        }
        try:
            yield writers
        except BaseException:
            for writer in writers.values():
                writer.abandon()
            raise


def _merged(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of one host, merged, by table."""
    held: dict[str, list[Row]] = {table: [] for table in MERGED_TABLES}
    for row in rows:
        held[row["table"]].append(json.loads(row["row"]))
    visits = held["host_visits"]
    return {"host_visits": [whole_visit(visits)] if visits else [], "robots": newest_robots(held["robots"])}


def _plain(rows: Iterable[Row]) -> list[tuple[str | None, str, str]]:
    return [(None, row["table"], row["row"]) for row in rows]


def _written(writers: Mapping[str, PartWriter]) -> list[tuple[str | None, str, str]]:
    parts = [part for writer in writers.values() if (part := writer.close()) is not None]
    return [(None, part.table, part.to_text()) for part in parts]


def _lines(rows: Iterable[tuple[str | None, str, str]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(LINE_SCHEMA.names, row, strict=True)) for row in rows], LINE_SCHEMA)


def _column(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[Any]:
    for batch in batches:
        yield from batch.column(name).to_pylist()


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


_TIMES = {
    name: tuple(column.name for column in table.columns if column.type == "TIMESTAMP") for name, table in TABLES.items()
}


def _typed(table: str, row: Row) -> Row:
    """A journal's row with times in place of texts."""
    return row | {name: parse_time(row[name]) for name in _TIMES[table] if row.get(name)}
