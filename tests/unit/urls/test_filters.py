"""The URL filters, each by what it turns away and what it lets pass."""

from __future__ import annotations

import pickle
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.config.model import Urls
from recrawl.errors import ConfigurationError
from recrawl.tables.vocabulary import RejectFilter
from recrawl.urls.filters import UrlFilters, uncanonical
from recrawl.urls.traps import ever_deeper
from tests.strategies import any_text, web_urls

TODAY = date(2026, 11, 30)
URLS = Urls(
    max_url_bytes=120,
    max_depth=3,
    max_segment_repeats=3,
    max_query_parameters=4,
    max_path_segments=11,
    blocked_hosts=["ads.example", "Tracker.example.net"],
    blocked_prefixes=["http://example.com/private/", "http://example.com/cgi"],
    blocked_patterns=[r"/print/\d+$"],
    blocked_extensions=["zip", ".GZ"],
)
FILTERS = UrlFilters.from_settings(URLS, TODAY)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.com/", None),
        ("ftp://example.com/", None),
        ("mailto:ann@example.com", RejectFilter.SCHEME),
        ("", RejectFilter.SCHEME),
        ("http://example.com/" + "a" * 101, None),
        ("http://example.com/" + "a" * 102, RejectFilter.LENGTH),
        ("http://example.com/" + "é" * 51, RejectFilter.LENGTH),
        ("http://ads.example/", RejectFilter.HOST),
        ("http://x.y.ads.example:8080/", RejectFilter.HOST),
        ("https://ann@tracker.example.net?x", RejectFilter.HOST),
        ("http://badads.example/", None),
        ("http://example.com/?u=http://ads.example/", None),
        ("http://example.com/private/a", RejectFilter.PREFIX),
        ("http://example.com/cgi-bin", RejectFilter.PREFIX),
        ("http://example.com/private", None),
        ("https://example.com/private/a", None),
        ("http://example.com/print/17", RejectFilter.REGEX),
        ("http://example.com/print/17/", None),
        ("http://example.com/a.zip", RejectFilter.EXTENSION),
        ("http://example.com/a.b.ZIP?x=1", RejectFilter.EXTENSION),
        ("http://example.com/a.zip;v=1", RejectFilter.EXTENSION),
        ("http://example.com/a.tar.gz", RejectFilter.EXTENSION),
        ("http://example.com/sitemap.xml.gz", None),
        ("http://example.com/a.zip/", None),
        ("http://example.com/a?file=b.zip", None),
        ("http://shop.zip/", None),
        ("http://example.com/a/a/a", None),
        ("http://example.com/a/a/a/a", RejectFilter.SEGMENT_REPEAT),
        ("http://example.com/x/a/b/a/b/a/b/y", None),
        ("http://example.com/x/a/b/a/b/a/b/a/b/y", RejectFilter.SEGMENT_REPEAT),
        ("http://example.com/a/b/c/d/a/b/c/d/a/b/c/d/a/b/c/d", RejectFilter.SEGMENT_REPEAT),
        ("http://example.com/?p=a/a/a/a/a/a", None),
        ("http://example.com/?a&b&c&d", None),
        ("http://example.com/?a&&b&c&d&", None),
        ("http://example.com/?a&b&c&d&e", RejectFilter.QUERY_EXPLOSION),
        ("http://example.com/calendar/2087/05", RejectFilter.CALENDAR),
        ("http://example.com/events/1985-05-30/", RejectFilter.CALENDAR),
        ("http://example.com/?month=208705", RejectFilter.CALENDAR),
        ("http://example.com/calendar/20870531", RejectFilter.CALENDAR),
        ("http://example.com/calendar/2027/05", None),
        ("http://example.com/calendar/2026/of/1848", None),
        ("http://example.com/history/1848", None),
        ("http://example.com/calendar/id-120848", None),
        ("http://example.com/events/2017/05", None),
        ("http://example.com/2015/06/a-story-of-date-palms/", None),
        ("http://example.com/calendar?month=2024-05", RejectFilter.CALENDAR),
        ("http://example.com/calendar/day?d=2028-01-02&month=2028-01", RejectFilter.CALENDAR),
        ("http://example.com/calendar?month=2027-05", None),
        ("http://example.com/news?year=2019", None),
        ("http://example.com" + "/a/b" * 3 + "/c/d/e/f/g", None),
        ("http://example.com/1/2/3/4/5/6/7/8/9/10/11/12", RejectFilter.EVER_DEEPER),
        ("http://example.com/(S(4mdzq3qxwpl2uoqvj5lk2t55))/a.aspx", RejectFilter.SESSION),
        ("http://example.com/shop/session/0f3a9c2277ab41d0/cart", RejectFilter.SESSION),
        ("http://example.com/PHPSESSID=0f3a9c2277ab41d0b2/", RejectFilter.SESSION),
        ("http://example.com/sid-0f3a9c2277ab41d0b2", RejectFilter.SESSION),
        ("http://example.com/sessions/how-to-run-a-workshop-in-2024", None),
        ("http://example.com/session/the-annual-conference-opening", None),
        ("http://example.com/sid/abcdefghijklmnopqrstuvwxyz", None),
        ("http://example.com/(a)/b", None),
        ("http://example.com/?s=1&c=2&s=3&s=4", None),
        ("http://example.com/?s=1&s=2&s=3&s=4", RejectFilter.QUERY_EXPLOSION),
        ("http://example.com/?id%5B%5D=1&id%5B%5D=2&id%5B%5D=3&id%5B%5D=4", None),
        ("http://example.com/a;b.zip", RejectFilter.EXTENSION),
        ("http://example.com/a;v=1.2", None),
    ],
)
def test_filters(url: str, expected: RejectFilter | None) -> None:
    rejection = FILTERS.check(url, 3)
    assert (rejection.filter if rejection else None) == expected
    assert rejection is None or rejection.reason.endswith(".")


@pytest.mark.parametrize(
    ("page", "url", "depth", "trap"),
    [
        ("http://e.example/deep/a/b/c/a/b/c", "http://e.example/deep/a/b/c/a/b/c/d", 7, True),
        ("http://e.example/deep/a/b/c/a/b/c/", "http://e.example/deep/a/b/c/a/b/c/d/", 7, True),
        ("http://e.example/deep/a/b/c/a/b/c", "http://e.example/deep/a/b/c/a/b/c/d", 3, False),
        ("http://e.example/a/b/c", "http://e.example/a/b/c/d", 9, False),
        ("http://e.example/1/2/3/4/5/6/7", "http://e.example/1/2/3/4/5/6/8/9", 9, False),
        ("http://e.example/1/2/3/4/5/6/index.html", "http://e.example/1/2/3/4/5/6/next/a.html", 9, False),
        ("http://e.example/1/2/3/4/5/6/7", "http://e.example/1/2/3/4/5/6/7?page=2", 9, False),
    ],
)
def test_a_path_that_each_link_makes_longer(page: str, url: str, depth: int, trap: bool) -> None:
    assert bool(ever_deeper(page, url, depth)) == trap
    assert UrlFilters.from_settings(Urls()).check(url, depth) is None


def test_where_there_are_allow_lists_one_of_them_must_name_a_url() -> None:
    filters = UrlFilters.from_settings(
        Urls(
            allowed_hosts=["example.com"],
            allowed_prefixes=["http://other.example/docs/"],
            allowed_patterns=[r"/public/"],
            blocked_hosts=["ads.example.com"],
        )
    )

    def verdict(url: str) -> RejectFilter | None:
        rejection = filters.check(url, 0)
        return rejection.filter if rejection else None

    assert verdict("http://www.example.com/x") is None
    assert verdict("http://other.example/docs/x") is None
    assert verdict("http://third.example/public/x") is None
    assert verdict("http://other.example/x") is RejectFilter.ALLOW_LIST
    assert verdict("http://notexample.com/") is RejectFilter.ALLOW_LIST
    assert verdict("http://ads.example.com/") is RejectFilter.HOST


def test_lists_are_read_from_files_whenever_filters_are_built(tmp_path: Path) -> None:
    hosts, patterns = tmp_path / "hosts.txt", tmp_path / "patterns.txt"
    hosts.write_text("# advertising\n\n0.0.0.0 ads.example # a hosts file's line\nTracker.example\n")
    patterns.write_text("# prints\n/print#?$\n")
    urls = Urls(blocked_hosts=[f"file:{hosts}", "own.example"], blocked_patterns=[f"file:{patterns}"])
    filters = UrlFilters.from_settings(urls)
    for url in ("http://x.ads.example/", "http://tracker.example/", "http://own.example/", "http://a.example/print"):
        assert filters.check(url, 0) is not None
    assert filters.check("http://0.0.0.0/", 0) is None
    hosts.write_text("later.example\n")
    later = UrlFilters.from_settings(urls)
    assert later.check("http://later.example/", 0) is not None
    assert later.check("http://ads.example/", 0) is None
    assert pickle.loads(pickle.dumps(later)).check("http://later.example/", 0) is not None


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_list_that_cannot_be_read_is_a_configuration_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "list.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"urls\.allowed_hosts: the file .*list\.txt can't be read"):
        UrlFilters.from_settings(Urls(allowed_hosts=[f"file:{file}"]))


def test_depth() -> None:
    rejection = FILTERS.check("http://example.com/", 4)
    assert rejection is not None
    assert rejection == (RejectFilter.DEPTH, "It is 4 links away from a seed; the limit is 3.")


def test_the_first_filter_in_order_names_the_reason() -> None:
    rejection = FILTERS.check("http://ads.example/print/17", 9)
    assert rejection is not None
    assert rejection.filter is RejectFilter.DEPTH


def test_without_a_date_no_page_is_far_from_today() -> None:
    assert UrlFilters.from_settings(URLS).check("http://example.com/calendar/2087/05", 0) is None


def test_the_defaults_take_an_ordinary_page() -> None:
    filters = UrlFilters.from_settings(Urls(), TODAY)
    assert filters.check("https://example.com/news/2026/11/30/a-story.html?page=2", 5) is None
    assert filters.check("https://example.com/setup.exe", 5) is not None


def test_a_broken_pattern_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="blocked_patterns"):
        UrlFilters.from_settings(Urls(blocked_patterns=["("]))


@pytest.mark.parametrize(
    ("url", "expected"),
    [("http://", RejectFilter.INVALID), ("mailto:a@b", RejectFilter.SCHEME), ("http://.../", RejectFilter.INVALID)],
)
def test_what_has_no_canonical_form_is_told_apart(url: str, expected: RejectFilter) -> None:
    assert uncanonical(url).filter is expected


@given(st.one_of(any_text, web_urls, web_urls.map(lambda url: f"http://{url}")), st.integers(0, 5))
def test_any_text_is_answered(text: str, depth: int) -> None:
    rejection = FILTERS.check(text, depth)
    assert rejection is None or (rejection.filter in RejectFilter and rejection.reason)


@given(st.lists(st.sampled_from("ab"), max_size=18), st.integers(1, 4))
def test_repeats_agree_with_counting(segments: list[str], limit: int) -> None:
    """The one-pass look for repeats agrees with trying every start and period."""
    filters = UrlFilters.from_settings(Urls(max_segment_repeats=limit))
    repeated = any(
        segments[start : start + period * (limit + 1)] == segments[start : start + period] * (limit + 1)
        for period in range(1, 5)
        for start in range(len(segments) - period * (limit + 1) + 1)
    )
    url = "http://example.com/" + "/".join(segments)
    assert (filters.check(url, 0) is not None) == repeated


def test_filters_travel_to_the_workers() -> None:
    copy = pickle.loads(pickle.dumps(FILTERS))
    assert copy.check("http://ads.example/", 0) == FILTERS.check("http://ads.example/", 0)
