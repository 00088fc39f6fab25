"""Data files of event tables, written by the tasks that make the rows and committed by the driver.

A task writes its rows as Parquet under the table's folder, checks the table's constraints on
them, and says where they are; the driver commits the files of all tasks at once
(`StoredTables.commit_parts`). What an attempt left behind that was lost is in no commit: nobody
sees it, and VACUUM removes it.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recrawl.errors import TableError
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES, TABLES_FOLDER, Table
from recrawl.tables.ddl import arrow_schema

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
    """

    table: str
    path: str
    bytes: int
    rows: int
    partitions: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Its fields as JSON has them: what a task tells the driver."""
        return asdict(self)


class PartWriter:
    """Writes one data file of an event table.

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
        check_constraints(self._table, table)
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
        return PartFile(self._table.name, self._path, size_bytes, self._rows, self._partitions)

    def abandon(self) -> None:
        """Remove what was written: the task failed."""
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.unlink(missing_ok=True)


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
