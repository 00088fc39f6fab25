"""What a fetch of robots.txt means (RFC 9309, 2.3.1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recrawl.config.model import Fetch
from recrawl.robots.policy import RobotsLifetimes, judge, outcome_of, stands_in
from recrawl.tables.vocabulary import RobotsOutcome

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LIFETIMES = RobotsLifetimes.from_settings(Fetch())


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, RobotsOutcome.RULES),
        (206, RobotsOutcome.RULES),
        (301, RobotsOutcome.ALLOW_ALL),
        (400, RobotsOutcome.ALLOW_ALL),
        (401, RobotsOutcome.ALLOW_ALL),
        (403, RobotsOutcome.ALLOW_ALL),
        (404, RobotsOutcome.ALLOW_ALL),
        (410, RobotsOutcome.ALLOW_ALL),
        (429, RobotsOutcome.UNREACHABLE),
        (499, RobotsOutcome.ALLOW_ALL),
        (500, RobotsOutcome.UNREACHABLE),
        (503, RobotsOutcome.UNREACHABLE),
        (999, RobotsOutcome.UNREACHABLE),
        (0, RobotsOutcome.UNREACHABLE),
        (None, RobotsOutcome.UNREACHABLE),
    ],
)
def test_outcomes(status: int | None, outcome: RobotsOutcome) -> None:
    assert outcome_of(status) is outcome


def test_lifetimes_are_those_of_the_configuration() -> None:
    assert LIFETIMES == (86_400, 3_600, 30 * 86_400)
    assert judge(200, NOW, LIFETIMES).expires_at == NOW + timedelta(hours=24)
    assert judge(404, NOW, LIFETIMES).expires_at == NOW + timedelta(hours=24)
    assert judge(None, NOW, LIFETIMES) == (RobotsOutcome.UNREACHABLE, NOW + timedelta(hours=1))


def test_stored_rules_stand_in_for_thirty_days() -> None:
    assert stands_in(NOW - timedelta(days=30), NOW, LIFETIMES)
    assert not stands_in(NOW - timedelta(days=30, seconds=1), NOW, LIFETIMES)
