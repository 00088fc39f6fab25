"""Crawl value: limits, monotony, bounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.frontier.value import crawl_value, crawl_value_sql, freshness_gain_days, listing_factor, quality_factor

rates = st.floats(1e-4, 1e3)
ages = st.floats(0.0, 1e4)


def test_the_gain_by_hand() -> None:
    assert freshness_gain_days(0.5, 2.0) == pytest.approx((1 - 2 / math.e) / 0.5)
    assert freshness_gain_days(0.5, 0.0) == 0.0
    assert freshness_gain_days(0.5, None) == 2.0


@given(rates, ages, ages)
def test_the_gain_grows_with_age_up_to_that_of_a_page_never_fetched(rate: float, one: float, other: float) -> None:
    young, old = sorted((one, other))
    # Near saturation neighbouring gains differ by less than the rounding of their terms.
    assert 0.0 <= freshness_gain_days(rate, young) <= freshness_gain_days(rate, old) + 1e-15 / rate
    assert freshness_gain_days(rate, old) <= freshness_gain_days(rate, None)


@given(st.floats(1e-7, 1e-4))
def test_small_ages_keep_their_digits(x: float) -> None:
    assert freshness_gain_days(1.0, x) == pytest.approx(x * x / 2 - x**3 / 3, rel=1e-8)


def test_a_page_that_changes_all_the_time_is_not_worth_chasing() -> None:
    assert freshness_gain_days(1_000.0, 1.0) < freshness_gain_days(1.0, 1.0)


def test_a_clock_that_went_back_gives_no_gain() -> None:
    assert freshness_gain_days(1.0, -5.0) == 0.0


@pytest.mark.parametrize(
    ("quality", "factor"), [(None, 1.0), (math.nan, 1.0), (-3.0, 0.5), (0.0, 0.5), (0.5, 1.0), (1.0, 1.5), (9.0, 1.5)]
)
def test_quality_is_bounded(quality: float | None, factor: float) -> None:
    assert quality_factor(quality) == factor


@pytest.mark.parametrize(
    ("priority", "factor"),
    [(None, 1.0), (math.nan, 1.0), (-3.0, 0.75), (0.0, 0.75), (0.5, 1.0), (1.0, 1.25), (9.0, 1.25)],
)
def test_what_a_sitemap_gives_is_bounded(priority: float | None, factor: float) -> None:
    assert listing_factor(priority) == factor


def test_the_value_is_a_product() -> None:
    assert crawl_value(3.0, 0.5, None, listed_priority=1.0) == 3.0 * 2.0 * 1.25
    assert crawl_value(3.0, 0.5, None, quality=0.0, priority=4.0) == 3.0 * 2.0 * 0.5 * 4.0


def test_the_sql_names_its_columns() -> None:
    sql = crawl_value_sql(importance="imp", rate="rate", age_days="age", quality="q", priority="prio")
    assert all(name in sql for name in ("imp", "rate", "age", "q", "prio"))
    assert sql.count("(") == sql.count(")")
