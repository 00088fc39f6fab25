"""rekey's work inside a Spark task: the identity that today's URL rules give to known URLs.

It stands here and not in the job, because a worker imports the module of what it runs: this one
needs no pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.domains import registered_domain
from recrawl.urls.identity import identity_of

#: What a task says of URLs whose id changes.
MOVED_SCHEMA = "url_id BIGINT, new_url_id BIGINT, new_url STRING, new_request_url STRING, new_host STRING"


def moved_urls(batches: Iterator[pa.RecordBatch], canonicalizer: Canonicalizer) -> Iterator[pa.RecordBatch]:
    """Of batches of (url_id, url, request_url) the rows whose id changes, as `MOVED_SCHEMA`."""
    schema = pa.schema(
        [
            ("url_id", pa.int64()),
            ("new_url_id", pa.int64()),
            ("new_url", pa.string()),
            ("new_request_url", pa.string()),
            ("new_host", pa.string()),
        ]
    )
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("url_id", "url", "request_url")]
        moved = []
        for known, url, request_url in zip(*columns, strict=True):
            identity = identity_of(request_url or url, canonicalizer)
            if identity is not None and identity["url"] != url:
                request = identity["request_url"]
                moved.append(
                    {
                        "url_id": known,
                        "new_url_id": identity["url_id"],
                        "new_url": identity["url"],
                        "new_request_url": None if request == identity["url"] else request,
                        "new_host": identity["host"],
                    }
                )
        yield pa.RecordBatch.from_pylist(moved, schema=schema)


def domains_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of batches of (host) the rows (host, domain)."""
    for batch in batches:
        hosts = batch.column("host").to_pylist()
        yield pa.RecordBatch.from_pydict({"host": hosts, "domain": [registered_domain(host) for host in hosts]})
