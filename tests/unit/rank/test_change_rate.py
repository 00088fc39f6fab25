"""The estimate of a change rate comes near the truth and never leaves the numbers."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.rank.change_rate import MAX_EXPECTED_MEAN, MAX_RATE_PER_DAY, ChangeEvidence, expected_changes, observe

START = datetime(2020, 1, 1, tzinfo=UTC)
FIRST_INTERVAL_DAYS = 7.0


def simulated(rate: float, gap_days: tuple[float, float], visits: int, *, told: bool, seed: int = 1) -> float:
    """The estimate after visits at random gaps to a page that changes as a Poisson process."""
    rng = random.Random(seed)
    evidence, last_visit, last_change = ChangeEvidence(), 0.0, -1.0
    next_change = rng.expovariate(rate)
    for _ in range(visits):
        visit = last_visit + rng.uniform(*gap_days)
        changed = next_change <= visit
        while next_change <= visit:
            last_change, next_change = next_change, next_change + rng.expovariate(rate)
        evidence = observe(
            evidence,
            changed=changed,
            previous_visit_at=START + timedelta(days=last_visit),
            visited_at=START + timedelta(days=visit),
            first_interval_days=FIRST_INTERVAL_DAYS,
            last_modified_at=START + timedelta(days=last_change) if told and changed else None,
        )
        last_visit = visit
    return evidence.rate_per_day(FIRST_INTERVAL_DAYS)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_estimate_is_within_15_percent_at_irregular_visits(rate: float, seed: int) -> None:
    gaps = (0.1 / rate, 2.0 / rate)
    assert simulated(rate, gaps, 2_000, told=False, seed=seed) == pytest.approx(rate, rel=0.15)


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0])
def test_the_estimate_holds_where_visits_do_not_follow_the_rate(rate: float) -> None:
    assert simulated(rate, (0.2, 3.0), 3_000, told=False) == pytest.approx(rate, rel=0.15)


def test_counting_changed_visits_alone_would_be_far_off() -> None:
    """What the correction is for: at gaps of 1 / rate the naive quotient misses a third of the changes."""
    assert expected_changes(1.0, 1.0) == pytest.approx(1.582, abs=1e-3)


@pytest.mark.parametrize("rate", [0.05, 1.0, 4.0])
def test_last_modified_finds_the_rate_at_gaps_that_hide_most_changes(rate: float) -> None:
    gaps = (1.0 / rate, 6.0 / rate)
    assert simulated(rate, gaps, 1_500, told=True) == pytest.approx(rate, rel=0.15)


def test_without_evidence_the_prior_stands() -> None:
    assert ChangeEvidence().rate_per_day(FIRST_INTERVAL_DAYS) == 1.0 / 7.0


def test_an_unchanged_visit_lowers_and_a_changed_one_raises_the_rate() -> None:
    def after(changed: bool) -> float:
        visited = START + timedelta(days=3)
        seen = observe(
            ChangeEvidence(),
            changed=changed,
            previous_visit_at=START,
            visited_at=visited,
            first_interval_days=FIRST_INTERVAL_DAYS,
        )
        return seen.rate_per_day(FIRST_INTERVAL_DAYS)

    assert after(False) == pytest.approx(1.0 / 10.0)
    assert after(False) < 1.0 / 7.0 < after(True)


@pytest.mark.parametrize(
    "last_modified_at",
    [
        START - timedelta(days=1),
        START,
        START + timedelta(days=2, seconds=-30),
        START + timedelta(days=2),
        START + timedelta(days=400),
    ],
    ids=["before the last visit", "at the last visit", "just generated", "at the visit", "in the future"],
)
def test_a_last_modified_that_cannot_be_is_not_believed(last_modified_at: datetime) -> None:
    def seen(last_modified: datetime | None) -> ChangeEvidence:
        return observe(
            ChangeEvidence(),
            changed=True,
            previous_visit_at=START,
            visited_at=START + timedelta(days=2),
            first_interval_days=FIRST_INTERVAL_DAYS,
            last_modified_at=last_modified,
        )

    assert seen(last_modified_at) == seen(None)
    assert seen(START + timedelta(days=1)) == ChangeEvidence(1.0, 1.0)


def test_a_visit_out_of_order_says_nothing() -> None:
    evidence = ChangeEvidence(2.0, 5.0)
    for visited_at in (START, START - timedelta(days=1)):
        seen = observe(
            evidence,
            changed=True,
            previous_visit_at=START,
            visited_at=visited_at,
            first_interval_days=FIRST_INTERVAL_DAYS,
        )
        assert seen == evidence


@given(st.lists(st.tuples(st.booleans(), st.floats(1e-5, 5_000.0)), max_size=60))
def test_the_rate_is_always_a_positive_number(visits: list[tuple[bool, float]]) -> None:
    evidence, at = ChangeEvidence(), START
    for changed, gap_days in visits:
        then = min(at + timedelta(days=gap_days), datetime(9_000, 1, 1, tzinfo=UTC))
        evidence = observe(
            evidence,
            changed=changed,
            previous_visit_at=at,
            visited_at=then,
            first_interval_days=FIRST_INTERVAL_DAYS,
        )
        at = then
        rate = evidence.rate_per_day(FIRST_INTERVAL_DAYS)
        assert math.isfinite(rate)
        assert 0.0 < rate <= MAX_RATE_PER_DAY


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_a_changed_interval_holds_at_least_one_change(rate: float, interval_days: float) -> None:
    changes = expected_changes(rate, interval_days)
    mean = min(rate * interval_days, MAX_EXPECTED_MEAN)
    assert max(1.0, mean) <= changes * (1 + 1e-12)
    assert changes <= 1.0 + mean


@pytest.mark.parametrize("seed", range(5))
def test_a_rash_start_is_forgotten(seed: int) -> None:
    """The prior is 14 times too high here and the first visits all see a change."""
    assert simulated(0.01, (10.0, 200.0), 50, told=False, seed=seed) < 0.02


def test_a_page_that_always_differs_does_not_climb_for_ever() -> None:
    evidence = ChangeEvidence()
    for day in range(3_000):
        evidence = observe(
            evidence,
            changed=True,
            previous_visit_at=START + timedelta(days=day),
            visited_at=START + timedelta(days=day + 1),
            first_interval_days=FIRST_INTERVAL_DAYS,
        )
    assert 2.0 < evidence.rate_per_day(FIRST_INTERVAL_DAYS) < 3.2
