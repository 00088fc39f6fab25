"""Who is the main host, and what is evidence enough."""

from __future__ import annotations

from itertools import permutations

from recrawl.dedupe.sameness import enough_sql, main_hosts


def test_hosts_that_hang_together_have_one_main_host() -> None:
    pairs = [("www.a.org", "a.org"), ("a.org", "192.0.2.7"), ("192.0.2.7", "[2001:db8::1]:8080"), ("b.org", "c.org")]
    counts = {"a.org": 5, "www.a.org": 90, "192.0.2.7": 900, "b.org": 7, "c.org": 7}
    expected = {
        "192.0.2.7": "www.a.org", "[2001:db8::1]:8080": "www.a.org", "a.org": "www.a.org", "c.org": "b.org",
    }  # fmt: skip
    for order in permutations(pairs):
        assert main_hosts(order, counts) == expected
    assert main_hosts([("a.org:8080", "aaa.org")], {"a.org:8080": 99}) == {"a.org:8080": "aaa.org"}
    assert main_hosts([], {}) == {}


def test_evidence_is_asked_for_in_numbers_contents_and_share() -> None:
    assert enough_sql("n", "a", "c", 5) == "a >= 5 AND c >= 5 AND a >= 0.95D * n"
