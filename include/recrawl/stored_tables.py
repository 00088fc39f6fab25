"""The crawl's tables through deltalake: made, looked at, and written from rows of this process.

What fits a list of rows needs no JVM: a row of `rounds`, decisions, seeds. Spark writes the rest
(`recrawl.spark.delta`); both commit to the same Delta log, under the lease one at a time.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recrawl.config.model import Storage
from recrawl.errors import TableError
from recrawl.storage import Store
from recrawl.table_parts import PartFile
from recrawl.tables.catalog import MODEL_VERSION, TABLES, TABLES_FOLDER, TableKind
from recrawl.tables.ddl import MODEL_VERSION_PROPERTY, arrow_schema
from recrawl.tables.first_commit import first_commit

if TYPE_CHECKING:
    from deltalake import DeltaTable

Rows = Sequence[Mapping[str, Any]]


class StoredTables:
    """The tables under one storage root.

    Args:
        store: the storage root.
        storage: its settings (retention).
    """

    def __init__(self, store: Store, storage: Storage) -> None:
        self.store = store
        self._storage = storage

    def path(self, table: str) -> str:
        """The address of a table."""
        return self.store.uri(f"{TABLES_FOLDER}/{table}")

    def create_missing(self, at: datetime) -> list[str]:
        """Create the tables that are not there; the names of those created.

        Raises:
            TableError: an existing table was made by a newer program, or by one with other columns.
        """
        missing = [name for name in TABLES if not self.store.exists(f"{TABLES_FOLDER}/{name}/_delta_log")]
        # Before anything is made: tables of two models in one place would fit neither program.
        for name in TABLES:
            if name not in missing:
                self._check_model(name)
        for name in missing:
            commit = first_commit(TABLES[name], self._storage.undo_days, str(uuid.uuid4()), at)
            self.store.create(f"{TABLES_FOLDER}/{name}/_delta_log/{0:020}.json", commit)
        return missing

    def _check_model(self, name: str) -> None:
        found = self.open(name)
        version = int(found.metadata().configuration.get(MODEL_VERSION_PROPERTY, "0"))
        if version > MODEL_VERSION:
            raise TableError(
                f"The tables under {self.store.root} have model version {version}, this program knows {MODEL_VERSION}.",
                "Use the newer recrawl.",
            )
        stored = {field.name for field in found.schema().fields}
        known = {column.name for column in TABLES[name].columns}
        if stored != known:
            lacking, foreign = ", ".join(sorted(known - stored)), ", ".join(sorted(stored - known))
            differences = [f"lacks {lacking}"] * bool(lacking) + [f"has the unknown {foreign}"] * bool(foreign)
            raise TableError(
                f"The tables under {self.store.root} were made by another version of recrawl: "
                f"{name} {' and '.join(differences)}.",
                "Go on with that version, or set storage.root to a new place and crawl anew.",
            )

    def open(self, table: str, version: int | None = None) -> DeltaTable:
        """A table at a version, or now."""
        from deltalake import DeltaTable

        return DeltaTable(self.path(table), version=version, storage_options=self.store.delta_options() or None)

    def version(self, table: str) -> int:
        """The newest Delta version of a table, from the names of its commits."""
        commits = [name.rpartition("/")[2] for name in self.store.names(f"{TABLES_FOLDER}/{table}/_delta_log")]
        numbers = [int(name[:20]) for name in commits if name[:20].isdigit() and name[20:] == ".json"]
        if not numbers:
            raise TableError(f"The table {table} has no commits under {self.path(table)}.")
        return max(numbers)

    def versions(self, tables: Iterable[str]) -> dict[str, int]:
        """The newest version of each table."""
        return {name: self.version(name) for name in tables}

    def batches(self, table: str, version: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a table at a version, or now, batch by batch."""
        from deltalake import QueryBuilder

        builder = QueryBuilder().register("t", self.open(table, version))
        yield from pa.RecordBatchReader.from_stream(builder.execute("SELECT * FROM t"))

    def rows(self, table: str, version: int | None = None) -> list[dict[str, Any]]:
        """All rows of a small table; MAP columns as dicts, times aware in UTC."""
        return [row for batch in self.batches(table, version) for row in rows_of_batch(batch)]

    def put(self, table: str, rows: Rows) -> None:
        """Insert rows into a ledger; a row of the same key is replaced."""
        declared = TABLES[table]
        self._require(table, TableKind.LEDGER)
        (
            self.open(table)
            .merge(
                arrow_rows(table, rows),
                " AND ".join(f"t.{key} = s.{key}" for key in declared.key),
                source_alias="s",
                target_alias="t",
            )
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    def remove(self, table: str, url_ids: Sequence[int]) -> None:
        """Delete the rows of a ledger with these `url_id`s, if they are there."""
        self._require(table, TableKind.LEDGER)
        if url_ids:
            self.open(table).delete(f"url_id IN ({', '.join(map(str, url_ids))})")

    def replace(self, table: str, rows: Rows) -> None:
        """Replace all rows of a ledger."""
        self._require(table, TableKind.LEDGER)
        self._overwrite(table, rows, None)

    def replace_slice(self, table: str, round_id: str, rows: Rows, step: str | None = None) -> None:
        """Replace a round's slice of an event table (of one step where several share it)."""
        self._require(table, TableKind.EVENT)
        if rows or self._slice_files(table, round_id, step):
            self._overwrite(table, rows, slice_predicate(round_id, step))

    def commit_parts(self, table: str, round_id: str, parts: Sequence[PartFile], step: str | None = None) -> None:
        """Let data files that tasks wrote be a round's slice of an event table, in one commit.

        Args:
            parts: what `PartWriter.close` gave; those of other tables are left aside.
        """
        from deltalake import CommitProperties
        from deltalake.transaction import AddAction, RemoveAction

        self._require(table, TableKind.EVENT)
        declared, stored = TABLES[table], self.open(table)
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                path=part.path,
                size=part.bytes,
                partition_values=dict(part.partitions),
                modification_time=int(time.time() * 1_000),
                data_change=True,
                stats=json.dumps({"numRecords": part.rows}),
            )
            for part in parts
            if part.table == table
        ]
        if actions or self._slice_files(table, round_id, step):
            stored.create_write_transaction(
                actions,
                "overwrite",
                stored.schema(),
                partition_by=list(declared.partition_by),
                partition_filters=_slice_filters(round_id, step),
                commit_properties=CommitProperties(custom_metadata={"userMetadata": round_id}),
            )

    def delete_slice(self, table: str, round_id: str) -> None:
        """Delete a round's rows of an event table."""
        self._require(table, TableKind.EVENT)
        self.open(table).delete(slice_predicate(round_id, None))

    def _slice_files(self, table: str, round_id: str, step: str | None) -> list[str]:
        files: list[str] = self.open(table).file_uris(file_pruning_predicate=_slice_filters(round_id, step))
        return files

    def _overwrite(self, table: str, rows: Rows, predicate: str | None) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.open(table), arrow_rows(table, rows), mode="overwrite", predicate=predicate)

    @staticmethod
    def _require(table: str, kind: TableKind) -> None:
        if TABLES[table].kind is not kind:
            raise TableError(f"{table} is a table of another kind: {TABLES[table].kind.value}, not {kind.value}.")


def slice_predicate(round_id: str, step: str | None) -> str:
    """The SQL that selects a round's slice (of one step)."""
    return f"round_id = '{round_id}'" + (f" AND step = '{step}'" if step else "")


def _slice_filters(round_id: str, step: str | None) -> list[tuple[str, str, str]]:
    return [("round_id", "=", round_id), *([("step", "=", step)] if step else [])]


def arrow_rows(table: str, rows: Rows) -> pa.Table:
    """Rows as the table's columns; a column that is absent is NULL.

    Raises:
        TableError: a value that the column can't hold.
    """
    schema = arrow_schema(TABLES[table], nullable=False)
    decimals = {field.name for field in schema if pa.types.is_decimal(field.type)}

    def stored(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return list(value.items())
        return Decimal(value) if name in decimals and value is not None else value

    try:
        return pa.Table.from_pylist(
            [{name: stored(name, row.get(name)) for name in schema.names} for row in rows], schema=schema
        )
    except (pa.ArrowException, TypeError) as error:
        raise TableError(f"Rows do not fit the table {table}: {error}") from None


def rows_of_batch(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """A batch as dicts; MAP columns as dicts, times aware in UTC."""
    rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
    return rows
