"""The full matrix of states and outcomes."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta

import pytest

from recrawl.rank.transitions import (
    DECIDED_STATES,
    OUTCOME_KINDS,
    PAYABLE_STATES,
    TERMINAL_STATES,
    TRANSITIONS,
    ContentVerdict,
    OutcomeKind,
    failure_streak_after,
    next_state,
    next_state_sql,
    outcome_kind_sql,
    payable_sql,
    succeeded,
    terminal_sql,
)
from recrawl.tables.vocabulary import Outcome, UrlState

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
LIMIT = 3
DAY = 86_400

# The matrix once more, written by hand from the design's sentences: a letter for each outcome.
LETTERS = {
    "n": UrlState.NEW,
    "f": UrlState.FETCHED,
    "x": UrlState.FAILING,
    "g": UrlState.GONE,
    "d": UrlState.DENIED,
    "u": UrlState.DUPLICATE,
    "r": UrlState.REDIRECT,
    "t": UrlState.TRAP,
    "e": UrlState.EXCLUDED,
}
OUTCOMES = list(Outcome)
# ok 304 redirect loops 404 410 403 4xx 429 5xx robots no-robots address dns connect tls timeout protocol invalid
FIRST_TRY = {
    UrlState.NEW: "f x r x x x x x x x d x x x x x x x x",
    UrlState.FETCHED: "f f r f f f f f f f d f f f f f f f f",
    UrlState.FAILING: "f x r x x x x x x x d x x x x x x x x",
    UrlState.GONE: "f f r g g g g g g g d g g g g g g g g",
    UrlState.DENIED: "f f r d d d d d d d d d d d d d d d d",
    UrlState.DUPLICATE: "f u r u u u u u u u d u u u u u u u u",
    UrlState.REDIRECT: "f f r r r r r r r r d r r r r r r r r",
    UrlState.TRAP: "t t t t t t t t t t t t t t t t t t t",
    UrlState.EXCLUDED: "e e e e e e e e e e e e e e e e e e e",
}
MATRIX = [
    (state, outcome, LETTERS[letter])
    for state, row in FIRST_TRY.items()
    for outcome, letter in zip(OUTCOMES, row.split(), strict=True)
]


def test_the_matrix_is_full() -> None:
    assert len(MATRIX) == len(UrlState) * len(Outcome)
    assert set(OUTCOME_KINDS) == set(Outcome)
    assert {(s, k) for s, row in TRANSITIONS.items() for k in row} == set(itertools.product(UrlState, OutcomeKind))


@pytest.mark.parametrize(("state", "outcome", "expected"), MATRIX)
def test_the_state_after_a_first_try(state: UrlState, outcome: Outcome, expected: UrlState) -> None:
    assert next_state(state, outcome, failure_streak=1, gone_after_failures=LIMIT) == expected


@pytest.mark.parametrize(("state", "outcome", "expected"), MATRIX)
def test_the_state_at_the_end_of_a_streak(state: UrlState, outcome: Outcome, expected: UrlState) -> None:
    if state not in DECIDED_STATES and outcome in {Outcome.NOT_FOUND, Outcome.GONE}:
        expected = UrlState.GONE
    if state not in DECIDED_STATES and outcome == Outcome.FORBIDDEN:
        expected = UrlState.DENIED
    assert next_state(state, outcome, failure_streak=LIMIT, gone_after_failures=LIMIT) == expected


@pytest.mark.parametrize("verdict", [ContentVerdict.DUPLICATE, ContentVerdict.CANONICAL])
@pytest.mark.parametrize(("state", "outcome", "plain"), MATRIX)
def test_a_verdict_only_matters_where_there_is_content(
    state: UrlState, outcome: Outcome, plain: UrlState, verdict: ContentVerdict
) -> None:
    after = next_state(state, outcome, failure_streak=0, gone_after_failures=LIMIT, verdict=verdict)
    answered = outcome in {Outcome.OK, Outcome.NOT_MODIFIED} and plain == UrlState.FETCHED
    assert after == (UrlState.DUPLICATE if answered else plain)


@pytest.mark.parametrize("streak", range(1, 9))
def test_a_passing_fault_never_demotes_or_deletes_a_page(streak: int) -> None:
    for outcome in (o for o, kind in OUTCOME_KINDS.items() if kind == OutcomeKind.PASSING_FAULT):
        for state in set(UrlState) - {UrlState.NEW}:
            assert next_state(state, outcome, failure_streak=streak, gone_after_failures=LIMIT) == state


def test_every_state_is_payable_or_terminal() -> None:
    assert set(UrlState) == PAYABLE_STATES | TERMINAL_STATES
    assert not PAYABLE_STATES & TERMINAL_STATES
    assert {UrlState.GONE, UrlState.DENIED, UrlState.TRAP, UrlState.EXCLUDED} == TERMINAL_STATES


def streak_of(outcomes: list[Outcome], gap: timedelta, state: UrlState = UrlState.FETCHED) -> int:
    streak, last, last_at = 0, None, None
    for number, outcome in enumerate(outcomes):
        now = NOW + number * gap
        streak = failure_streak_after(
            streak, last, outcome, state=state, last_fetch_at=last_at, now=now, spacing_seconds=DAY
        )
        last, last_at = outcome, now
    return streak


def test_three_spaced_404s_make_three() -> None:
    assert streak_of([Outcome.NOT_FOUND, Outcome.GONE, Outcome.NOT_FOUND], timedelta(days=7)) == 3


def test_three_quick_404s_make_one() -> None:
    assert streak_of([Outcome.NOT_FOUND] * 3, timedelta(hours=1)) == 1


def test_quick_passing_faults_all_count_towards_the_next_wait() -> None:
    assert streak_of([Outcome.TIMEOUT, Outcome.SERVER_ERROR, Outcome.RATE_LIMITED], timedelta(hours=1)) == 3


def test_faults_of_another_kind_begin_anew() -> None:
    assert streak_of([Outcome.TIMEOUT, Outcome.TIMEOUT, Outcome.NOT_FOUND], timedelta(days=7)) == 1


def test_a_success_ends_a_streak() -> None:
    assert streak_of([Outcome.NOT_FOUND, Outcome.NOT_FOUND, Outcome.NOT_MODIFIED], timedelta(days=7)) == 0
    assert streak_of([Outcome.NOT_FOUND, Outcome.OK, Outcome.NOT_FOUND], timedelta(days=7)) == 1


def test_a_304_is_no_success_for_a_page_that_never_answered() -> None:
    assert not succeeded(UrlState.NEW, Outcome.NOT_MODIFIED)
    assert succeeded(UrlState.GONE, Outcome.NOT_MODIFIED)


def evaluated(case: str, values: dict[str, str]) -> str | None:
    """A reader for the few forms of SQL that the module writes: enough to run the table."""
    for condition, result in re.findall(r"WHEN (.*?) THEN '(\w+)'", case):
        holds = True
        for part in condition.split(" AND "):
            name, rest = part.split(" ", 1)
            words = set(re.findall(r"'(\w+)'", rest))
            if rest.startswith("NOT IN"):
                holds &= values[name] not in words
            elif rest.startswith(("IN", "=")):
                holds &= values[name] in words
            elif rest.startswith("<>"):
                holds &= values[name] not in words
            else:
                holds &= int(values[name]) >= int(rest.removeprefix(">= "))
        if holds:
            return str(result)
    return None


def test_the_sql_says_what_the_table_says() -> None:
    case = next_state_sql("state", "outcome", failure_streak="streak", gone_after_failures=LIMIT, verdict="verdict")
    for state, outcome, streak, verdict in itertools.product(UrlState, Outcome, (0, 2, 3, 4), ContentVerdict):
        values = {"state": state, "outcome": outcome, "streak": str(streak), "verdict": verdict}
        expected = next_state(state, outcome, failure_streak=streak, gone_after_failures=LIMIT, verdict=verdict)
        assert evaluated(case, values) == expected, values


def test_the_sql_of_kinds_and_states() -> None:
    for outcome, kind in OUTCOME_KINDS.items():
        assert evaluated(outcome_kind_sql("outcome"), {"outcome": outcome}) == kind
    for state in UrlState:
        assert (f"'{state}'" in payable_sql("state")) != (f"'{state}'" in terminal_sql("state"))
