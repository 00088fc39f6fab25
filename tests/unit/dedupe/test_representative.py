"""The choice of a representative."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.dedupe.representative import Candidate, Incumbent, choose_representative, chosen_sql, still_stands_sql
from recrawl.tables.vocabulary import UrlState

SUM, OTHER = 77, 78
NEAR = Candidate(9, "http://a.org/long/path", 1)
SHORT = Candidate(8, "http://a.org/b", 2)


def test_depth_then_length_then_id_decides() -> None:
    assert choose_representative(SUM, [SHORT, NEAR], None) == 9
    assert choose_representative(SUM, [SHORT, Candidate(1, "http://a.org/bb", 2)], None) == 8
    assert choose_representative(SUM, [SHORT, Candidate(-5, "http://a.org/c", 2)], None) == -5
    assert choose_representative(SUM, [SHORT, Candidate(1, "http://a", None)], None) == 8


@pytest.mark.parametrize(
    ("known", "stays"),
    [
        (Incumbent(1, UrlState.FETCHED, SUM), True),
        (Incumbent(1, UrlState.FETCHED, OTHER), False),
        (Incumbent(1, UrlState.FETCHED, None), False),
        (Incumbent(1, UrlState.FETCHED, SUM, captured_checksum=OTHER), False),
        (Incumbent(1, UrlState.FETCHED, OTHER, captured_checksum=SUM), True),
        (Incumbent(1, UrlState.FETCHED, SUM, captured_checksum=SUM), True),
        (Incumbent(1, UrlState.GONE, SUM), False),
        (Incumbent(1, UrlState.DUPLICATE, SUM), False),
        (Incumbent(1, UrlState.REDIRECT, SUM), False),
        (Incumbent(1, UrlState.GONE, SUM, captured_checksum=SUM), True),
    ],
)
def test_the_one_in_force_stays_while_it_shows_the_content(known: Incumbent, stays: bool) -> None:
    assert choose_representative(SUM, [NEAR, SHORT], known) == (1 if stays else 9)


def test_there_must_be_somebody() -> None:
    with pytest.raises(ValueError, match="nothing shows"):
        choose_representative(SUM, [], Incumbent(1, UrlState.GONE, SUM))


candidates = st.lists(
    st.builds(Candidate, st.integers(), st.text("ab", max_size=4), st.none() | st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


@given(candidates, st.randoms(use_true_random=False))
def test_the_choice_is_one_of_them_and_the_order_does_not_matter(
    found: list[Candidate], shuffler: random.Random
) -> None:
    chosen = choose_representative(SUM, found, None)
    again = list(found)
    shuffler.shuffle(again)
    assert chosen in {candidate.url_id for candidate in found}
    assert choose_representative(SUM, again, None) == chosen


@given(candidates)
def test_the_choice_stays_once_made(found: list[Candidate]) -> None:
    chosen = choose_representative(SUM, found, None)
    known = Incumbent(chosen, UrlState.FETCHED, SUM)
    assert choose_representative(SUM, [*found, Candidate(-(2**63), "", 0)], known) == chosen


def test_the_sql_names_the_states_and_never_is_null() -> None:
    sql = still_stands_sql(state="s", content_checksum="c", captured_checksum="k", checksum="x")
    assert "s IN ('fetched')" in sql
    assert sql.startswith("coalesce(")
    chosen = chosen_sql(
        stands="p", in_force_url_id="u", in_force_host="h", in_force_names_itself="n", best="b", named="m"
    )
    assert chosen.endswith("WHEN p THEN u ELSE b.url_id END")


def _shown(url_id: int, host: str, named: bool, depth: int = 1) -> Candidate:
    domain = {"evil.test": "evil.test"}.get(host, "a.org")
    return Candidate(url_id, f"http://{host}/{url_id}", depth, host, domain, named)


def test_a_page_that_the_content_names_stands_for_it_within_its_domain() -> None:
    near, named = _shown(1, "a.org", False, 0), _shown(2, "www.a.org:8080", True, 9)
    assert choose_representative(SUM, [near, named], None) == 2
    in_force = Incumbent(1, UrlState.FETCHED, SUM, host="a.org")
    assert choose_representative(SUM, [named], in_force) == 2
    # One that names itself gives way to no other; another site's word counts for nothing.
    assert choose_representative(SUM, [named], Incumbent(1, UrlState.FETCHED, SUM, SUM, "a.org", True)) == 1
    assert choose_representative(SUM, [near, _shown(3, "evil.test", True)], None) == 1
    assert choose_representative(SUM, [_shown(3, "evil.test", True)], in_force) == 1
    assert (
        choose_representative(
            SUM, [_shown(3, "evil.test", True)], Incumbent(1, UrlState.FETCHED, SUM, host="notevil.test")
        )
        == 1
    )
