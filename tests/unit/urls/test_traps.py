"""Filters for traps that look at a link together with its page, and computed calendars."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.config.model import Urls
from recrawl.tables.vocabulary import RejectFilter
from recrawl.urls.filters import UrlFilters
from recrawl.urls.traps import EVER_LONGER_CHARACTERS, faceted_links, growing_links, nested_again_links
from tests.strategies import web_urls

SHOP = "http://e.test/search?page=1&q=shoe"
MORE = "-and" * 20


@pytest.mark.parametrize(
    ("path", "is_trap"),
    [
        ("calendar/day?d=2026-12-24", True),
        ("calendar/day?d=2026-12-24&month=2026-12", True),
        ("Kalender?tag=20261224", True),
        ("agenda?on=2026-12-24", True),
        ("calendar?month=2026-12", False),
        ("calendar?month=2029-12", True),
        ("calendar/2026/12/24", False),
        ("archive?date=2026-11-24", False),
        ("news?id=20261224", False),
    ],
)
def test_days_of_a_computed_calendar_are_a_trap_and_its_months_are_not(path: str, is_trap: bool) -> None:
    filters = UrlFilters.from_settings(Urls(), date(2026, 11, 30))
    rejection = filters.check(f"http://e.test/{path}", 1)
    assert (None if rejection is None else rejection.filter) == (RejectFilter.CALENDAR if is_trap else None)


def test_a_name_that_only_grows_is_a_trap() -> None:
    page, grown = "http://e.test/long/a", [f"http://e.test/long/a{MORE}{end}" for end in ("", "-x", "/x")]
    others = ["http://e.test/long/a-2", f"http://e.test/long/a/{MORE}", f"http://e.test/long/a?q={MORE}"]
    others += [f"http://e.test/long/ab{MORE}", f"http://e.test/long/b{MORE}"]
    assert growing_links(page, [*grown, *others]) == set(grown)
    # A post's short address leads to its long one, which is one.
    assert growing_links(page, [grown[0], *others]) == frozenset()
    assert growing_links("http://e.test/long/", [f"http://e.test/long/{n}{MORE}" for n in range(9)]) == frozenset()
    assert growing_links(f"{page}?x", grown) == frozenset()


@given(web_urls, st.lists(web_urls, max_size=5))
def test_only_links_much_longer_than_their_page_grow(page: str, links: list[str]) -> None:
    for link in growing_links(page, links):
        assert link.startswith(page)
        assert len(link) >= len(page) + EVER_LONGER_CHARACTERS


def test_the_same_names_on_every_level_are_a_trap() -> None:
    page = "http://e.test/deep/a/b"
    again, new = [f"{page}/a", f"{page}/b/"], [f"{page}/c", f"{page}/a/c", "http://e.test/deep/a"]
    assert nested_again_links(page, [*again, *new]) == set(again)
    assert nested_again_links(f"{page}/", [*again, *new]) == set(again)
    # A month has one day of its own number, and a shallow path says nothing.
    days = [f"http://e.test/blog/2024/12/{day:02}" for day in range(1, 32)]
    assert nested_again_links("http://e.test/blog/2024/12", days) == frozenset()
    assert nested_again_links("http://e.test/a/b", ["http://e.test/a/b/a", "http://e.test/a/b/b"]) == frozenset()


def test_a_site_that_answers_any_path_ends_soon() -> None:
    """Followed without end, three names on every level make 3^n pages."""
    seen, level = {"http://e.test/deep/a"}, ["http://e.test/deep/a"]
    for _ in range(12):
        links = {page: [f"{page}/{name}" for name in "abc"] for page in level}
        level = [url for page, urls in links.items() for url in set(urls) - nested_again_links(page, urls)]
        seen.update(level)
        assert len(level) < 10
    assert len(seen) < 60


def test_choices_of_a_faceted_search_are_a_trap() -> None:
    choices = [f"{SHOP}&{name}={value}" for name in ("size", "sort", "view") for value in "ab"]
    others = ["http://e.test/search?page=2&q=shoe", "http://e.test/shoe", "http://e.test/search", SHOP]
    assert faceted_links(SHOP, [*choices, *others]) == set(choices)


@pytest.mark.parametrize(
    ("page", "links"),
    [
        # The pages of a thread: one parameter is added, whatever its values.
        ("http://e.test/t?f=3&t=5", [f"http://e.test/t?f=3&start={n}0&t=5" for n in range(1, 40)]),
        # The first choice, from a page that has made none.
        (
            "http://e.test/list?cat=5",
            [f"http://e.test/list?cat=5&{name}=1" for name in ("page", "size", "sort", "view")],
        ),
        ("http://e.test/list", [f"http://e.test/list?{name}=1&x=2" for name in ("page", "size", "sort", "view")]),
    ],
)
def test_pages_of_a_list_and_first_choices_pass(page: str, links: list[str]) -> None:
    assert faceted_links(page, links) == frozenset()


def test_an_accepted_trap_is_turned_away_whole() -> None:
    filters = UrlFilters.from_settings(Urls(), date(2026, 11, 30), ["http://e.test/print/"])
    rejection = filters.check("http://e.test/print/7", 1)
    assert rejection is not None
    assert (rejection.filter, rejection.reason) == (RejectFilter.TRAP, "The trap 'http://e.test/print/' is blocked.")
    assert filters.check("http://e.test/printer", 1) is None
    assert filters.check("https://e.test/print/7", 1) is None
