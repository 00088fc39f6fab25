"""Filters as files, asked and kept in Arrow batches: no URL is ever lost, whatever the filters are."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.config.model import Storage
from recrawl.dedupe.bloom import Coverage, UrlFilter
from recrawl.dedupe.url_filters import (
    KEPT_SCHEMA,
    FilterSettings,
    bucket_runs,
    build_filters,
    extend_filters,
    filter_name,
    ids_maybe_known,
    load_filter,
)
from recrawl.storage import Store

BUCKETS = 4
ROWS = pa.schema([("bucket", pa.int32()), ("url_id", pa.int64())])

sets_of_ids = st.sets(st.integers(-(2**63), 2**63 - 1), max_size=40)


def a_place(folder: Path, version: int = 7, error_rate: float = 0.001) -> FilterSettings:
    """Settings for filters under `folder` that cover version 7 of the table, rules version 2."""
    return FilterSettings(Storage(root=str(folder)), version, 2, error_rate)


def rows(ids: set[int], batch_rows: int = 7, every_bucket: bool = False) -> list[pa.RecordBatch]:
    """Ids with their buckets, sorted, in small batches; NULL stands for a bucket without any."""
    pairs = sorted((one % BUCKETS, one) for one in ids)
    if every_bucket:
        pairs = sorted([*pairs, *((bucket, None) for bucket in range(BUCKETS))], key=lambda pair: pair[0])
    table = pa.Table.from_pylist([{"bucket": bucket, "url_id": one} for bucket, one in pairs], schema=ROWS)
    return list(table.to_batches(max_chunksize=batch_rows))


def asked(ids: set[int], place: FilterSettings) -> set[int]:
    """What goes to the exact join."""
    found = [one for batch in ids_maybe_known(iter(rows(ids)), place) for one in batch.column("url_id").to_pylist()]
    assert len(found) == len(set(found))
    return set(found)


def covered(batches: list[pa.RecordBatch]) -> dict[int, bool]:
    """Bucket to whether its filter covers the table."""
    return {row["bucket"]: row["covered"] for row in pa.Table.from_batches(batches, KEPT_SCHEMA).to_pylist()}


@settings(max_examples=30, deadline=None)
@given(sets_of_ids, sets_of_ids, sets_of_ids, st.sampled_from([0.001, 0.5]))
def test_the_exact_join_sees_every_known_id(
    tmp_path_factory, known: set[int], later: set[int], candidates: set[int], error_rate: float
) -> None:
    # Given: filters of what is known, of which half the answers may be wrong; then a fold that adds ids.
    place = a_place(tmp_path_factory.mktemp("root"), error_rate=error_rate)
    assert covered(list(build_filters(iter(rows(known, every_bucket=True)), place))) == dict.fromkeys(range(4), True)
    everything = candidates | known | later

    # Then: `is_new`, by the exact join over what the filters leave, is that of the set.
    assert asked(everything, place) >= known
    assert {one for one in everything if one not in asked(everything, place) & known} == everything - known

    # And after the fold; asked at a version that the filters do not cover, everything goes to the join.
    kept = list(extend_filters(iter(rows(later - known, every_bucket=True)), place, new_version=9))
    assert covered(kept) == dict.fromkeys(range(4), True)
    assert asked(everything, a_place(Path(place.storage.root), version=9)) >= known | later
    for stale in (7, 8, 10):
        assert asked(everything, a_place(Path(place.storage.root), version=stale)) == everything


def test_certainly_new_ids_are_left_out(tmp_path: Path) -> None:
    draw = random.Random(3)
    known = {draw.randrange(-(2**63), 2**63) for _ in range(2_000)}
    others = {draw.randrange(-(2**63), 2**63) for _ in range(2_000)}
    place = a_place(tmp_path)
    list(build_filters(iter(rows(known, 500, every_bucket=True)), place))
    assert len(asked(known | others, place)) < 2_020
    # With half the answers wrong the join has more to do, and the same result.
    rough = a_place(tmp_path, error_rate=0.5)
    for bucket in range(BUCKETS):
        own = sorted(one for one in known if one % BUCKETS == bucket)
        full = UrlFilter.build(own, Coverage(bucket, 7, 2), capacity=len(own), error_rate=0.5)
        Store(rough.storage).write_bytes(filter_name(bucket), full.to_bytes())
    left = asked(known | others, rough)
    assert left >= known
    assert 2_600 < len(left) < 3_400


def test_a_damaged_or_missing_filter_decides_nothing(tmp_path: Path) -> None:
    place, store = a_place(tmp_path), Store(Storage(root=str(tmp_path)))
    list(build_filters(iter(rows({4, 5, 6, 7}, every_bucket=True)), place))
    store.delete(filter_name(0))
    store.write_bytes(filter_name(1), b"torn")
    assert load_filter(store, 0) is None
    assert load_filter(store, 1) is None
    assert asked({8, 9, 10, 11}, place) == {8, 9}
    kept = list(extend_filters(iter(rows({8, 9, 10, 11}, every_bucket=True)), place, new_version=8))
    assert covered(kept) == {0: False, 1: False, 2: True, 3: True}


def test_keeping_filters_again_changes_nothing(tmp_path: Path) -> None:
    place, store = a_place(tmp_path), Store(Storage(root=str(tmp_path)))
    list(build_filters(iter(rows({4}, every_bucket=True)), place))
    more = rows({8, 9, 10, 11}, every_bucket=True)
    list(extend_filters(iter(more), place, new_version=8))
    first = [store.read_bytes(filter_name(bucket)) for bucket in range(BUCKETS)]
    assert covered(list(extend_filters(iter(more), place, new_version=8))) == dict.fromkeys(range(4), True)
    assert [store.read_bytes(filter_name(bucket)) for bucket in range(BUCKETS)] == first
    full = rows({4 * number for number in range(2_000)}, every_bucket=True)
    kept = list(extend_filters(iter(full), a_place(tmp_path, version=8), new_version=9))
    assert covered(kept) == {0: False, 1: True, 2: True, 3: True}


def test_runs_of_a_bucket_keep_their_ids() -> None:
    batches = rows({4, 8, 12, 5, 6, 10}, batch_rows=2, every_bucket=True)
    found: dict[int, list[int]] = {}
    for bucket, ids in bucket_runs(iter(batches)):
        found.setdefault(bucket, []).extend(ids.to_pylist())
    assert found == {0: [4, 8, 12], 1: [5], 2: [6, 10], 3: []}
