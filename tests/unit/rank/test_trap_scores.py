"""Hosts that stand out: medians from counts, thresholds, and what a score costs."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.rank.trap_scores import (
    LEAST_CAPTURES,
    HostNorms,
    Norm,
    duplicate_measure,
    score_sql,
    size_class,
    trap_factor,
    trap_measure,
)


def norms_of(hosts: list[tuple[int, int, int]]) -> HostNorms:
    """The norms of hosts given as (captures, duplicates, trap links)."""
    bins = [
        (size_class(n), int(duplicate_measure(d, n) * 100), int(trap_measure(t, n) * 100), 1)
        for n, d, t in hosts
        if n >= LEAST_CAPTURES
    ]
    found = HostNorms.of_counts(bins)
    assert found is not None
    return found


def ordinary_hosts(count: int = 400) -> list[tuple[int, int, int]]:
    """Hosts a quarter of whose captures are duplicates, with a stray trap link here and there."""
    draw = random.Random(2)
    hosts = []
    for _ in range(count):
        captures = int(10 * draw.paretovariate(1.1))
        hosts.append((captures, int(captures * min(0.6, max(0.0, draw.gauss(0.25, 0.08)))), draw.choice([0, 0, 0, 1])))
    return hosts


def test_ordinary_hosts_have_no_score() -> None:
    hosts = ordinary_hosts()
    norms = norms_of(hosts)
    assert [host for host in hosts if norms.score(*host) > 0] == []


@pytest.mark.parametrize("odd", [(60, 60, 0), (2_000, 1_990, 0), (40, 10, 400), (5_000, 1_250, 20_000)])
def test_hosts_full_of_copies_or_of_trap_links_have_one(odd: tuple[int, int, int]) -> None:
    norms = norms_of([*ordinary_hosts(), odd])
    assert norms.score(*odd) > 0.1


def test_few_captures_say_nothing() -> None:
    norms = norms_of(ordinary_hosts())
    assert norms.score(LEAST_CAPTURES - 1, LEAST_CAPTURES - 1, 500) == 0.0
    assert norms.score(12, 4, 3) == 0.0


def test_without_hosts_there_is_no_norm() -> None:
    assert HostNorms.of_counts([]) is None
    assert score_sql(None, "a", "b", "c") == "0D"


@given(st.lists(st.integers(0, 99), min_size=1, max_size=60))
def test_medians_are_those_of_the_values(values: list[int]) -> None:
    norms = HostNorms.of_counts([(3, value, 0, 1) for value in values])
    assert norms is not None
    median = statistics.median_low(values)
    deviation = statistics.median_low([abs(value - median) for value in values])
    assert norms.duplicates[None].median == median / 100
    assert norms.duplicates[None].deviation == pytest.approx(1.4826 * deviation / 100)


def test_a_small_class_is_judged_by_all_hosts() -> None:
    norms = HostNorms.of_counts([(4, 10, 0, 100), (5, 40, 0, 100), (9, 99, 0, 3)])
    assert norms is not None
    assert set(norms.duplicates) == {None, 4, 5}


def test_a_threshold_beyond_the_measure_marks_nobody() -> None:
    assert Norm(0.9, 0.2).score(1.0) == 0.0


def test_a_host_keeps_a_tenth_of_its_value() -> None:
    assert [trap_factor(score) for score in (-1.0, 0.0, 0.5, 1.0, 7.0)] == pytest.approx([1.0, 1.0, 0.55, 0.1, 0.1])
