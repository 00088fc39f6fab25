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
from itertools import groupby
from typing import Any

import pyarrow as pa

from recrawl.config.model import Storage
from recrawl.fetch.journal import Row, parse_time, read_journal
from recrawl.fetch.merged import newest_robots, whole_visit
from recrawl.storage import Store
from recrawl.table_parts import PartFile, PartWriter
from recrawl.tables.catalog import TABLES

#: Written by the task that reads the journal.
OWN_TABLES = ("fetches", "skips", "warc_files")
#: Merged over all journals of the round.
MERGED_TABLES = ("host_visits", "robots")

_ROWS_AT_ONCE = 1_000

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
                for lines in _chunks(read_journal(store, name)):
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
            for host, of_host in groupby(rows, key=lambda row: row["host"]):
                if host is None:
                    yield _lines((None, row["table"], row["row"]) for row in of_host)
                    continue
                held: dict[str, list[Row]] = {table: [] for table in MERGED_TABLES}
                for row in of_host:
                    held[row["table"]].append(json.loads(row["row"]))
                if held["host_visits"]:
                    writers["host_visits"].write([_typed("host_visits", whole_visit(held["host_visits"]))])
                writers["robots"].write([_typed("robots", row) for row in newest_robots(held["robots"])])
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


def part_files(rows: Iterable[Mapping[str, Any]]) -> list[PartFile]:
    """The data files of rows that `TablesTask.merge` gave."""
    return [PartFile(**json.loads(row["row"])) for row in rows]


def _written(writers: Mapping[str, PartWriter]) -> list[tuple[str | None, str, str]]:
    parts = [part for writer in writers.values() if (part := writer.close()) is not None]
    return [(None, part.table, json.dumps(part.as_json())) for part in parts]


def _lines(rows: Iterable[tuple[str | None, str, str]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [[], [], []]
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=LINE_SCHEMA)


def _column(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[Any]:
    for batch in batches:
        yield from batch.column(name).to_pylist()


def _chunks(lines: Iterator[tuple[str, Row]]) -> Iterator[list[tuple[str, Row]]]:
    held: list[tuple[str, Row]] = []
    for line in lines:
        held.append(line)
        if len(held) == _ROWS_AT_ONCE:
            yield held
            held = []
    if held:
        yield held


_TIMES = {
    name: tuple(column.name for column in table.columns if column.type == "TIMESTAMP") for name, table in TABLES.items()
}


def _typed(table: str, row: Row) -> Row:
    """A journal's row with times in place of texts."""
    return row | {name: parse_time(row[name]) for name in _TIMES[table] if row.get(name)}
