"""survey's work inside a Spark task: URLs taken apart by their parameters. No pyspark here."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from recrawl.urls.canonical import host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.keys import url_id

#: What a task says of each parameter of a URL: `rest` is the id of the URL without it.
PARAMETERS_SCHEMA = "domain STRING, name STRING, rest BIGINT, given STRING, content_checksum BIGINT, url STRING"


def parameters_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of batches of (url, content_checksum) one row a named parameter, as `PARAMETERS_SCHEMA`."""
    schema = pa.schema(
        [
            ("domain", pa.string()),
            ("name", pa.string()),
            ("rest", pa.int64()),
            ("given", pa.string()),
            ("content_checksum", pa.int64()),
            ("url", pa.string()),
        ]
    )
    for batch in batches:
        rows = []
        for url, checksum in zip(
            *(batch.column(name).to_pylist() for name in ("url", "content_checksum")), strict=True
        ):
            front, _, query = url.partition("?")
            pieces = query.split("&")
            domain = registered_domain(host_of(url))
            for place, piece in enumerate(pieces):
                name, equals, value = piece.partition("=")
                if equals and name:
                    rest = "&".join((*pieces[:place], *pieces[place + 1 :]))
                    given = url_id(f"{front}?{rest}#{name}")
                    rows.append((domain, name, given, value, checksum, url))
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )
