"""The root set is lasting: what is read again changes only what a person may change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recrawl.seed.root_set import changed_seeds

FIRST, NOW = datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)


def seed(url_id: int, **values: Any) -> dict[str, Any]:
    return {
        "url_id": url_id, "scope": "host", "tags": [], "credit_granted": 10**12, "manual_priority": 1.0,
        "added_at": NOW, "added_by": "new.txt", **values,
    }  # fmt: skip


def known(*rows: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {row["url_id"]: row for row in rows}


def test_first_readings_are_kept_and_changes_taken() -> None:
    first = {"added_at": FIRST, "added_by": "old.txt"}
    changed = seed(2, scope="domain", credit_granted=3 * 10**12, tags=["news"], manual_priority=2.0)
    rows = changed_seeds(known(seed(1, **first), seed(2, **first), seed(3, **first)), [seed(1), changed, seed(4)])
    assert rows == [changed | first, seed(4)]


def test_the_same_lists_read_once_more_change_nothing() -> None:
    rows = [seed(1), seed(2, tags=["a"])]
    stored = known(*changed_seeds({}, rows))
    assert changed_seeds(stored, [row | {"added_at": NOW.replace(hour=5), "added_by": "other"} for row in rows]) == []
    assert changed_seeds(stored, []) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["page", "host", "domain"])), max_size=20))
def test_readings_one_after_another_end_with_the_last_scope_and_the_first_giver(
    readings: list[tuple[int, str]],
) -> None:
    stored: dict[int, dict[str, Any]] = {}
    for number, (url_id, scope) in enumerate(readings):
        for row in changed_seeds(stored, [seed(url_id, scope=scope, added_by=str(number))]):
            stored[row["url_id"]] = row
    for url_id in stored:
        own = [(number, scope) for number, (read, scope) in enumerate(readings) if read == url_id]
        assert (stored[url_id]["added_by"], stored[url_id]["scope"]) == (str(own[0][0]), own[-1][1])
