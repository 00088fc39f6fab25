"""A host's quota."""

from __future__ import annotations

import pytest

from recrawl.frontier.quota import host_quota


@pytest.mark.parametrize(
    ("quota", "budget", "delay", "taken", "expected"),
    [
        (10_000, 10_800.0, 2.0, 0, 5_400),
        (100, 10_800.0, 2.0, 0, 100),
        (100, 10_800.0, 2.0, 70, 30),
        (100, 10_800.0, 2.0, 170, 0),
        (100, 100.0, 30.1, 0, 3),
        (100, 100.0, 0.0, 0, 100),
        (100, 100.0, 5_000.0, 0, 1),
        (0, 100.0, 1.0, 0, 0),
    ],
)
def test_the_quota(quota: int, budget: float, delay: float, taken: int, expected: int) -> None:
    assert host_quota(quota, budget, delay, taken) == expected
