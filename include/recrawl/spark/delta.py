"""Delta tables of one crawl: created from the catalogue, written in the two ways that exist.

The only place that merges. Event tables: `write_slice` replaces a round's slice. State tables:
`fold` is two commits, an update-only merge and an append, each with a transaction id, so that
doing them again does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from delta.tables import DeltaTable
from deltalake import DeltaTable as StoredTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from recrawl.config.model import Storage
from recrawl.errors import TableError
from recrawl.spark.direct import read_files, small_snapshot_files
from recrawl.spark.schema import schema_of
from recrawl.storage import Store
from recrawl.tables.catalog import MODEL_VERSION, TABLES, TABLES_FOLDER, Table, TableKind
from recrawl.tables.ddl import MODEL_VERSION_PROPERTY, constraints, properties

T = TypeVar("T")


class Tables:
    """The tables under one storage root.

    Args:
        spark: the session.
        store: the storage root.
        storage: its settings (retention, buckets).
    """

    def __init__(self, spark: SparkSession, store: Store, storage: Storage) -> None:
        self.spark = spark
        self.store = store
        self._storage = storage

    def path(self, table: str) -> str:
        """The address of a table."""
        return self.store.uri(f"{TABLES_FOLDER}/{table}")

    def create_missing(self) -> list[str]:
        """Create the tables that are not there; the names of those created.

        Raises:
            TableError: an existing table was made by a newer program, or by one with other columns.
        """
        missing = [name for name in TABLES if not self.store.exists(f"{TABLES_FOLDER}/{name}/_delta_log")]
        # Before anything is made: tables of two models in one place would fit neither program.
        self._check_model([name for name in TABLES if name not in missing])
        in_parallel([lambda name=name: self._create(TABLES[name]) for name in missing])  # type: ignore[misc]
        return missing

    def _check_model(self, names: list[str]) -> None:
        for name, found in zip(names, in_parallel([partial(self._as_stored, name) for name in names]), strict=True):
            version = int(found.metadata().configuration.get(MODEL_VERSION_PROPERTY, "0"))
            if version > MODEL_VERSION:
                raise TableError(
                    f"The tables under {self.store.root} have model version {version}, "
                    f"this program knows {MODEL_VERSION}.",
                    "Use the newer recrawl.",
                )
            stored, known = ({field.name for field in found.schema().fields}, set(schema_of(name).names))
            if stored != known:
                lacking, foreign = ", ".join(sorted(known - stored)), ", ".join(sorted(stored - known))
                differences = [f"lacks {lacking}"] * bool(lacking) + [f"has the unknown {foreign}"] * bool(foreign)
                raise TableError(
                    f"The tables under {self.store.root} were made by another version of recrawl: "
                    f"{name} {' and '.join(differences)}.",
                    "Go on with that version, or set storage.root to a new place and crawl anew.",
                )

    def _as_stored(self, table: str) -> StoredTable:
        return StoredTable(self.path(table), storage_options=self.store.delta_options() or None)

    def _create(self, table: Table) -> None:
        builder = DeltaTable.createIfNotExists(self.spark).location(self.path(table.name)).comment(table.sentence)
        for field in schema_of(table.name).fields:
            builder = builder.addColumn(
                field.name, field.dataType, nullable=field.nullable, comment=field.metadata["comment"]
            )
        for key, value in properties(table, self._storage.undo_days).items():
            builder = builder.property(key, value)
        for name, check in constraints(table).items():
            builder = builder.property(f"delta.constraints.{name}", check)
        if table.partition_by:
            builder = builder.partitionedBy(*table.partition_by)
        builder.execute()

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """A table, at a Delta version or now."""
        return self._snapshot(table, version, {})

    def read_slice(self, table: str, round_id: str) -> DataFrame:
        """A round's rows of an event table."""
        return self._snapshot(table, None, {"round_id": round_id})

    def _snapshot(self, table: str, version: int | None, partitions: dict[str, str]) -> DataFrame:
        files = small_snapshot_files(self.store, table, version, partitions)
        if files is not None:
            return read_files(self.spark, self.store, table, files)
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        rows = reader.load(self.path(table))
        for name, value in partitions.items():
            rows = rows.where(F.col(name) == value)
        return rows

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

    def write_slice(self, table: str, round_id: str, rows: DataFrame, step: str | None = None) -> None:
        """Replace a round's slice of an event table (of one step where several share it)."""
        declared = TABLES[table]
        if declared.kind is not TableKind.EVENT:
            raise TableError(f"{table} has no slices.")
        partitions = {"round_id": round_id} | ({"step": step} if step else {})
        writer = conform(rows, table).write.format("delta").option("userMetadata", round_id)
        if small_snapshot_files(self.store, table, None, partitions) == []:
            # Nothing to replace: an append is one commit without a look at the table's files.
            writer.mode("append").save(self.path(table))
            return
        where = " AND ".join(f"{name} = '{value}'" for name, value in partitions.items())
        writer.mode("overwrite").option("replaceWhere", where).save(self.path(table))

    def replace_ledger(self, table: str, rows: DataFrame, where: str | None = None) -> None:
        """Replace a ledger's rows: all of them, or those that `where` selects."""
        if TABLES[table].kind is not TableKind.LEDGER:
            raise TableError(f"{table} is no ledger.")
        writer = conform(rows, table).write.format("delta").mode("overwrite")
        if where is not None:
            writer = writer.option("replaceWhere", where)
        writer.save(self.path(table))

    def fold(self, table: str, transaction: str, updates: DataFrame | None, inserts: DataFrame | None) -> None:
        """Fold rows into a state table: update those that exist, append those that are new.

        Args:
            table: a state table.
            transaction: unique for round and generation; a commit under the same one is skipped.
            updates: whole rows whose key is in the table; None or empty: no commit.
            inserts: whole rows whose key is not; None: no commit.
        """
        declared = TABLES[table]
        if updates is not None:
            on = " AND ".join(f"t.{key} = s.{key}" for key in declared.key)
            touched = [row["bucket"] for row in updates.select("bucket").distinct().collect()]
            if touched:
                buckets = ", ".join(str(bucket) for bucket in sorted(touched))
                self._transaction(f"{transaction}/update")
                try:
                    (
                        DeltaTable.forPath(self.spark, self.path(table))
                        .alias("t")
                        .merge(conform(updates, table).alias("s"), f"t.bucket IN ({buckets}) AND {on}")
                        .whenMatchedUpdateAll()
                        .execute()
                    )
                finally:
                    self._transaction(None)
        if inserts is not None:
            (
                conform(inserts, table)
                .repartition("bucket")
                .sortWithinPartitions(*_layout(declared))
                .write.format("delta")
                .mode("append")
                .option("txnAppId", f"{transaction}/append")
                .option("txnVersion", 0)
                .save(self.path(table))
            )

    def _transaction(self, application: str | None) -> None:
        for key, value in (("txnAppId", application), ("txnVersion", "0")):
            name = f"spark.databricks.delta.write.{key}"
            if application is None:
                self.spark.conf.unset(name)
            else:
                self.spark.conf.set(name, str(value))

    def restore(self, table: str, version: int) -> None:
        """Bring a table back to a version, as a new commit."""
        DeltaTable.forPath(self.spark, self.path(table)).restoreToVersion(version)

    def delete_slice(self, table: str, round_id: str) -> None:
        """Delete a round's rows of an event table."""
        DeltaTable.forPath(self.spark, self.path(table)).delete(F.col("round_id") == round_id)


def _layout(table: Table) -> tuple[str, ...]:
    names = {column.name for column in table.columns}
    return ("bucket", "host", "url") if {"host", "url"} <= names else table.key


def conform(rows: DataFrame, table: str) -> DataFrame:
    """The table's columns in order and type; a column that is absent and may be NULL becomes NULL."""
    declared = TABLES[table]
    present = set(rows.columns)
    selected: list[Column] = []
    for field in schema_of(table).fields:
        if field.name in present:
            selected.append(F.col(field.name).cast(field.dataType).alias(field.name))
        elif declared.nullable(field.name):
            selected.append(F.lit(None).cast(field.dataType).alias(field.name))
        else:
            raise TableError(f"Rows for {table} lack the column {field.name}.")
    return rows.select(*selected)


def in_parallel(actions: list[Callable[[], T]], threads: int = 4) -> list[T]:
    """Run independent Spark actions side by side: small ones spend their time waiting."""
    if not actions:
        return []
    with ThreadPoolExecutor(max_workers=min(threads, len(actions))) as pool:
        return [future.result() for future in [pool.submit(action) for action in actions]]


def bucket_sql(host: str, buckets: int) -> str:
    """The bucket of a host column as SQL; equals `recrawl.urls.keys.bucket_of`."""
    return f"CAST(pmod(xxhash64({host}), {buckets}) AS INT)"
