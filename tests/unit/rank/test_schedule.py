"""Due times: optimal ages, doubled intervals, spread."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.rank.schedule import (
    IntervalLimits,
    failure_interval_days,
    interval_days,
    jitter_factor,
    next_fetch_at,
    optimal_age,
    policy_interval_days,
)
from recrawl.rank.transitions import OutcomeKind
from recrawl.tables.vocabulary import Outcome, UrlState

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
LIMITS = IntervalLimits(first_days=7.0, min_days=1 / 24, max_days=90.0)
HOUR = 1 / 24


def gain(x: float) -> float:
    return -math.expm1(-x) - x * math.exp(-x)


@pytest.mark.parametrize("x", [10 ** (exponent / 40) for exponent in range(-160, 58)])
def test_the_inverse_is_within_its_stated_error(x: float) -> None:
    # Solved for the complement, so that levels next to 1 do not lose their digits: s = x - ln(1 + x).
    level = gain(x)
    assert optimal_age(level) == pytest.approx(x, rel=3e-4 + (1e-15 * math.exp(x)) / x + 1e-15 / (x * x))


def test_the_inverse_at_its_ends() -> None:
    assert optimal_age(0.0) == 0.0
    assert optimal_age(-1.0) == 0.0
    assert optimal_age(1.0) == math.inf
    assert math.isfinite(optimal_age(math.nextafter(1.0, 0.0)))


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_inverse_is_monotone(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert optimal_age(low) <= optimal_age(high)


@given(st.floats(1e-3, 10.0), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_at_the_due_time_the_page_is_worth_the_threshold(rate: float, weight: float, threshold: float) -> None:
    days = policy_interval_days(rate, weight, threshold, LIMITS)
    worth = weight * gain(rate * days) / rate
    if LIMITS.min_days < days < LIMITS.max_days:
        assert worth == pytest.approx(threshold, rel=1e-3)
    elif days == LIMITS.max_days:
        assert worth <= threshold * 1.001
    else:
        assert worth >= threshold * 0.999


def test_the_interval_without_a_threshold_is_the_time_of_one_change() -> None:
    assert policy_interval_days(0.2, 1.0, None, LIMITS) == 5.0
    assert policy_interval_days(1e-6, 1.0, None, LIMITS) == 90.0
    assert policy_interval_days(1e6, 1.0, None, LIMITS) == 1 / 24


def test_what_is_never_worth_a_visit_waits_longest() -> None:
    assert policy_interval_days(100.0, 1.0, 1.0, LIMITS) == 90.0
    assert policy_interval_days(1.0, 0.0, 0.0, LIMITS) == 90.0
    assert policy_interval_days(1.0, 5.0, 0.0, LIMITS) == 1 / 24


def test_failure_doubles_the_interval_up_to_the_longest() -> None:
    days = [failure_interval_days(OutcomeKind.ABSENT, streak, 7.0, LIMITS) for streak in (1, 2, 3, 4, 5, 500)]
    assert days == [14.0, 28.0, 56.0, 90.0, 90.0, 90.0]


def test_failures_of_a_page_visited_hourly_are_spaced_by_days() -> None:
    days = [failure_interval_days(OutcomeKind.REFUSED, streak, HOUR, LIMITS) for streak in (1, 2, 3)]
    assert days == [2.0, 4.0, 8.0]


def test_passing_faults_are_tried_again_within_hours_but_not_for_ever() -> None:
    days = [failure_interval_days(OutcomeKind.PASSING_FAULT, streak, 7.0, LIMITS) for streak in (1, 2, 3, 12, 30)]
    assert days == [HOUR, 2 * HOUR, 4 * HOUR, 2048 * HOUR, 90.0]


def after(outcome: Outcome, **changes: object) -> float:
    """The interval of a fetched page with a policy of 10 days."""
    arguments: dict[str, object] = {
        "state": UrlState.FETCHED,
        "next_state": UrlState.FETCHED,
        "last_outcome": None,
        "streak_before": 0,
        "streak": 0,
        "first_success": False,
        "policy_days": 10.0,
        "limits": LIMITS,
    }
    return interval_days(outcome=outcome, **{**arguments, **changes})  # type: ignore[arg-type]


def test_the_first_success_waits_the_first_interval() -> None:
    assert after(Outcome.OK, state=UrlState.NEW, first_success=True) == 7.0
    assert after(Outcome.OK) == 10.0


def test_success_after_lasting_failures_halves_the_interval_reached() -> None:
    assert after(Outcome.OK, last_outcome=Outcome.NOT_FOUND, streak_before=2) == 20.0
    assert after(Outcome.OK, last_outcome=Outcome.NOT_FOUND, streak_before=1) == 10.0


def test_success_after_passing_faults_is_as_if_they_had_not_been() -> None:
    assert after(Outcome.OK, last_outcome=Outcome.TIMEOUT, streak_before=9) == 10.0


def test_a_gone_page_is_looked_at_again_rarely() -> None:
    assert after(Outcome.NOT_FOUND, next_state=UrlState.GONE, streak=3) == 90.0


def test_an_empty_304_is_a_failure_of_a_page_never_answered() -> None:
    assert after(Outcome.NOT_MODIFIED, state=UrlState.NEW, streak=1) == 20.0


@given(st.integers(-(2**63), 2**63 - 1), st.floats(1 / 24, 90.0))
def test_due_times_lie_within_a_tenth_and_below_the_longest(url_id: int, interval: float) -> None:
    waited = (next_fetch_at(NOW, interval, url_id, LIMITS) - NOW) / timedelta(days=1)
    assert waited <= LIMITS.max_days
    assert min(interval, LIMITS.max_days / 1.1) * 0.9 - 2e-5 <= waited <= interval * 1.1 + 1e-9


def test_pages_found_together_do_not_come_due_together() -> None:
    for interval in (7.0, 90.0):
        due = {next_fetch_at(NOW, interval, url_id * 2**40 + 7, LIMITS) for url_id in range(500)}
        assert len(due) > 450


def test_the_jitter_is_even() -> None:
    factors = [jitter_factor(i * 11_400_714_819_323_198_485 % 2**64 - 2**63) for i in range(10_000)]
    assert sum(factors) / len(factors) == pytest.approx(1.0, abs=2e-3)
    assert min(factors) < 0.901
    assert max(factors) > 1.099
