"""What a sitemap's lastmod does, and that a lying one takes little."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recrawl.frontier.value import freshness_gain_days
from recrawl.rank.change_rate import ChangeEvidence, observe
from recrawl.rank.listed_changes import CLAIMED_AGE_FACTOR, claim_stands, counted_age_days, due_after_claim
from recrawl.rank.schedule import IntervalLimits, policy_interval_days

NOW = datetime(2026, 12, 1, 3, tzinfo=UTC)
DAY = timedelta(days=1)
LIMITS = IntervalLimits(7.0, 1 / 24, 90.0)


def test_a_claim_stands_between_the_last_visit_and_now() -> None:
    assert claim_stands(NOW - DAY, NOW - 2 * DAY, NOW)
    assert claim_stands(NOW, NOW - 2 * DAY, NOW)
    assert not claim_stands(NOW - 2 * DAY, NOW - 2 * DAY, NOW)
    assert not claim_stands(NOW + DAY, NOW - 2 * DAY, NOW)
    assert not claim_stands(NOW - DAY, None, NOW)
    assert not claim_stands(None, NOW - 2 * DAY, NOW)


def test_a_claimed_page_counts_as_older() -> None:
    assert counted_age_days(2.0, True) == 2.0 * CLAIMED_AGE_FACTOR
    assert counted_age_days(2.0, False) == 2.0
    assert counted_age_days(None, True) is None


def test_a_claim_brings_the_visit_forward() -> None:
    last = NOW - 2 * DAY
    assert due_after_claim(last, last + 8 * DAY, LIMITS) == last + 2 * DAY
    assert due_after_claim(last, last + timedelta(hours=2), LIMITS) == last + timedelta(hours=1)


@given(st.integers(0, 90 * 86_400), st.integers(0, 999_999))
def test_a_claim_never_delays_nor_passes_its_bound(wait_seconds: int, micros: int) -> None:
    last = NOW - 30 * DAY + timedelta(microseconds=micros)
    due = last + timedelta(seconds=wait_seconds)
    claimed = due_after_claim(last, due, LIMITS)
    assert claimed <= due
    waited = (claimed - last).total_seconds()
    assert waited >= min(wait_seconds, max(wait_seconds / CLAIMED_AGE_FACTOR, LIMITS.min_days * 86_400)) - 2


def _visits_in_a_year(lies: bool) -> int:
    """Visits of a page that never changes, its sitemap saying so or always saying `now`."""
    evidence, last, visits = ChangeEvidence(), NOW, 0
    while last < NOW + 365 * DAY:
        rate = evidence.rate_per_day(LIMITS.first_days)
        due = last + timedelta(days=policy_interval_days(rate, 1.0, None, LIMITS))
        due = due_after_claim(last, due, LIMITS) if lies else due
        evidence = observe(evidence, changed=False, previous_visit_at=last, visited_at=due, first_interval_days=7.0)
        last, visits = due, visits + 1
    return visits


def test_a_lying_sitemap_takes_a_bounded_part_of_the_budget() -> None:
    honest, lying = _visits_in_a_year(False), _visits_in_a_year(True)
    assert honest < lying <= CLAIMED_AGE_FACTOR * honest + CLAIMED_AGE_FACTOR


@given(st.floats(1e-3, 10.0), st.floats(1e-3, 100.0))
def test_a_claim_is_never_worth_more_than_a_page_never_seen(rate: float, age_days: float) -> None:
    claimed = freshness_gain_days(rate, counted_age_days(age_days, True))
    assert freshness_gain_days(rate, age_days) <= claimed + 1e-12 / rate
    assert claimed <= freshness_gain_days(rate, None)
