"""The crawl's tables through deltalake: made, looked at, and written from rows of this process.

What fits a list of rows needs no JVM: a row of `rounds`, decisions, seeds. Spark writes the rest
(`recrawl.spark.delta`); both commit to the same Delta log, under the lease one at a time.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from recrawl.config.model import Storage
from recrawl.errors import StorageError, TableError
from recrawl.storage import Store
from recrawl.table_parts import PartFile
from recrawl.tables.catalog import DATABASE, MODEL_VERSION, TABLES, TABLES_FOLDER, TableKind
from recrawl.tables.ddl import MODEL_VERSION_PROPERTY, arrow_schema
from recrawl.tables.first_commit import first_commit

if TYPE_CHECKING:
    from deltalake import DeltaTable

Rows = Sequence[Mapping[str, Any]]

#: How deltalake draws the causes of an error.
_DRAWING = re.compile(r"\x1b\[[0-9;]*m|\u21b3")


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
        stored = {field.name for field in self.open(name).schema().fields}
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
        """A table at a version, or now. Raises as `open_table`, and where there is no such table."""
        opened = open_table(self.store, table, version)
        if opened is None:
            raise TableError(f"There is no table {DATABASE}.{table} under {self.store.root}.")
        return opened

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
        self._require(table, TableKind.EVENT)
        added = [_add_action(part) for part in parts if part.table == table]
        if added or self._slice_files(table, round_id, step):
            self._commit(table, added, "overwrite", {"userMetadata": round_id}, _slice_filters(round_id, step))

    def append_parts(self, table: str, transaction: str, parts: Sequence[PartFile]) -> None:
        """Append data files that tasks wrote to a state table, in one commit; done once a transaction."""
        self._require(table, TableKind.STATE)
        added = [_add_action(part) for part in parts]
        if added and not self.has_committed(table, transaction):
            self._commit(table, added, "append", {}, transaction=transaction)

    def has_committed(self, table: str, transaction: str) -> bool:
        """Whether a commit under this transaction id is in force."""
        return self.open(table).transaction_version(transaction) is not None

    def _commit(
        self,
        table: str,
        actions: list[Any],
        mode: Literal["append", "overwrite"],
        metadata: dict[str, str],
        replaced: list[tuple[str, str, str]] | None = None,
        transaction: str | None = None,
    ) -> None:
        from deltalake import CommitProperties, Transaction

        stored = self.open(table)
        stored.create_write_transaction(
            actions,
            mode,
            stored.schema(),
            partition_by=list(TABLES[table].partition_by),
            partition_filters=replaced,
            commit_properties=CommitProperties(
                custom_metadata=metadata,
                app_transactions=[Transaction(transaction, 0)] if transaction else None,
            ),
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


def open_table(store: Store, table: str, version: int | None = None) -> DeltaTable | None:
    """A table at a version, or now; None where there is none yet.

    Raises:
        StorageError: the storage can't be reached or refuses.
        TableError: the version is no longer there, or the table was made by a newer program.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    folder = f"{TABLES_FOLDER}/{table}"
    if store.is_local and not store.exists(f"{folder}/_delta_log"):
        return None
    try:
        opened = DeltaTable(store.uri(folder), version=version, storage_options=store.delta_options() or None)
    except TableNotFoundError:
        return None
    except OSError as error:
        mend = "Check storage.root, storage.s3_endpoint and the keys."
        raise StorageError(f"{store.root} can't be read: {engine_sentence(error)}", mend) from None
    except DeltaError as error:
        if version is None:
            raise TableError(f"{DATABASE}.{table} can't be read: {engine_sentence(error)}") from None
        raise TableError(
            f"{DATABASE}.{table} no longer has its version {version}.", "Time travel reaches back storage.undo_days."
        ) from None
    model = int(opened.metadata().configuration.get(MODEL_VERSION_PROPERTY) or 0)
    if model > MODEL_VERSION:
        raise TableError(
            f"{DATABASE}.{table} has model version {model}, this program knows {MODEL_VERSION}.",
            "Use the newer program.",
        )
    return opened


def engine_sentence(error: Exception) -> str:
    """An engine's message as one line, without the drawing of its causes."""
    lines = [line.strip() for line in _DRAWING.sub("", str(error)).splitlines()]
    text = " ".join(line for line in lines if line and line != "caused by")
    return text if len(text) <= 400 else f"{text[:397]}…"


def _add_action(part: PartFile) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(
        path=part.path,
        size=part.bytes,
        partition_values=dict(part.partitions),
        modification_time=int(time.time() * 1_000),
        data_change=True,
        stats=json.dumps({"numRecords": part.rows, **part.statistics}),
    )


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
