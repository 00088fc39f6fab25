"""rank: every formula in SQL against its Python, on generated rows."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from recrawl.rank import aopic, listed_changes, schedule, transitions, trap_scores
from recrawl.rank.aopic import Account, lambda_parts
from recrawl.rank.change_rate import (
    ChangeEvidence,
    observe,
    observed_days_sql,
    observed_events_sql,
    rate_per_day_sql,
)
from recrawl.spark.functions import timestamp_sql
from recrawl.tables.vocabulary import Outcome, UrlState
from tests.jobs.crawl import (
    DAY,
    NOW,
    Comparison,
)

pytestmark = pytest.mark.timeout(300)

WINDOW_SECONDS = 90 * 86_400
PARTS = lambda_parts(0.1)
LIMITS = schedule.IntervalLimits(7.0, 1 / 24, 90.0)


def _some_time(draw: random.Random) -> datetime:
    return NOW - timedelta(microseconds=draw.randrange(int(120 * 86_400e6)))


def test_cash_in_sql_is_cash_in_python(spark: SparkSession) -> None:
    draw, index = random.Random(5), 5 * 10**17
    rows = []
    for _ in range(120):
        held = draw.choice([0, 1, draw.randrange(10**12), draw.randrange(4 * 10**18)])
        at = draw.choice([None, _some_time(draw), NOW + 2 * DAY])
        outlinks = draw.choice([0, 1, 3, 7, 1_000])
        rows.append(
            (held % 10**18, draw.randrange(index + 1), held, at, outlinks, draw.random() < 0.7, draw.randrange(10**12))
        )
    schema = "cash BIGINT, x BIGINT, held BIGINT, at TIMESTAMP, links INT, payable BOOLEAN, credit BIGINT"
    comparison = Comparison(spark, schema, rows)
    now = timestamp_sql(NOW)
    comparison.add(
        aopic.effective_cash_sql("cash", "x", f"{index}L", "payable", "credit"),
        lambda cash, x, held, at, links, payable, credit: (cash + index - x if payable else 0) + credit,
    )
    comparison.add(
        aopic.share_sql("held", "links", PARTS),
        lambda cash, x, held, at, links, payable, credit: aopic.distribute(held, links, 0, PARTS)[0],
    )
    comparison.add(
        aopic.windowed_history_sql("held", "at", now, WINDOW_SECONDS),
        lambda cash, x, held, at, *rest: aopic.windowed_history(held, at, NOW, WINDOW_SECONDS),
    )
    comparison.add(
        aopic.history_after_capture_sql("held", "at", "cash", now, WINDOW_SECONDS),
        lambda cash, x, held, at, *rest: aopic.history_after_capture(
            Account(history=held, history_at=at), cash, NOW, WINDOW_SECONDS
        ),
    )
    comparison.add(
        aopic.importance_sql(
            cash="cash", lambda_index="x", index=f"{index}L", history="held", history_at="at", now=now,
            window_seconds=WINDOW_SECONDS,
        ),
        lambda cash, x, held, at, *rest: aopic.importance(Account(cash, held, at, x), index, NOW, WINDOW_SECONDS),
    )  # fmt: skip
    assert comparison.differences() == []


def test_representatives_are_resolved_in_sql_as_in_python(spark: SparkSession) -> None:
    rows = [
        (u, t, has, then)
        for u in (1, 2, 3)
        for t in (None, 1, 2, 3)
        for has in (True, False)
        for then in (None, 1, 2, 5)
    ]
    comparison = Comparison(spark, "u BIGINT, t BIGINT, has BOOLEAN, then BIGINT", rows)
    comparison.add(
        aopic.resolve_representative_sql("u", "t", "has", "then"),
        lambda u, t, has, then: None if t is None else aopic.resolve_representative(u, t, {t: then} if has else {}),
    )
    assert comparison.differences() == []


def test_change_rates_in_sql_are_those_of_python(spark: SparkSession) -> None:
    draw = random.Random(6)
    rows = [
        (
            draw.choice([None, draw.random() * 50]),
            draw.choice([None, draw.random() * 500]),
            draw.choice([True, False, None]),
            draw.choice([None, _some_time(draw)]),
            NOW,
            draw.choice([None, _some_time(draw), NOW - timedelta(seconds=10), NOW + DAY]),
        )
        for _ in range(120)
    ]
    schema = "e DOUBLE, d DOUBLE, changed BOOLEAN, previous TIMESTAMP, visited TIMESTAMP, modified TIMESTAMP"
    comparison = Comparison(spark, schema, rows)

    def after(e: Any, d: Any, changed: Any, previous: Any, visited: Any, modified: Any) -> ChangeEvidence:
        evidence = ChangeEvidence(e or 0.0, d or 0.0)
        if previous is None:
            return evidence
        return observe(
            evidence, changed=bool(changed), previous_visit_at=previous, visited_at=visited, first_interval_days=7.0,
            last_modified_at=modified,
        )  # fmt: skip

    shared = {"observed_days": "d", "changed": "changed", "previous_visit_at": "previous", "visited_at": "visited"}
    comparison.add(
        observed_events_sql(change_events="e", first_interval_days=7, last_modified_at="modified", **shared),
        lambda *row: after(*row).change_events,
        1e-12,
    )
    comparison.add(
        observed_days_sql(last_modified_at="modified", **shared), lambda *row: after(*row).observed_days, 1e-12
    )
    comparison.add(observed_days_sql(**shared), lambda *row: after(*row[:5], None).observed_days, 1e-12)
    comparison.add(
        rate_per_day_sql("e", "d", 7),
        lambda e, d, *rest: ChangeEvidence(e or 0.0, d or 0.0).rate_per_day(7.0),
        1e-13,
    )
    assert comparison.differences() == []


def test_intervals_in_sql_are_those_of_python(spark: SparkSession) -> None:
    draw = random.Random(8)
    rows = [
        (
            10 ** draw.uniform(-4, 3),
            draw.choice([0.0, 10 ** draw.uniform(-8, 3)]),
            draw.choice([0.0, 10 ** draw.uniform(-8, 3)]),
            draw.randrange(-(2**63), 2**63),
            _some_time(draw),
        )
        for _ in range(200)
    ]
    comparison = Comparison(spark, "rate DOUBLE, weight DOUBLE, mu DOUBLE, id BIGINT, at TIMESTAMP", rows)
    policy = schedule.policy_interval_days_sql
    comparison.add(
        policy("rate", "weight", "mu", LIMITS),
        lambda rate, weight, mu, *rest: schedule.policy_interval_days(rate, weight, mu, LIMITS),
        1e-9,
    )
    comparison.add(
        policy("rate", "weight", None, LIMITS),
        lambda rate, weight, *rest: schedule.policy_interval_days(rate, weight, None, LIMITS),
        1e-12,
    )
    comparison.add(schedule.jitter_factor_sql("id"), lambda r, w, m, id, at: schedule.jitter_factor(id), 1e-15)
    comparison.add(
        schedule.next_fetch_at_sql("at", "rate", "id", LIMITS),
        lambda rate, w, m, id, at: schedule.next_fetch_at(at, rate, id, LIMITS),
    )
    assert comparison.differences() == []


def test_listed_changes_in_sql_are_those_of_python(spark: SparkSession) -> None:
    draw = random.Random(10)
    rows = [
        (
            draw.choice([None, _some_time(draw), NOW, NOW + DAY]),
            draw.choice([None, _some_time(draw)]),
            _some_time(draw),
            draw.choice([None, draw.random() * 50]),
            NOW + timedelta(seconds=draw.randrange(-(10**6), 10**7)),
        )
        for _ in range(150)
    ]
    schema = "listed TIMESTAMP, success TIMESTAMP, last TIMESTAMP, age DOUBLE, due TIMESTAMP"
    comparison = Comparison(spark, schema, rows)
    stands = listed_changes.claim_stands_sql("listed", "success", timestamp_sql(NOW))
    comparison.add(stands, lambda listed, success, *rest: listed_changes.claim_stands(listed, success, NOW))
    comparison.add(
        listed_changes.counted_age_days_sql("age", stands),
        lambda listed, success, last, age, due: listed_changes.counted_age_days(
            age, listed_changes.claim_stands(listed, success, NOW)
        ),
    )
    comparison.add(
        listed_changes.due_after_claim_sql("last", "due", LIMITS),
        lambda listed, success, last, age, due: listed_changes.due_after_claim(last, due, LIMITS),
    )
    assert comparison.differences() == []


def test_trap_scores_in_sql_are_those_of_python(spark: SparkSession) -> None:
    draw = random.Random(11)
    rows = []
    for _ in range(300):
        captures = draw.choice([1, 9, 10, 16, 63, 64, int(10 * draw.paretovariate(1.0))])
        rows.append((captures, draw.randrange(captures + 1), draw.choice([0, 1, captures, 40 * captures])))
    schema = "page_count BIGINT, duplicate_count BIGINT, trap_link_count BIGINT"
    spark.createDataFrame(rows, schema).createOrReplaceTempView("hosts_to_count")
    counts = [tuple(row) for row in spark.sql(trap_scores.counts_sql("hosts_to_count")).collect()]
    expected = Counter(
        (
            trap_scores.size_class(captures),
            int(trap_scores.duplicate_measure(duplicates, captures) * 100),
            int(trap_scores.trap_measure(links, captures) * 100),
        )
        for captures, duplicates, links in rows
        if captures >= trap_scores.LEAST_CAPTURES
    )
    assert {row[:3]: row[3] for row in counts} == expected
    norms = trap_scores.HostNorms.of_counts(counts)
    assert norms is not None and len(norms.duplicates) > 2
    comparison = Comparison(spark, "captures BIGINT, duplicates BIGINT, links BIGINT", rows)
    comparison.add(trap_scores.score_sql(norms, "captures", "duplicates", "links"), norms.score, 1e-9)
    comparison.add(
        trap_scores.trap_factor_sql("links / 40D"), lambda c, d, links: trap_scores.trap_factor(links / 40), 1e-12
    )
    assert comparison.differences() == []
    assert any(norms.score(*row) > 0 for row in rows)


def test_states_and_streaks_in_sql_are_those_of_python(spark: SparkSession) -> None:
    draw = random.Random(9)
    rows = []
    for state in UrlState:
        for outcome in Outcome:
            for _ in range(4):
                last = draw.choice([None, outcome, outcome, *Outcome])
                before = draw.choice([0, 1, 2, 5])
                at = draw.choice([None, NOW - 5 * DAY, NOW - timedelta(hours=5)])
                verdict = draw.choice([None, *transitions.ContentVerdict])
                streak = transitions.failure_streak_after(
                    before, last, outcome, state=state, last_fetch_at=at, now=NOW, spacing_seconds=86_400
                )
                after = transitions.next_state(
                    state, outcome, failure_streak=streak, gone_after_failures=3,
                    verdict=verdict or transitions.ContentVerdict.OWN,
                )  # fmt: skip
                rows.append((
                    str(state), str(outcome), last and str(last), before, at, verdict and str(verdict),
                    draw.random() < 0.3, 10 ** draw.uniform(-1.3, 1.9), streak, str(after),
                ))  # fmt: skip
    schema = (
        "state STRING, outcome STRING, last STRING, before INT, at TIMESTAMP, verdict STRING, first BOOLEAN, "
        "policy DOUBLE, streak INT, after STRING"
    )
    comparison = Comparison(spark, schema, rows)
    comparison.add(
        transitions.failure_streak_after_sql(
            "before",
            "last",
            "outcome",
            state="state",
            last_fetch_at="at",
            now=timestamp_sql(NOW),
            spacing_seconds=86_400,
        ),
        lambda *row: row[8],
    )
    comparison.add(
        transitions.next_state_sql(
            "state", "outcome", failure_streak="streak", gone_after_failures=3, verdict="verdict"
        ),
        lambda *row: row[9],
    )
    comparison.add(
        schedule.interval_days_sql(
            state="state", next_state="after", outcome="outcome", last_outcome="last", streak_before="before",
            streak="streak", first_success="first", policy_days="policy", limits=LIMITS,
        ),
        lambda state, outcome, last, before, at, verdict, first, policy, streak, after: schedule.interval_days(
            state=UrlState(state), next_state=UrlState(after), outcome=Outcome(outcome),
            last_outcome=last and Outcome(last), streak_before=before, streak=streak, first_success=first,
            policy_days=policy, limits=LIMITS,
        ),
        1e-12,
    )  # fmt: skip
    comparison.add(
        transitions.succeeded_sql("state", "outcome"),
        lambda state, outcome, *rest: transitions.succeeded(UrlState(state), Outcome(outcome)),
    )
    comparison.add(transitions.payable_sql("state"), lambda state, *rest: state in transitions.PAYABLE_STATES)
    comparison.add(transitions.terminal_sql("state"), lambda state, *rest: state in transitions.TERMINAL_STATES)
    assert comparison.differences() == []
