"""What the definitions of `columns.py` and `catalog.py` look like to engines.

Pure text and Arrow types: CHECK constraints, table properties, and the Arrow schema of a table.
`first_commit.py` makes a Delta table of them.
"""

from __future__ import annotations

import re

import pyarrow as pa

from recrawl.tables.catalog import MODEL_VERSION, Table, TableKind

#: The property that carries the model's version; an older program refuses a newer table.
MODEL_VERSION_PROPERTY = "recrawl.modelVersion"

#: Columns of state tables that keep file statistics; nothing else of them is ever pruned by.
STATISTICS_COLUMNS = ("url_id", "host", "next_fetch_at", "content_checksum", "src_url_id")

_SIMPLE_TYPES: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "DATE": pa.date32(),
    "BINARY": pa.binary(),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def _quoted(text: str) -> str:
    """A SQL string literal as Spark reads it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def constraints(table: Table) -> dict[str, str]:
    """The CHECK constraints by name: closed sets and least values, each true for NULL.

    A constraint's name is `<column>_known` or `<column>_minimum`.
    """
    checks: dict[str, str] = {}
    for column in table.columns:
        or_null = f"{column.name} IS NULL OR " if table.nullable(column.name) else ""
        if column.values is not None:
            words = ", ".join(_quoted(member.value) for member in column.values)
            checks[f"{column.name}_known"] = f"{or_null}{column.name} IN ({words})"
        if column.minimum is not None:
            checks[f"{column.name}_minimum"] = f"{or_null}{column.name} >= {column.minimum}"
    return checks


def properties(table: Table, undo_days: int) -> dict[str, str]:
    """The Delta table properties.

    Args:
        undo_days: days that time travel and undo reach back; both retentions are set to it,
            because Delta refuses time travel beyond the shorter one.
    """
    retention = f"interval {undo_days} days"
    values = {
        "delta.deletedFileRetentionDuration": retention,
        "delta.logRetentionDuration": retention,
        "delta.autoOptimize.optimizeWrite": "false",
        "delta.autoOptimize.autoCompact": "false",
        "delta.checkpointPolicy": "classic",
        MODEL_VERSION_PROPERTY: str(MODEL_VERSION),
    }
    if table.kind is TableKind.STATE:
        values["delta.enableDeletionVectors"] = "true"
        values["delta.dataSkippingStatsColumns"] = ",".join(statistics_columns(table))
    if table.kind is TableKind.EVENT:
        # Slices are pruned by their partition; nothing else of an event is sorted.
        values["delta.dataSkippingNumIndexedCols"] = "0"
    return values


def statistics_columns(table: Table) -> tuple[str, ...]:
    """The columns by whose least and greatest values a table's files are skipped."""
    if table.kind is not TableKind.STATE:
        return ()
    names = {column.name for column in table.columns}
    return tuple(name for name in STATISTICS_COLUMNS if name in names)


def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type of a Spark SQL type. Raises ValueError for one that no column has."""
    text = spark_type.strip().upper()
    if text in _SIMPLE_TYPES:
        return _SIMPLE_TYPES[text]
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if text.startswith("ARRAY<") and text.endswith(">"):
        return pa.list_(arrow_type(text[6:-1]))
    if text.startswith("MAP<") and text.endswith(">"):
        key, _, value = text[4:-1].partition(",")
        return pa.map_(arrow_type(key), arrow_type(value))
    raise ValueError(f"{spark_type!r} has no Arrow type here.")


def arrow_schema(table: Table, nullable: bool = True) -> pa.Schema:
    """The Arrow schema of a table, times in microseconds UTC.

    Args:
        nullable: True lets every field be NULL (for reading journals); False takes the
            table's own NOT NULL.
    """
    return pa.schema(
        [
            pa.field(column.name, arrow_type(column.type), nullable=nullable or table.nullable(column.name))
            for column in table.columns
        ]
    )
