"""Data files of tables, written by the tasks that make the rows and committed by the driver.

A task writes its rows as Parquet under the table's folder, checks the table's constraints on
them, and says where they are; the driver commits the files of all tasks at once
(`StoredTables.commit_parts`). What an attempt left behind that was lost is in no commit: nobody
sees it, and VACUUM removes it.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recrawl.errors import TableError
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES, TABLES_FOLDER, Table
from recrawl.tables.ddl import arrow_schema, statistics_columns

#: Rows are held until they fill a row group of about this size.
_ROW_GROUP_BYTES = 32 << 20


@dataclass(frozen=True)
class PartFile:
    """A data file that no commit names yet.

    Attributes:
        table: its table.
        path: relative to the table's folder.
        bytes, rows: its size.
        partitions: its partition, column by column.
        statistics: as Delta's log has them: `minValues`, `maxValues`, `nullCount` of the columns
            that files are skipped by.
    """

    table: str
    path: str
    bytes: int
    rows: int
    partitions: Mapping[str, str]
    statistics: Mapping[str, Mapping[str, Any]]

    def to_text(self) -> str:
        """Itself as JSON: what a task tells the driver."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> PartFile:
        """The part of `to_text`."""
        return cls(**json.loads(text))


class PartWriter:
    """Writes one data file of a table.

    Args:
        store: the storage root.
        table: the table.
        partitions: the value of each partition column, the same in every row.
    """

    def __init__(self, store: Store, table: str, partitions: Mapping[str, str]) -> None:
        self._store = store
        self._table = TABLES[table]
        self._partitions = dict(partitions)
        schema = arrow_schema(self._table)
        self._schema = pa.schema([field for field in schema if field.name not in self._partitions])
        folder = "/".join(f"{name}={self._partitions[name]}" for name in self._table.partition_by)
        self._path = f"{folder}/part-{uuid.uuid4()}.snappy.parquet"
        self._ranges = {name: ColumnRange() for name in statistics_columns(self._table)}
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._file: Path | None = None
        self._rows = 0

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows, each with every column that may not be NULL; partition columns are left out.

        Raises:
            TableError: rows that the table's columns or constraints do not allow.
        """
        if not rows:
            return
        try:
            table = pa.Table.from_pylist(list(rows), schema=self._schema)
        except (pa.ArrowException, TypeError) as error:
            raise TableError(f"Rows do not fit the table {self._table.name}: {error}") from None
        self.write_table(table)

    def write_table(self, rows: pa.Table) -> None:
        """Add rows that have the table's columns (partition columns are left out).

        Raises:
            TableError: rows that the table's columns or constraints do not allow.
        """
        try:
            table = rows.select(self._schema.names).cast(self._schema)
        except (pa.ArrowException, KeyError) as error:
            raise TableError(f"Rows do not fit the table {self._table.name}: {error}") from None
        if not table.num_rows:
            return
        check_constraints(self._table, table)
        for name, column_range in self._ranges.items():
            column_range.add(table.column(name))
        self._held.append(table)
        self._held_bytes += table.nbytes
        self._rows += table.num_rows
        if self._held_bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._file = self._temporary_file()
            self._writer = pq.ParquetWriter(self._file, self._schema, compression="snappy")
        self._writer.write_table(pa.concat_tables(self._held).combine_chunks())
        self._held.clear()
        self._held_bytes = 0

    def _temporary_file(self) -> Path:
        if not self._store.is_local:
            return Path(tempfile.mkdtemp(prefix="recrawl-part-")) / "part.parquet"
        # A name with a dot in front is no data file to any engine.
        target = self._store.local_path(f"{TABLES_FOLDER}/{self._table.name}/{self._path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.with_name(f".{target.name}.tmp")

    def close(self) -> PartFile | None:
        """Put the file in its place, whole; None where no row was written."""
        if not self._rows:
            return None
        if self._held:
            self._flush()
        assert self._writer is not None
        assert self._file is not None
        self._writer.close()
        size_bytes = self._file.stat().st_size
        self._store.publish(self._file, f"{TABLES_FOLDER}/{self._table.name}/{self._path}")
        if not self._store.is_local:
            self._file.parent.rmdir()
        statistics: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
        for name, column_range in self._ranges.items():
            column_range.describe(name, statistics)
        return PartFile(self._table.name, self._path, size_bytes, self._rows, self._partitions, statistics)

    def abandon(self) -> None:
        """Remove what was written: the task failed."""
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.unlink(missing_ok=True)


def write_parts(
    batches: Iterable[pa.RecordBatch], store: Store, table: str, partitions: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """One Spark task: write rows to data files, a file a partition of the table.

    Args:
        batches: rows with the table's columns; those of one partition come one after the other.
        partitions: values of partition columns that are the same in every row, known beforehand.

    Returns:
        One batch with the column `part`: `PartFile.to_text` of each file.
    """
    by_rows = [name for name in TABLES[table].partition_by if name not in partitions]
    written: list[PartFile | None] = []
    writer, place = PartWriter(store, table, partitions) if not by_rows else None, None
    try:
        for batch in batches:
            for values, rows in _by_partition(pa.Table.from_batches([batch]), by_rows):
                if writer is None or values != place:
                    if writer is not None:
                        written.append(writer.close())
                    writer, place = PartWriter(store, table, {**partitions, **values}), values
                writer.write_table(rows)
        if writer is not None:
            written.append(writer.close())
    except BaseException:
        if writer is not None:
            writer.abandon()
        raise
    texts = [part.to_text() for part in written if part is not None]
    yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["part"])


def _by_partition(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """Runs of rows that share the values of the columns."""
    if not names:
        yield {}, rows
        return
    keys = list(zip(*(rows.column(name).to_pylist() for name in names), strict=True))
    for values, run in groupby(range(len(keys)), key=keys.__getitem__):
        places = list(run)
        yield (
            {name: str(value) for name, value in zip(names, values, strict=True)},
            rows.slice(places[0], len(places)),
        )


class ColumnRange:
    """The least and greatest value of a column, and how many are NULL."""

    def __init__(self) -> None:
        self._least: Any = None
        self._greatest: Any = None
        self._nulls = 0

    def add(self, values: pa.ChunkedArray) -> None:
        """Take in the values of some rows."""
        self._nulls += values.null_count
        bounds = pc.min_max(values).as_py()
        if bounds["min"] is not None:
            self._least = bounds["min"] if self._least is None else min(self._least, bounds["min"])
            self._greatest = bounds["max"] if self._greatest is None else max(self._greatest, bounds["max"])

    def describe(self, name: str, statistics: Mapping[str, dict[str, Any]]) -> None:
        """Add the column to `minValues`, `maxValues` and `nullCount` of Delta's statistics."""
        statistics["nullCount"][name] = self._nulls
        if self._least is not None:
            statistics["minValues"][name] = _stated(self._least)
            statistics["maxValues"][name] = _stated(self._greatest, timedelta(milliseconds=1))


def _stated(value: Any, up: timedelta = timedelta()) -> Any:
    """A value in Delta's statistics: times in whole milliseconds, a greatest one no earlier than it is."""
    if not isinstance(value, datetime):
        return value
    rounded = value + up if value.microsecond % 1_000 else value
    return rounded.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_constraints(table: Table, rows: pa.Table) -> None:
    """Hold rows against the table's NOT NULL and CHECK constraints.

    Raises:
        TableError: the first constraint that a row breaks, with a value that breaks it.
    """
    for column in table.columns:
        if column.name not in rows.column_names:
            continue
        values = rows.column(column.name)
        if values.null_count and not table.nullable(column.name):
            raise TableError(f"{table.name}.{column.name} may not be NULL, and is in {values.null_count} rows.")
        present = values.drop_null()
        if column.values is not None:
            known = {member.value for member in column.values}
            unknown = [value for value in pc.unique(present).to_pylist() if value not in known]
            if unknown:
                raise TableError(f"{table.name}.{column.name} knows no {unknown[0]!r}.")
        if column.minimum is not None and len(present):
            least = pc.min(present).as_py()
            if least < column.minimum:
                raise TableError(f"{table.name}.{column.name} is at least {column.minimum}, not {least}.")
