"""Redirect hops: what is followed, what is left to others, what is cut."""

from __future__ import annotations

import pytest

from recrawl.config.model import Urls
from recrawl.fetch.redirects import Redirects
from recrawl.fetch.work import PageWork, PlannedUrl
from recrawl.tables.vocabulary import Outcome, Scope
from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.filters import UrlFilters
from recrawl.urls.keys import url_id
from recrawl.urls.scope import ScopeSet

START = "http://a.test/start"


def redirects(planned: set[str] | None = None, scope: ScopeSet | None = None) -> Redirects:
    return Redirects(
        3, Canonicalizer(), UrlFilters(Urls()), scope or ScopeSet([(Scope.ANYWHERE, START)]),
        {url_id(url) for url in planned or ()}, set(), {"a.test"}, lambda host: host == "closed.a.test",
        lambda url: url.startswith("http://a.test/excluded/"),
    )  # fmt: skip


def work(url: str = START, hop: int = 0, chain: tuple[str, ...] = ()) -> PageWork:
    planned = PlannedUrl(url_id(START), START, START, "a.test", 1, 1.0, 0, 1000)
    return PageWork(planned, 1, hop, url_id(url), url, url, host_of(url), chain)


def test_a_target_is_followed_once_a_round() -> None:
    hops = redirects()
    first = hops.next_hop(work(), "/next")
    assert first.follow is not None
    assert (first.follow.url, first.follow.hop, first.follow.chain) == ("http://a.test/next", 1, (START,))
    assert first.follow.planned.url == START
    second = hops.next_hop(work("http://a.test/other"), "/next")
    assert (second.outcome, second.follow) == (Outcome.REDIRECT, None)
    assert "already" in second.detail


@pytest.mark.parametrize(
    ("location", "detail"),
    [
        ("http://other.test/", "another fetch partition"),
        ("/excluded/page", "excluded"),
        ("http://closed.a.test/", "blocked"),
        ("/planned", "planned itself"),
        ("/file.zip", "extension"),
    ],
)
def test_what_is_not_followed_is_a_final_redirect(location: str, detail: str) -> None:
    hop = redirects({"http://a.test/planned"}).next_hop(work(), location)
    assert (hop.outcome, hop.follow) == (Outcome.REDIRECT, None)
    assert hop.target is not None
    assert detail in hop.detail


def test_a_target_out_of_scope_is_recorded_only() -> None:
    hop = redirects(scope=ScopeSet([(Scope.HOST, START)])).next_hop(work(), "http://www.a.test/")
    assert (hop.follow, hop.target) == (None, "http://www.a.test/")
    assert "scope" in hop.detail


@pytest.mark.parametrize("location", ["ftp2:x", "javascript:1", "http://", "http://[bad/"])
def test_a_location_that_is_no_url(location: str) -> None:
    assert redirects().next_hop(work(), location)[:3] == (Outcome.INVALID_URL, None, None)


def test_loops_and_long_chains_are_cut() -> None:
    hops = redirects()
    assert hops.next_hop(work(), START).outcome is Outcome.TOO_MANY_REDIRECTS
    looped = work("http://a.test/b", 1, (START,))
    assert hops.next_hop(looped, START).outcome is Outcome.TOO_MANY_REDIRECTS
    assert hops.next_hop(work("http://a.test/c", 3, (START, "x", "y")), "/d").outcome is Outcome.TOO_MANY_REDIRECTS


def test_the_same_page_in_another_form_is_followed() -> None:
    start = "http://a.test/p?b=1&a=2"
    hop = redirects({start}).next_hop(work(start), "/p?a=2&b=1&utm_source=x")
    assert hop.follow is not None
    assert hop.follow.request_url != start


@pytest.mark.parametrize(
    "location", ["http://me:secret@[bad/", "ftp2://me:secret@a.test/", "//me:secret@:99999/", "http:\\\\me:secret@a b/"]
)
def test_credentials_of_a_target_are_not_told(location: str) -> None:
    hop = redirects().next_hop(work(), location)
    assert hop.outcome is Outcome.INVALID_URL
    assert "secret" not in hop.detail and "can't be requested" in hop.detail


def test_credentials_of_a_target_are_dropped() -> None:
    follow = redirects().next_hop(work(), "http://me:secret@a.test/next").follow
    assert follow is not None
    assert (follow.url, follow.request_url) == ("http://a.test/next", "http://a.test/next")
