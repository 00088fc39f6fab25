"""Floors, the rest by value, ties by the round; and the two-step form that SQL takes."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.frontier.queues import (
    MANUAL_BAND_RISE,
    NOTHING,
    Cut,
    Cuts,
    Due,
    above_cut_sql,
    band,
    guaranteed_counts,
    in_cut_sql,
    plan_cuts,
    round_seed,
    take,
    tie_hash,
)
from recrawl.tables.vocabulary import FrontQueue
from recrawl.urls.keys import url_id

WEIGHTS = {
    FrontQueue.MANUAL: 0.1,
    FrontQueue.DISCOVERY: 0.3,
    FrontQueue.REFRESH: 0.2,
    FrontQueue.RETRY: 0.05,
}
SEED = round_seed("20261130T030000.000000Z")

values = st.one_of(st.just(0.0), st.sampled_from([1.0, 1.01, 2.0]), st.floats(1e-6, 1e6))
due_lists = st.lists(st.tuples(st.sampled_from(FrontQueue), values), max_size=80).map(
    lambda rows: [Due(number - 20, queue, value) for number, (queue, value) in enumerate(rows)]
)


def rank_of(row: Due) -> tuple[float, int, int]:
    return -row.value, tie_hash(row.url_id, SEED), row.url_id


def taken_by_cuts(due: list[Due], cuts: Cuts) -> set[int]:
    """What the SQL of the module's docstring does: comparisons, and row numbers in cut bands alone."""

    def passing(rows: list[tuple[Due, int]], cut: Cut) -> set[int]:
        within = sorted((row for row, b in rows if b == cut.band), key=rank_of)
        return {row.url_id for row, b in rows if b > cut.band} | {r.url_id for r in within[: cut.taken_in_band]}

    taken: set[int] = set()
    for queue, cut in cuts.guaranteed.items():
        taken |= passing([(row, band(row.value)) for row in due if row.queue == queue], cut)
    rest = [row for row in due if row.url_id not in taken]
    rises = {queue: MANUAL_BAND_RISE if queue == FrontQueue.MANUAL else 0 for queue in FrontQueue}
    return taken | passing([(row, band(row.value) + rises[row.queue]) for row in rest], cuts.rest)


@given(due_lists, st.integers(0, 100))
def test_capacity_is_used_and_never_passed(due: list[Due], capacity: int) -> None:
    taken = take(due, capacity, WEIGHTS, SEED)
    assert len(taken) == min(capacity, len(due))
    assert len({row.url_id for row in taken}) == len(taken)


@given(due_lists, st.integers(0, 100))
def test_every_queue_gets_its_floor_and_its_own_best(due: list[Due], capacity: int) -> None:
    taken = {row.url_id for row in take(due, capacity, WEIGHTS, SEED)}
    for queue, floor in guaranteed_counts(capacity, WEIGHTS).items():
        own = sorted((row for row in due if row.queue == queue), key=rank_of)
        marks = [row.url_id in taken for row in own]
        assert sum(marks) >= min(floor, len(own))
        assert marks == sorted(marks, reverse=True)


@given(due_lists, st.integers(0, 100))
def test_the_two_steps_of_the_job_take_the_same(due: list[Due], capacity: int) -> None:
    counts = Counter((row.queue, band(row.value)) for row in due)
    cuts = plan_cuts(counts, capacity, WEIGHTS)
    assert taken_by_cuts(due, cuts) == {row.url_id for row in take(due, capacity, WEIGHTS, SEED)}


@pytest.mark.parametrize("capacity", [40, 100, 199, 250])
def test_the_two_steps_take_the_same_where_a_poor_queue_needs_its_floor(capacity: int) -> None:
    rng = random.Random(capacity)
    scale = {queue: 100.0**place for place, queue in enumerate(FrontQueue)}
    due = []
    for number in range(300):
        queue = rng.choice(list(FrontQueue))
        due.append(Due(number, queue, round(rng.uniform(0.0, 3.0), 1) * scale[queue]))
    cuts = plan_cuts(Counter((row.queue, band(row.value)) for row in due), capacity, WEIGHTS)
    assert taken_by_cuts(due, cuts) == {row.url_id for row in take(due, capacity, WEIGHTS, SEED)}


@given(due_lists, st.integers(0, 100), st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_matter(due: list[Due], capacity: int, shuffler: random.Random) -> None:
    again = list(due)
    shuffler.shuffle(again)
    assert take(due, capacity, WEIGHTS, SEED) == take(again, capacity, WEIGHTS, SEED)


def test_the_rest_goes_to_manual_first_and_then_by_value() -> None:
    due = [Due(i, FrontQueue.REFRESH, 10.0 + i) for i in range(10)]
    due += [Due(100 + i, FrontQueue.MANUAL, 0.0) for i in range(10)]
    due += [Due(200 + i, FrontQueue.DISCOVERY, 12.5 + i) for i in range(10)]
    no_floors = dict.fromkeys(FrontQueue, 0.0)
    taken = take(due, 14, no_floors, SEED)
    assert {row.queue for row in taken[:10]} == {FrontQueue.MANUAL}
    assert [row.value for row in taken[10:]] == [21.5, 20.5, 19.5, 19.0]


def test_a_starving_queue_has_its_floor() -> None:
    due = [Due(i, FrontQueue.REFRESH, 1e9) for i in range(100)]
    due += [Due(1_000 + i, FrontQueue.RETRY, 1e-9) for i in range(100)]
    counts = Counter(row.queue for row in take(due, 100, WEIGHTS, SEED))
    assert counts == {FrontQueue.REFRESH: 95, FrontQueue.RETRY: 5}


def test_equal_values_are_taken_differently_in_each_round() -> None:
    due = [Due(i, FrontQueue.DISCOVERY, 1.0) for i in range(1_000)]
    first, second = ({row.url_id for row in take(due, 500, WEIGHTS, round_seed(name))} for name in ("a", "b"))
    assert 200 < len(first & second) < 300


@given(st.floats(0.0, allow_infinity=False), st.floats(0.0, allow_infinity=False))
def test_bands_never_turn_the_order_round(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert band(low) <= band(high)


def test_bands_are_narrow() -> None:
    edge = [v for v in (1.0 + i / 1_000 for i in range(1_000)) if band(v) == band(1.0)]
    assert max(edge) < 1.045
    assert all(band(2.0**n) == 16 * n for n in range(-300, 300))


def test_the_tie_hash_is_that_of_spark() -> None:
    # SELECT xxhash64(CAST(1 AS BIGINT)) is -7001672635703045582, xxhash64('a') is Python's url_id('a').
    assert tie_hash(0, 1) == tie_hash(1, 0) == -7001672635703045582
    assert round_seed("http://a/") == url_id("http://a/")
    assert -(2**63) <= tie_hash(-(2**63), 2**63 - 1) < 2**63


def test_floors_are_floors_and_not_more_than_everything() -> None:
    assert guaranteed_counts(100, WEIGHTS) == {
        FrontQueue.MANUAL: 10,
        FrontQueue.DISCOVERY: 30,
        FrontQueue.REFRESH: 20,
        FrontQueue.RETRY: 5,
    }
    assert guaranteed_counts(10, {FrontQueue.RETRY: 0.3})[FrontQueue.RETRY] == 3
    with pytest.raises(ValueError, match="more than 1"):
        guaranteed_counts(10, {FrontQueue.MANUAL: 0.6, FrontQueue.RETRY: 0.5})


def test_an_empty_round_takes_nothing() -> None:
    cuts = plan_cuts({(FrontQueue.RETRY, 3): 5}, 0, WEIGHTS)
    assert cuts.rest == NOTHING
    assert above_cut_sql("b", NOTHING) == f"b > {NOTHING.band}"
    assert in_cut_sql("b", NOTHING) == f"b = {NOTHING.band}"
    highest = band(math.ldexp(1.0, 1_023)) + MANUAL_BAND_RISE
    assert all(b < NOTHING.band for b in itertools.chain([highest], range(3)))
