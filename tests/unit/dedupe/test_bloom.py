"""Bloom filters: never a false negative, and never a wrong file taken for a right one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.dedupe.bloom import Coverage, UrlFilter
from recrawl.errors import StorageError, TableError

COVERAGE = Coverage(bucket=3, table_version=17, rules_version=2)

ids = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=60)


@settings(max_examples=50, deadline=None)
@given(ids, ids, ids)
def test_what_was_added_is_never_certainly_new(built: list[int], added: list[int], asked: list[int]) -> None:
    urls = UrlFilter.build(built, COVERAGE)
    urls.add(added, table_version=18)
    read = UrlFilter.from_bytes(urls.to_bytes(), bucket=3)
    for one in (urls, read):
        assert all(one.maybe_seen(built + added).to_pylist())
        seen = dict(zip(asked, one.maybe_seen(asked).to_pylist(), strict=True))
        assert all(seen[url_id] for url_id in set(asked) & set(built + added))


def test_false_positives_are_as_rare_as_promised() -> None:
    rng = random.Random(4)
    known = [rng.randrange(-(2**63), 2**63) for _ in range(3_000)]
    others = [rng.randrange(-(2**63), 2**63) for _ in range(10_000)]
    urls = UrlFilter.build(known, COVERAGE, capacity=3_000, error_rate=0.01)
    assert sum(urls.maybe_seen(others).to_pylist()) < 200
    assert not urls.has_room(100)


def test_arrow_arrays_and_lists_are_the_same() -> None:
    array = pa.array([1, -5, 2**62])
    urls = UrlFilter.build(pa.chunked_array([array, array]), COVERAGE)
    assert len(urls) == 3
    assert urls.maybe_seen(array).equals(pa.array([True, True, True]))
    assert urls.maybe_seen([7]).to_pylist() == [False]
    assert urls.maybe_seen([]).type == pa.bool_()


def test_a_null_id_is_refused() -> None:
    with pytest.raises(ValueError, match="NULL"):
        UrlFilter.build([], COVERAGE).maybe_seen(pa.array([1, None]))


def test_a_file_keeps_what_it_covers() -> None:
    urls = UrlFilter.build([1, 2], COVERAGE)
    urls.add([3], table_version=20)
    data = urls.to_bytes()
    read = UrlFilter.from_bytes(data, bucket=3)
    assert read.coverage == Coverage(3, 20, 2)
    assert len(read) == 3
    assert read.to_bytes() == data


def test_staleness() -> None:
    urls = UrlFilter.build([1], COVERAGE)
    assert not urls.is_stale(17, 2)
    assert urls.is_stale(18, 2)
    assert urls.is_stale(16, 2)
    assert urls.is_stale(17, 3)
    urls.add([2], table_version=18)
    assert not urls.is_stale(18, 2)


def test_a_full_filter_and_an_old_version_are_refused_untouched() -> None:
    urls = UrlFilter.build([1], COVERAGE, capacity=3)
    with pytest.raises(TableError, match="full"):
        urls.add([2, 3, 4], table_version=18)
    with pytest.raises(TableError, match="version 17"):
        urls.add([2], table_version=17)
    assert urls.coverage == COVERAGE
    assert urls.maybe_seen([2]).to_pylist() == [False]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_file_is_a_fault(data: st.DataObject) -> None:
    whole = UrlFilter.build(list(range(20)), COVERAGE).to_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(flipped), whole[:place], whole + b"\0"):
        with pytest.raises(StorageError, match="Delete the file"):
            UrlFilter.from_bytes(damaged, bucket=3)


@pytest.mark.parametrize("foreign", [b"", b"PK\x03\x04", b"RCBLOOM1", b"RCBLOOM0" + b"\0" * 100])
def test_a_foreign_file_is_a_fault(foreign: bytes) -> None:
    with pytest.raises(StorageError):
        UrlFilter.from_bytes(foreign, bucket=3)


def test_the_filter_of_another_bucket_is_a_fault() -> None:
    with pytest.raises(StorageError, match="bucket 3, not 4"):
        UrlFilter.from_bytes(UrlFilter.build([1], COVERAGE).to_bytes(), bucket=4)
