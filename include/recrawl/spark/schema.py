"""Spark schemas of the declared tables."""

from __future__ import annotations

from functools import cache

from pyspark.sql.types import DataType, StructField, StructType

from recrawl.tables.catalog import TABLES


@cache
def schema_of(table: str) -> StructType:
    """The Spark schema of a table: names, types, which columns may be NULL, comments."""
    declared = TABLES[table]
    return StructType(
        [
            StructField(
                column.name,
                DataType.fromDDL(column.type),
                nullable=declared.nullable(column.name),
                metadata={"comment": column.sentence},
            )
            for column in declared.columns
        ]
    )
