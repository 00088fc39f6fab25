"""The bandwidth cap, simulated."""

from __future__ import annotations

from random import Random

import pytest

from recrawl.fetch.bandwidth import Bandwidth


@pytest.mark.parametrize("most_in_flight", [1, 50])
@pytest.mark.parametrize("mean_bytes", [5_000, 400_000])
def test_the_mean_is_kept_and_nearly_used(most_in_flight: int, mean_bytes: int) -> None:
    chance, rate, now = Random(1), 1_000_000, 100.0
    bandwidth = Bandwidth(rate, now)
    received, running = 0, list[float]()
    while now < 160.0:
        while len(running) < most_in_flight and bandwidth.wait_seconds(now, len(running)) == 0:
            running.append(now + chance.uniform(0.0, 0.004))
        for done in [at for at in running if at <= now]:
            running.remove(done)
            size = int(chance.uniform(0, 2 * mean_bytes))
            received += size
            bandwidth.received(size)
        now += 0.002
    assert 0.6 * rate * 60 <= received <= 1.05 * rate * 60 + 50 * mean_bytes


def test_a_body_larger_than_the_bucket_is_fetched_and_paid_for() -> None:
    bandwidth = Bandwidth(1_000, 0.0)
    assert bandwidth.wait_seconds(0.0, 0) == 0
    bandwidth.received(11_000)
    assert bandwidth.wait_seconds(0.0, 0) == pytest.approx(10.0)
    assert bandwidth.wait_seconds(10.0, 0) == pytest.approx(0.0)


def test_no_cap() -> None:
    bandwidth = Bandwidth(0, 0.0)
    bandwidth.received(1 << 40)
    assert bandwidth.wait_seconds(0.0, 2_000) == 0
