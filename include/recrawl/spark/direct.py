"""Small snapshots read directly: the files of a Delta version as plain Parquet.

Delta's own scan runs Spark jobs over the table's state before it reads the first row: half a
second of CPU each time, and a step reads a dozen tables. For a snapshot of few files without
deletion vectors the list of its files is all there is to know; deltalake's kernel has it in
milliseconds. Everything larger, anything with deletion vectors and any object store goes the
usual way (`docs/decisions`).
"""

from __future__ import annotations

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from recrawl.spark.schema import schema_of
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES, TABLES_FOLDER, TableKind

#: Beyond these a snapshot is not small: Delta's scan costs nothing in comparison.
MAX_FILES = 100
MAX_ROWS = 2_000_000


def small_snapshot_files(store: Store, table: str, version: int | None, partitions: dict[str, str]) -> list[str] | None:
    """The data files of a snapshot (of some partitions of it), or None where it must be read by Delta."""
    if not store.is_local:
        return None
    snapshot = DeltaTable(str(store.local_path(f"{TABLES_FOLDER}/{table}")), version=version)
    predicate = [(name, "=", value) for name, value in partitions.items()]
    files: list[str] = snapshot.file_uris(file_pruning_predicate=predicate) if predicate else snapshot.file_uris()
    if len(files) > MAX_FILES:
        return None
    if TABLES[table].kind is TableKind.STATE:
        actions = snapshot.get_add_actions(flatten=True)
        rows = sum(count or 0 for count in actions.column("num_records").to_pylist())
        if rows > MAX_ROWS or any(True for _ in snapshot.deletion_vectors()):
            return None
    return files


def read_files(spark: SparkSession, store: Store, table: str, files: list[str]) -> DataFrame:
    """The rows of data files, with the partition columns that their paths name."""
    schema = schema_of(table)
    if not files:
        return spark.createDataFrame([], schema)
    base = str(store.local_path(f"{TABLES_FOLDER}/{table}"))
    return spark.read.schema(schema).option("basePath", base).parquet(*files).select(*schema.fieldNames())
