"""Spark's frames over a crawl's Delta tables: read as of a version, written in the two ways that exist.

Event tables: `write_slice` replaces a round's slice. State tables: `fold` is two commits, an
update-only merge and an append, each with a transaction id, so that doing them again does nothing.
Ledgers are rows of one process: `recrawl.stored_tables`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from recrawl.errors import TableError
from recrawl.spark.direct import read_files, small_snapshot_files
from recrawl.spark.schema import schema_of
from recrawl.stored_tables import StoredTables
from recrawl.table_parts import PartFile, write_parts
from recrawl.tables.catalog import TABLES, Table, TableKind

T = TypeVar("T")


class Tables:
    """The tables under one storage root.

    Args:
        spark: the session.
        stored: the same tables, without Spark.
    """

    def __init__(self, spark: SparkSession, stored: StoredTables) -> None:
        self.spark = spark
        self._stored = stored

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """A table, at a Delta version or now."""
        return self._snapshot(table, version, {})

    def read_slice(self, table: str, round_id: str) -> DataFrame:
        """A round's rows of an event table."""
        return self._snapshot(table, None, {"round_id": round_id})

    def _snapshot(self, table: str, version: int | None, partitions: dict[str, str]) -> DataFrame:
        files = small_snapshot_files(self._stored.store, table, version, partitions)
        if files is not None:
            return read_files(self.spark, self._stored.store, table, files)
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        rows = reader.load(self._stored.path(table))
        for name, value in partitions.items():
            rows = rows.where(F.col(name) == value)
        return rows

    def write_slice(self, table: str, round_id: str, rows: DataFrame, step: str | None = None) -> None:
        """Replace a round's slice of an event table (of one step where several share it)."""
        declared = TABLES[table]
        if declared.kind is not TableKind.EVENT:
            raise TableError(f"{table} has no slices.")
        partitions = {"round_id": round_id} | ({"step": step} if step else {})
        self._stored.commit_parts(table, round_id, self._parts(table, rows, partitions), step)

    def _parts(self, table: str, rows: DataFrame, partitions: dict[str, str]) -> list[PartFile]:
        task = partial(write_parts, store=self._stored.store, table=table, partitions=partitions)
        said = conform(rows, table).mapInArrow(task, "part STRING").collect()
        return [PartFile.from_text(row["part"]) for row in said]

    def fold(self, table: str, transaction: str, updates: DataFrame | None, inserts: DataFrame | None) -> None:
        """Fold rows into a state table: update those that exist, append those that are new.

        Folds of several tables may run side by side.

        Args:
            table: a state table.
            transaction: unique for round and generation; a commit under the same one is skipped.
            updates: whole rows whose key is in the table; None or empty: no commit.
            inserts: whole rows whose key is not; None: no commit.
        """
        declared = TABLES[table]
        if updates is not None:
            touched = [row["bucket"] for row in updates.select("bucket").distinct().collect()]
            if touched:
                self._merge(declared, f"{transaction}/update", updates, sorted(touched))
        if inserts is not None and not self._stored.has_committed(table, f"{transaction}/append"):
            ordered = inserts.repartition("bucket").sortWithinPartitions(*_layout(declared))
            self._stored.append_parts(table, f"{transaction}/append", self._parts(table, ordered, {}))

    def _merge(self, table: Table, transaction: str, updates: DataFrame, buckets: list[int]) -> None:
        # A merge takes its transaction from the session's settings alone: each has a session of its own.
        session = self.spark.newSession()
        for key, value in (("txnAppId", transaction), ("txnVersion", "0")):
            session.conf.set(f"spark.databricks.delta.write.{key}", value)
        on = " AND ".join(f"t.{key} = s.{key}" for key in table.key)
        listed = ", ".join(map(str, buckets))
        (
            DeltaTable.forPath(session, self._stored.path(table.name))
            .alias("t")
            .merge(conform(updates, table.name).alias("s"), f"t.bucket IN ({listed}) AND {on}")
            .whenMatchedUpdateAll()
            .execute()
        )

    def restore(self, table: str, version: int) -> None:
        """Bring a table back to a version, as a new commit."""
        DeltaTable.forPath(self.spark, self._stored.path(table)).restoreToVersion(version)


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
