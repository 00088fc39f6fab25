"""From links to edges and rejects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.config.model import Urls
from recrawl.parse.capture import FoundLink
from recrawl.parse.resolve import ResolvedLinks, TargetJudge, ancestor_urls, resolve_links
from recrawl.tables.vocabulary import LinkKind, RejectFilter, Scope
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.filters import UrlFilters
from recrawl.urls.keys import url_id
from recrawl.urls.scope import ScopeSet

PAGE = "http://e.example/dir/page"
CANONICALIZER = Canonicalizer()
FILTERS = UrlFilters(Urls())
SCOPE = ScopeSet([(Scope.DOMAIN, "http://e.example/")])


def link(url: str, kind: LinkKind = LinkKind.A, rel: str = "", text: str = "", raw: str = "raw") -> FoundLink:
    return FoundLink(url, raw, kind, rel, text)


def resolve(
    *found: FoundLink, nofollow: bool = False, max_links: int = 100, ascending: bool = False, depth: int = 0
) -> ResolvedLinks:
    return resolve_links(PAGE, depth, found, nofollow, TargetJudge(CANONICALIZER, FILTERS, SCOPE), max_links, ascending)


def test_an_edge_holds_the_target_and_how_it_is_requested() -> None:
    result = resolve(link("http://WWW.e.example/b?z=1&a=2#top", text="b"), link("http://e.example:8080/c"))
    first, second = result.kept
    assert (first.position, first.dst_url) == (0, "http://www.e.example/b?a=2&z=1")
    assert first.request_url == "http://www.e.example/b?z=1&a=2"
    assert (first.dst_host, first.dst_domain, first.dst_url_id) == ("www.e.example", "e.example", url_id(first.dst_url))
    assert (second.request_url, second.dst_host, second.dst_domain) == (None, "e.example:8080", "e.example")
    assert (result.outlink_count, result.kept_outlink_count) == (2, 2)


def test_links_to_the_page_itself_are_dropped() -> None:
    result = resolve(link(PAGE), link(f"{PAGE}#part"), link(f"{PAGE}?utm_source=x"))
    assert result == ResolvedLinks([], [], 0, 0)


def test_what_is_not_taken_is_a_reject_once_with_its_reason() -> None:
    result = resolve(
        link("", raw="http://a b/"),
        link("", raw="http://a b/"),
        link("mailto:x@e.example"),
        link("http://other.example/"),
        link("http://other.example/#again"),
        link("http://e.example/x.zip"),
        link("http://e.example/ok"),
    )
    assert [(reject.dst_url, reject.filter) for reject in result.rejects] == [
        ("http://a b/", RejectFilter.INVALID),
        ("mailto:x@e.example", RejectFilter.SCHEME),
        ("http://other.example/", RejectFilter.SCOPE),
        ("http://e.example/x.zip", RejectFilter.EXTENSION),
    ]
    assert all(reject.reason for reject in result.rejects)
    assert (result.outlink_count, result.kept_outlink_count) == (5, 1)


def test_depth_of_a_target_is_one_more_than_the_page() -> None:
    limit = Urls().max_depth
    assert resolve(link("http://e.example/x"), depth=limit - 1).kept
    assert resolve(link("http://e.example/x"), depth=limit).rejects[0].filter is RejectFilter.DEPTH


def test_rejected_text_is_cut() -> None:
    (reject,) = resolve(link("data:" + "x" * 10_000)).rejects
    assert len(reject.dst_url) == 4096


@pytest.mark.parametrize("rel", ["nofollow", "noopener ugc", "sponsored"])
def test_a_disowned_link_is_an_edge_that_is_not_followed(rel: str) -> None:
    result = resolve(link("http://e.example/a", rel=rel), link("http://e.example/b", rel="noopener"))
    assert [edge.followed for edge in result.kept] == [False, True]
    assert (result.outlink_count, result.kept_outlink_count) == (2, 1)


def test_a_target_with_one_owned_link_is_followed() -> None:
    result = resolve(link("http://e.example/a", rel="nofollow"), link("http://e.example/a"))
    assert (len(result.kept), result.outlink_count, result.kept_outlink_count) == (2, 1, 1)


def test_no_link_of_a_nofollow_page_is_followed() -> None:
    result = resolve(link("http://e.example/a"), nofollow=True, ascending=True)
    assert [edge.followed for edge in result.kept] == [False]
    assert result.kept_outlink_count == 0


def test_what_a_sitemap_states_counts_for_its_own_domain_alone() -> None:
    scope = ScopeSet([(Scope.ANYWHERE, "http://e.example/")])
    found = [
        FoundLink(url, "raw", LinkKind.SITEMAP, "", "", "2026-01-01", 0.5)
        for url in ("http://www.e.example/a", "http://other.example/b")
    ]
    kept = resolve_links(PAGE, 0, found, False, TargetJudge(CANONICALIZER, FILTERS, scope), 100, False).kept
    assert [(edge.lastmod, edge.priority) for edge in kept] == [("2026-01-01", 0.5), (None, None)]


def test_a_path_that_each_link_makes_longer_is_left() -> None:
    page = "http://e.example/deep/a/b/c/a/b/c"
    scope = ScopeSet([(Scope.ANYWHERE, "http://e.example/")])
    judge = TargetJudge(CANONICALIZER, FILTERS, scope)
    result = resolve_links(page, 6, [link(f"{page}/b"), link("http://e.example/x")], False, judge, 9, False)
    assert [edge.dst_url for edge in result.kept] == ["http://e.example/x"]
    assert [reject.filter for reject in result.rejects] == [RejectFilter.EVER_DEEPER]


def test_equal_edges_are_one() -> None:
    a = link("http://e.example/a", text="x")
    result = resolve(a, a, link("http://e.example/a", text="y"))
    assert [edge.anchor_text for edge in result.kept] == ["x", "y"]


def test_targets_beyond_the_cap_are_rejects_and_still_counted() -> None:
    found = [link(f"http://e.example/{n}") for n in range(5)] + [link("http://e.example/0", text="again")]
    result = resolve(*found, max_links=3)
    assert [edge.dst_url for edge in result.kept] == [f"http://e.example/{n}" for n in range(3)]
    assert [(reject.dst_url, reject.filter) for reject in result.rejects] == [
        ("http://e.example/3", RejectFilter.LINK_CAP),
        ("http://e.example/4", RejectFilter.LINK_CAP),
    ]
    assert (result.outlink_count, result.kept_outlink_count) == (5, 3)


def test_entries_of_a_sitemap_have_a_cap_of_their_own() -> None:
    result = resolve(*(link(f"http://e.example/{n}", LinkKind.SITEMAP) for n in range(5)), max_links=3)
    assert (len(result.kept), result.rejects) == (5, [])


def test_ancestors_follow_the_links_and_are_not_counted() -> None:
    result = resolve(link("http://e.example/a/b/c?x"), link("http://e.example/a/"), ascending=True)
    assert [(edge.kind, edge.dst_url) for edge in result.kept] == [
        (LinkKind.A, "http://e.example/a/b/c?x"),
        (LinkKind.A, "http://e.example/a/"),
        (LinkKind.ANCESTOR, "http://e.example/a/b/"),
        (LinkKind.ANCESTOR, "http://e.example/"),
    ]
    assert [edge.position for edge in result.kept] == [0, 1, 2, 3]
    assert (result.outlink_count, result.kept_outlink_count) == (2, 2)


@pytest.mark.parametrize(
    ("url", "ancestors"),
    [
        ("http://e.example/a/b?c/d", ["/a/", "/"]),
        ("http://e.example/a/b/", ["/a/", "/"]),
        ("http://e.example/a/?x", ["/a/", "/"]),
        ("http://e.example/", []),
        ("http://e.example/?x", ["/"]),
    ],
)
def test_ancestor_urls(url: str, ancestors: list[str]) -> None:
    assert [f"http://e.example{path}" for path in ancestors] == list(ancestor_urls(url))


_FOUND = st.builds(
    FoundLink,
    url=st.sampled_from(["", PAGE, "mailto:x", "http://f.example/", "http://e.example/%"])
    | st.integers(0, 9).map(lambda n: f"http://e.example/{n}/"),
    raw=st.text(max_size=5),
    kind=st.sampled_from([LinkKind.A, LinkKind.IMG, LinkKind.SITEMAP]),
    rel=st.sampled_from(["", "nofollow"]),
    anchor_text=st.sampled_from(["", "x"]),
)


@given(st.lists(_FOUND, max_size=30), st.booleans(), st.integers(1, 8), st.booleans())
def test_every_target_is_an_edge_or_a_reject(found: list[FoundLink], nofollow: bool, cap: int, ascending: bool) -> None:
    result = resolve(*found, nofollow=nofollow, max_links=cap, ascending=ascending)
    edges = {edge.dst_url for edge in result.kept if edge.kind is not LinkKind.ANCESTOR}
    rejects = [reject.dst_url for reject in result.rejects]
    assert len(rejects) == len(set(rejects))
    assert not edges.intersection(rejects)
    if not ascending:
        assert len(edges) + len(rejects) == result.outlink_count
    assert result.kept_outlink_count == len(
        {e.dst_url for e in result.kept if e.followed and e.kind is not LinkKind.ANCESTOR}
    )
    assert [edge.position for edge in result.kept] == list(range(len(result.kept)))
    assert PAGE not in edges


def test_links_that_only_grow_or_add_one_choice_more_are_turned_away() -> None:
    judge = TargetJudge(CANONICALIZER, FILTERS, SCOPE)
    shop = "http://e.example/find?q=a&page=1"
    found = [link(f"{shop}&{name}=x") for name in ("sort", "size", "view")] + [link("http://e.example/find?q=b")]
    result = resolve_links("http://e.example/find?page=1&q=a", 1, found, False, judge, 100, False)
    assert [edge.dst_url for edge in result.kept] == ["http://e.example/find?q=b"]
    assert {reject.filter for reject in result.rejects} == {RejectFilter.QUERY_EXPLOSION}
    assert (len(result.rejects), result.outlink_count) == (3, 4)
    grown = resolve(link(PAGE + "-more" * 20), link(PAGE + "-and" * 20), link(PAGE + "-2"))
    assert [reject.filter for reject in grown.rejects] == [RejectFilter.EVER_DEEPER] * 2
    assert [edge.dst_url for edge in grown.kept] == [PAGE + "-2"]
