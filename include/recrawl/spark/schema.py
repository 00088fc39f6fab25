"""Spark schemas of the declared tables, made without the JVM."""

from __future__ import annotations

from functools import cache

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from recrawl.tables.catalog import TABLES
from recrawl.tables.ddl import arrow_type


@cache
def schema_of(table: str) -> StructType:
    """The Spark schema of a table: names, types, which columns may be NULL, comments."""
    declared = TABLES[table]
    return StructType(
        [
            StructField(
                column.name,
                from_arrow_type(arrow_type(column.type)),
                nullable=declared.nullable(column.name),
                metadata={"comment": column.sentence},
            )
            for column in declared.columns
        ]
    )
