"""The root set under other rules, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recrawl.seed.rekeying import rekeyed_seeds


def _seed(number: int, credit: int = 1, scope: str = "host", tags: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "url_id": number, "url": f"http://a.org/{number}", "raw_seed": f"{number}", "scope": scope, "tags": list(tags),
        "credit_granted": credit, "manual_priority": float(number),
        "added_at": datetime(2026, 1, number % 28 + 1, tzinfo=UTC),
    }  # fmt: skip


def _to(ids: Mapping[int, int | None]) -> Any:
    def identity(row: Mapping[str, Any]) -> dict[str, Any] | None:
        number = ids.get(row["url_id"], row["url_id"])
        return None if number is None else {"url_id": number, "url": f"http://a.org/{number}"}

    return identity


def test_seeds_that_become_one_keep_what_all_had() -> None:
    rows = [_seed(1, 5, "page", ("x",)), _seed(2, 7, "domain", ("y", "x")), _seed(3), _seed(4)]
    changes = rekeyed_seeds(lambda: rows, _to({2: 1, 3: 9, 4: None}))
    one, other = changes.put
    assert (one["url_id"], one["credit_granted"], one["scope"], one["tags"], one["manual_priority"]) == (
        1, 12, "domain", ["x", "y"], 2.0,
    )  # fmt: skip
    assert (other["url_id"], other["url"]) == (9, "http://a.org/9")
    assert changes.removed == (2, 3)
    assert changes.put_back == (rows[0], rows[1], rows[2])
    assert changes.removed_again == (9,)


@given(st.dictionaries(st.integers(1, 9), st.integers(1, 12)))
def test_no_credit_is_lost_and_the_way_back_is_exact(ids: dict[int, int]) -> None:
    rows = {number: _seed(number, number) for number in range(1, 10)}
    changes = rekeyed_seeds(lambda: list(rows.values()), _to(ids))
    after = {**rows, **{row["url_id"]: row for row in changes.put}}
    for number in changes.removed:
        del after[number]
    assert set(after) == {ids.get(number, number) for number in rows}
    assert sum(row["credit_granted"] for row in after.values()) == sum(range(1, 10))
    after |= {row["url_id"]: row for row in changes.put_back}
    for number in changes.removed_again:
        del after[number]
    assert after == rows
