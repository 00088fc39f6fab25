"""Accepted rules of sites become part of what a round is configured with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recrawl.config.model import Configuration, Urls
from recrawl.inbox import new_event
from recrawl.seed.decisions import fold_decisions
from recrawl.seed.site_decisions import with_site_decisions
from recrawl.tables.vocabulary import OverrideKind

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def test_accepted_rules_stand_behind_the_configured_ones() -> None:
    configured = Configuration(urls=Urls(site_rules=["ignore-case a.org"]))
    rows = [
        {"override_kind": "drop-parameter", "subject": "a.org?ref", "value": None},
        {"override_kind": "block", "subject": "b.org", "value": None},
        {"override_kind": "alias", "subject": "www.a.org", "value": "a.org"},
        {"override_kind": "ignore-case", "subject": "a.org", "value": None},
    ]
    found = with_site_decisions(configured, rows)
    assert found.urls.site_rules == ["ignore-case a.org", "alias www.a.org a.org", "drop-parameter a.org?ref"]
    assert with_site_decisions(configured, rows[1:2]) is configured


@pytest.mark.parametrize(
    ("kind", "subject", "value", "fault"),
    [
        (OverrideKind.ALIAS, "www.a.org", None, "an alias, and nothing else, names its main host"),
        (OverrideKind.DROP_PARAMETER, "a.org", None, "'a.org' is no subject of drop-parameter"),
        (OverrideKind.DROP_PARAMETER, "a.org?ref", None, ""),
        (OverrideKind.ALIAS, "www.a.org", "a.org", ""),
    ],
)
def test_a_rule_that_cant_be_followed_is_a_problem(
    kind: OverrideKind, subject: str, value: str | None, fault: str
) -> None:
    event = new_event(NOW - timedelta(days=1), "ann", kind, subject, "because", value)
    folded = fold_decisions([event], NOW)
    assert [problem.reason for problem in folded.problems] == ([fault] if fault else [])
    assert len(folded.overrides) == (not fault)
