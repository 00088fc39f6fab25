"""Network zones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.config.load import load_configuration
from recrawl.errors import ConfigurationError
from recrawl.frontier.zones import share_partitions, zone_of

ZONES = {"jp": "asia", "co.jp": "tokyo", "example.org": "home"}


@pytest.mark.parametrize(
    ("domain", "zone"),
    [
        ("a.jp", "asia"), ("a.co.jp", "tokyo"), ("example.org", "home"), ("myexample.org", "default"),
        ("b.com", "default"), ("jp", "asia"), ("127.0.0.1", "default"),
    ],
)  # fmt: skip
def test_the_longest_ending_counts(domain: str, zone: str) -> None:
    assert zone_of(domain, ZONES) == zone


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 10**9), min_size=1), st.integers(1, 40))
def test_each_zone_has_its_own_partitions_by_its_work(work: dict[str, int], partitions: int) -> None:
    shares = share_partitions(work, partitions)
    taken = [partition for its in shares.values() for partition in its]
    assert taken == list(range(max(partitions, len(work))))
    assert set(shares) == set(work)
    assert all(len(its) >= 1 for its in shares.values())
    for more in work:
        for less in work:
            if work[more] > work[less]:
                assert len(shares[more]) >= len(shares[less])


@pytest.mark.parametrize("zones", [{"jp'": "asia"}, {"jp": "a b"}, {".jp": "asia"}])
def test_odd_zones_are_refused(zones: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        load_configuration(environment={}, overrides={"frontier": {"zones": zones}})
