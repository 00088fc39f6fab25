"""Every group lies in one partition, and partitions end at about the same time."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.frontier.packing import (
    HostGroup,
    TaskPace,
    big_from_micros,
    forecast,
    groups_by_address,
    pack,
    partition_sql,
    predicted_finish,
    work_micros,
)

PACE = TaskPace(requests_per_second=50.0, bytes_per_second=5e6)
START = datetime(2026, 11, 30, 3, tzinfo=UTC)

works = st.dictionaries(st.text("abcdef", min_size=1, max_size=6), st.integers(1, 10**9), min_size=1, max_size=120)


def placed(work_of: dict[str, int], partitions: int) -> dict[str, int]:
    """Groups by partition, as the job does it: big ones by name, the rest by running sum."""
    limit = big_from_micros(sum(work_of.values()), partitions)
    big = {group: work for group, work in work_of.items() if work >= limit}
    small = {group: work for group, work in work_of.items() if work < limit}
    packing = pack(big.items(), sum(small.values()), partitions)
    assert set(packing.placed) == set(big)
    result = dict(packing.placed)
    before = 0
    for group in sorted(small):
        result[group] = packing.partition_at(before)
        before += small[group]
    return result


@given(works, st.integers(1, 9))
def test_every_group_lies_in_one_partition_and_none_is_overfull(work_of: dict[str, int], partitions: int) -> None:
    where = placed(work_of, partitions)
    assert set(where) == set(work_of)
    loads = [0] * partitions
    for group, partition in where.items():
        loads[partition] += work_of[group]
    even = sum(loads) / partitions
    # Graham's bound for the big ones; the small ones fill up to one level and overshoot by less than one of them.
    assert max(loads) <= even + max(work_of.values()) + partitions


@pytest.mark.parametrize("partitions", range(1, 10))
def test_many_small_groups_balance_within_two_percent(partitions: int) -> None:
    rng = random.Random(partitions)
    work_of = {f"{i:05}": rng.randrange(1, 1_000) for i in range(1_500)}
    work_of["giant"] = sum(work_of.values()) // (2 * partitions)
    loads = [0] * partitions
    for group, partition in placed(work_of, partitions).items():
        loads[partition] += work_of[group]
    assert max(loads) <= 1.02 * sum(loads) / partitions
    assert min(loads) >= 0.98 * sum(loads) / partitions


@given(works, st.integers(1, 9), st.randoms(use_true_random=False))
def test_the_order_of_groups_does_not_matter(work_of: dict[str, int], partitions: int, rng: random.Random) -> None:
    items = list(work_of.items())
    rng.shuffle(items)
    assert pack(items, 77, partitions) == pack(work_of.items(), 77, partitions)


def test_the_heaviest_go_first_onto_the_least_loaded() -> None:
    packing = pack([("a", 5), ("b", 4), ("c", 3), ("d", 3)], 0, 2)
    assert packing.placed == {"a": 0, "b": 1, "c": 1, "d": 0}


def test_small_groups_fill_the_room_that_big_ones_leave() -> None:
    packing = pack([("a", 10), ("b", 4)], 8, 3)
    assert packing.order == (1, 2)
    assert packing.boundaries == (2,)
    assert [packing.partition_at(sum_before) for sum_before in (0, 1, 2, 7)] == [1, 1, 2, 2]
    assert partition_sql("s", packing) == "array(1, 2)[size(filter(array(2L), b -> b <= s))]"


def test_one_partition_takes_all() -> None:
    assert partition_sql("s", pack([], 10, 1)) == "array(0)[0]"
    assert pack([("a", 1)], 0, 1).placed == {"a": 0}
    with pytest.raises(ValueError, match="must be a partition"):
        pack([], 0, 0)


def test_work_is_the_slower_of_requests_and_bytes() -> None:
    assert work_micros(50, 0, PACE) == 1_000_000
    assert work_micros(50, 10_000_000, PACE) == 2_000_000
    assert work_micros(0, 0, PACE) == 1


def test_only_one_percent_of_a_partition_is_big() -> None:
    assert big_from_micros(100_000, 10) == 101


def test_a_forecast_names_the_group_of_the_slowest_host() -> None:
    groups = [HostGroup("a.org", 100, 200.0, 1_000), HostGroup("b.org", 900, 30.0, 2_000)]
    seen = forecast(3, groups, PACE)
    assert (seen.partition, seen.groups, seen.requests, seen.bytes) == (3, 2, 1_000, 3_000)
    assert (seen.seconds, seen.longest_group) == (200.0, "a.org")
    busy = forecast(4, [HostGroup("c.org", 50_000, 10.0, 0)], PACE)
    assert busy.seconds == 1_000.0
    assert predicted_finish(START, [seen, busy], 5_000.0) == START + timedelta(seconds=1_000)
    assert predicted_finish(START, [seen, busy], 300.0) == START + timedelta(seconds=300)
    assert predicted_finish(START, [forecast(0, [], PACE)], 300.0) == START


def test_domains_that_share_an_address_share_a_group() -> None:
    addresses = {"a.org": ["1"], "b.org": ["1", "2"], "c.org": ["2"], "d.org": ["3"], "e.org": []}
    assert groups_by_address(addresses) == {
        "a.org": "a.org",
        "b.org": "a.org",
        "c.org": "a.org",
        "d.org": "d.org",
        "e.org": "e.org",
    }


def test_a_crowded_address_joins_nothing() -> None:
    addresses = {f"{i}.org": ["cdn"] for i in range(51)}
    assert groups_by_address(addresses) == {domain: domain for domain in addresses}
    assert set(groups_by_address(dict(list(addresses.items())[:50])).values()) == {"0.org"}
