"""The fold of people's decisions."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.inbox import InboxEvent
from recrawl.seed.decisions import Override, fold_decisions
from recrawl.tables.vocabulary import OverrideKind

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)


def event(hours_ago: float, kind: str, value: str | None = None, subject: str = "a.org", **more: object) -> InboxEvent:
    made = InboxEvent(
        f"e{hours_ago:07.2f}{kind}{subject}", NOW - hours_ago * HOUR, "ann", OverrideKind(kind), subject, value
    )
    return replace(made, **more)  # type: ignore[arg-type]


def in_force(*events: InboxEvent, now: datetime = NOW) -> dict[tuple[str, str], str | None]:
    decisions = fold_decisions(events, now)
    assert not decisions.problems
    return {(o.subject, o.kind): o.value for o in decisions.overrides}


def test_the_latest_of_a_kind_holds() -> None:
    assert in_force(event(1, "quota", "50"), event(2, "quota", "10")) == {("a.org", "quota"): "50"}


def test_kinds_and_subjects_are_apart() -> None:
    held = in_force(event(3, "quota", "1"), event(2, "block"), event(1, "block", subject="b.org"))
    assert held == {("a.org", "quota"): "1", ("a.org", "block"): None, ("b.org", "block"): None}


def test_an_override_says_who_why_and_since_when() -> None:
    until = NOW + HOUR
    decisions = fold_decisions([event(2, "priority", "0.5", reason="noisy", until=until)], NOW)
    expected = Override("a.org", OverrideKind.PRIORITY, "0.5", "noisy", "ann", NOW - 2 * HOUR, until)
    assert decisions.overrides == (expected,)


def test_a_lift_removes_the_kind_it_names_or_all() -> None:
    given_before = [event(3, "quota", "1"), event(3, "block")]
    assert in_force(*given_before, event(1, "lift", "block")) == {("a.org", "quota"): "1"}
    assert in_force(*given_before, event(1, "lift")) == {}
    assert in_force(*given_before, event(1, "lift", subject="b.org")).keys() == {("a.org", "quota"), ("a.org", "block")}


def test_what_is_decided_after_a_lift_holds() -> None:
    assert in_force(event(3, "block"), event(2, "lift"), event(1, "block")) == {("a.org", "block"): None}


def test_a_decision_ends_at_its_time() -> None:
    ending = event(3, "block", until=NOW)
    assert in_force(ending) == {}
    assert in_force(ending, now=NOW - HOUR) == {("a.org", "block"): None}


def test_an_ended_decision_does_not_bring_back_the_one_before() -> None:
    assert in_force(event(9, "quota", "10"), event(3, "quota", "50", until=NOW - HOUR)) == {}


def test_what_is_decided_after_the_rounds_now_waits() -> None:
    assert in_force(event(-1, "block")) == {}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (event(1, "block", subject="  "), "names no host"),
        (event(1, "quota", "-1"), "whole number"),
        (event(1, "quota"), "whole number"),
        (event(1, "quota", "²"), "whole number"),
        (event(1, "priority", "high"), "must be a number"),
        (event(1, "priority", "nan"), "finite"),
        (event(1, "priority", "-2"), "finite"),
        (event(1, "lift", "lift"), "name a kind"),
        (event(1, "lift", "everything"), "name a kind"),
        (event(1, "block", at=datetime(2026, 1, 1)), "no time zone"),
        (event(1, "block", until=NOW - 2 * HOUR), "ends before"),
    ],
)
def test_an_event_that_cannot_be_followed_is_reported(bad: InboxEvent, words: str) -> None:
    decisions = fold_decisions([bad, event(2, "block", subject="ok.org")], NOW)
    assert [override.subject for override in decisions.overrides] == ["ok.org"]
    assert [problem.event_id for problem in decisions.problems] == [bad.event_id]
    assert words in decisions.problems[0].reason


def test_an_event_met_twice_counts_once_and_a_changed_one_is_reported() -> None:
    first = event(1, "quota", "1")
    assert in_force(first, first) == {("a.org", "quota"): "1"}
    decisions = fold_decisions([replace(first, value="2"), first], NOW)
    assert [problem.reason for problem in decisions.problems] == ["another event has the same id"]
    assert decisions.overrides[0].value == "1"


events = st.builds(
    InboxEvent,
    event_id=st.sampled_from("abcdefghij"),
    at=st.integers(-3, 3).map(lambda hours: NOW + hours * HOUR),
    who=st.just("ann"),
    kind=st.sampled_from(OverrideKind),
    subject=st.sampled_from(["a.org", "b.org", ""]),
    value=st.sampled_from([None, "", "5", "block", "quota", "x"]),
    until=st.none() | st.integers(-3, 5).map(lambda hours: NOW + hours * HOUR),
)


@given(st.lists(events, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(inbox: list[InboxEvent], shuffler: random.Random) -> None:
    again = list(inbox)
    shuffler.shuffle(again)
    assert fold_decisions(inbox, NOW) == fold_decisions(again, NOW)


@given(st.lists(events, max_size=12))
def test_no_decision_that_ended_or_was_lifted_is_in_force(inbox: list[InboxEvent]) -> None:
    for override in fold_decisions(inbox, NOW).overrides:
        assert override.kind != OverrideKind.LIFT
        assert override.since <= NOW
        assert override.until is None or override.until > NOW


def test_a_trap_needs_a_path_and_a_test_url_under_it() -> None:
    prefix = "http://a.org/calendar"
    assert in_force(event(1, "trap", f"{prefix}?month=1", prefix)) == {(prefix, "trap"): f"{prefix}?month=1"}
    for subject, value in (
        (prefix, "http://a.org/"),
        (prefix, None),
        ("a.org", "a.org/x"),
        ("http://a.org/", "http://a.org/x"),
    ):
        (problem,) = fold_decisions([event(1, "trap", value, subject)], NOW).problems
        assert "trap" in problem.reason or "test URL" in problem.reason
