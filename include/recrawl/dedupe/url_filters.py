"""The Bloom filters of `urls` as files beside the table, and the tasks that ask and keep them.

A filter's bucket is `pmod(url_id, buckets)`: a link target is known by its id, whatever its host, so
that another URL under a known id is found too. The files stand in a folder of the table whose name
begins with an underscore: Delta's readers and VACUUM pass it by.

The tasks take and give Arrow batches; nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from recrawl.config.model import Storage
from recrawl.dedupe.bloom import ERROR_RATE, Coverage, UrlFilter
from recrawl.errors import StorageError
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES_FOLDER

FILTERS_FOLDER = f"{TABLES_FOLDER}/urls/_filters"

#: What `ids_maybe_known` gives.
IDS_SCHEMA = pa.schema([("url_id", pa.int64())])

#: What the tasks that keep filters give: a row a bucket.
KEPT_SCHEMA = pa.schema([("bucket", pa.int32()), ("covered", pa.bool_())])


@dataclass(frozen=True)
class FilterSettings:
    """What a task needs to find filters and to judge them.

    Attributes:
        storage: the storage root.
        table_version: version of `urls` that a filter must cover to be believed.
        rules_version: version of the URL rules.
        error_rate: false positives of a new filter at full capacity.
    """

    storage: Storage
    table_version: int
    rules_version: int
    error_rate: float = ERROR_RATE


def filter_name(bucket: int) -> str:
    """The file of a bucket's filter, relative to the storage root."""
    return f"{FILTERS_FOLDER}/{bucket:05}.bloom"


def load_filter(store: Store, bucket: int) -> UrlFilter | None:
    """A bucket's filter; None when there is none or its file is damaged."""
    data = store.read_bytes(filter_name(bucket))
    if data is None:
        return None
    try:
        return UrlFilter.from_bytes(data, bucket)
    except StorageError:
        return None


def bucket_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Int64Array]]:
    """(bucket, ids) of rows (bucket, url_id) that are sorted by bucket; ids that are NULL are left out.

    A bucket may come in several runs, one a batch at least.
    """
    for batch in batches:
        buckets, ids = batch.column("bucket"), batch.column("url_id")
        ends = pc.run_end_encode(buckets, run_end_type=pa.int32())
        start = 0
        for bucket, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
            yield bucket, ids.slice(start, end - start).drop_null()
            start = end


def ids_maybe_known(batches: Iterator[pa.RecordBatch], settings: FilterSettings) -> Iterator[pa.RecordBatch]:
    """The ids that go to the exact join: all but those that a covering filter has certainly not seen.

    Args:
        batches: rows (bucket, url_id), sorted by bucket.
        settings: `table_version` is the version that the exact join reads.
    """
    store = Store(settings.storage)
    held: tuple[int, UrlFilter | None] | None = None
    for bucket, ids in bucket_runs(batches):
        if held is None or held[0] != bucket:
            found = load_filter(store, bucket)
            if found is not None and found.is_stale(settings.table_version, settings.rules_version):
                found = None
            held = (bucket, found)
        maybe = ids if held[1] is None else ids.filter(held[1].maybe_seen(ids))
        if len(maybe):
            yield pa.RecordBatch.from_arrays([maybe], schema=IDS_SCHEMA)


def _ids_by_bucket(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.ChunkedArray]]:
    """(bucket, all its ids), one bucket at a time."""
    held: list[pa.Int64Array] = []
    current: int | None = None
    for bucket, ids in bucket_runs(batches):
        if current is not None and bucket != current:
            yield current, pa.chunked_array(held, type=pa.int64())
            held = []
        current = bucket
        held.append(ids)
    if current is not None:
        yield current, pa.chunked_array(held, type=pa.int64())


def extend_filters(
    batches: Iterator[pa.RecordBatch], settings: FilterSettings, new_version: int
) -> Iterator[pa.RecordBatch]:
    """Add the ids that a fold brought to filters that covered the version before it.

    Done again it changes nothing. A filter that is missing, stale or full is left alone and said to
    be not covered: it must be built.

    Args:
        batches: rows (bucket, url_id), sorted by bucket; a bucket without new ids has one row with NULL.
        settings: `table_version` is the version before the fold.
        new_version: the version that the fold made.
    """
    store = Store(settings.storage)
    for bucket, ids in _ids_by_bucket(batches):
        found = load_filter(store, bucket)
        covered = found is not None and not found.is_stale(new_version, settings.rules_version)
        if found is not None and not covered:
            fits = not found.is_stale(settings.table_version, settings.rules_version) and found.has_room(len(ids))
            if fits:
                found.add(ids, new_version)
                store.write_bytes(filter_name(bucket), found.to_bytes())
            covered = fits
        yield pa.RecordBatch.from_pylist([{"bucket": bucket, "covered": covered}], schema=KEPT_SCHEMA)


def build_filters(batches: Iterator[pa.RecordBatch], settings: FilterSettings) -> Iterator[pa.RecordBatch]:
    """Build filters of all ids of their buckets.

    Args:
        batches: rows (bucket, url_id) of `urls`, sorted by bucket; a bucket without ids has one row with NULL.
        settings: `table_version` is the version that the rows were read at.
    """
    store = Store(settings.storage)
    for bucket, ids in _ids_by_bucket(batches):
        coverage = Coverage(bucket, settings.table_version, settings.rules_version)
        built = UrlFilter.build(ids, coverage, error_rate=settings.error_rate)
        store.write_bytes(filter_name(bucket), built.to_bytes())
        yield pa.RecordBatch.from_pylist([{"bucket": bucket, "covered": True}], schema=KEPT_SCHEMA)
