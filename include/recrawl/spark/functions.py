"""Small pieces of SQL and Arrow functions that several steps need."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame

from recrawl.urls.domains import registered_domain


def timestamp_sql(moment: datetime) -> str:
    """A moment as a SQL literal of a session in UTC."""
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"


def with_registered_domain(hosts: DataFrame) -> DataFrame:
    """Fill in `registered_domain` by `host` where it is NULL; other columns stay."""
    schema = hosts.schema

    def fill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            place = batch.schema.get_field_index("registered_domain")
            columns = list(batch.columns)
            columns[place] = pa.array([registered_domain(host) for host in batch.column("host").to_pylist()], pa.string())
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    unknown = hosts.where("registered_domain IS NULL").mapInArrow(fill, schema)
    return hosts.where("registered_domain IS NOT NULL").unionByName(unknown)
