"""One row a host and one a robots.txt, whatever the parts and attempts that saw them."""

from __future__ import annotations

import itertools
from typing import Any

from recrawl.fetch.merged import newest_robots, whole_visit


def visit(last_access_at: str | None, **values: Any) -> dict[str, Any]:
    defaults = {
        "host": "one.test", "requests": 1, "min_gap_ms": None, "errors": 0, "deferred": 0, "retry_after_seconds": None,
        "ips": [], "error_streak": 0,
    }  # fmt: skip
    return defaults | values | {"last_access_at": last_access_at}


def test_a_visit_adds_counts_keeps_extremes_and_ends_as_the_last_part_did() -> None:
    parts = [
        visit("2026-11-30T03:00:01.000000Z", requests=3, min_gap_ms=900, ips=["192.0.2.2"], error_streak=1),
        visit("2026-11-30T03:00:09.000000Z", requests=2, min_gap_ms=700, errors=1, ips=["192.0.2.1", "192.0.2.2"]),
        visit(None, requests=0, deferred=4, error_streak=9),
        visit("2026-11-30T03:00:05.000000Z", retry_after_seconds=30.0, error_streak=5),
    ]
    expected = visit(
        "2026-11-30T03:00:09.000000Z", requests=6, min_gap_ms=700, errors=1, deferred=4, retry_after_seconds=30.0,
        ips=["192.0.2.1", "192.0.2.2"],
    )  # fmt: skip
    for order in itertools.permutations(parts):
        assert whole_visit(order) == expected


def test_parts_that_were_never_asked_leave_no_gap_and_no_time() -> None:
    assert whole_visit([visit(None, requests=0, deferred=1)] * 2) == visit(None, requests=0, deferred=2)


def test_of_a_robots_file_the_newest_counts_scheme_by_scheme() -> None:
    rows = [
        {"scheme": scheme, "fetched_at": f"2026-11-30T03:00:0{second}.000000Z", "body": f"{scheme}{second}"}
        for scheme, second in (("https", 1), ("http", 3), ("http", 2), ("https", 0))
    ]
    for order in itertools.permutations(rows):
        assert [row["body"] for row in newest_robots(order)] == ["http3", "https1"]
