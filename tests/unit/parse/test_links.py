"""The links of documents."""

from __future__ import annotations

import time

import pytest

from recrawl.parse.capture import FoundLink
from recrawl.parse.html import parse_html
from recrawl.parse.links import canonical_of, found_links, header_links, resolved
from recrawl.tables.vocabulary import LinkKind

PAGE = "http://e.example/dir/page"


def kinds(html: str) -> list[tuple[LinkKind, str]]:
    return [(link.kind, link.url) for link in found_links(parse_html(html), PAGE)]


def test_links_come_in_document_order_each_once() -> None:
    html = (
        "<link rel=canonical href=/c><link rel=alternate hreflang=de href=/de><link rel=next href=/n>"
        "<a href=1><img src=2 srcset='3 1x, 4 2x'></a><map><area href=5></map>"
        "<picture><source srcset=6></picture><iframe src=7></iframe><form action=8></form><a href=9>x</a>"
        "<meta http-equiv=refresh content='1;url=/r'>"
    )
    root = "http://e.example"
    assert kinds(html) == [
        (LinkKind.CANONICAL, f"{root}/c"),
        (LinkKind.HREFLANG, f"{root}/de"),
        (LinkKind.LINK, f"{root}/n"),
        (LinkKind.A, f"{root}/dir/1"),
        (LinkKind.IMG, f"{root}/dir/2"),
        (LinkKind.IMG, f"{root}/dir/3"),
        (LinkKind.IMG, f"{root}/dir/4"),
        (LinkKind.AREA, f"{root}/dir/5"),
        (LinkKind.IMG, f"{root}/dir/6"),
        (LinkKind.FRAME, f"{root}/dir/7"),
        (LinkKind.FORM, f"{root}/dir/8"),
        (LinkKind.A, f"{root}/dir/9"),
        (LinkKind.META_REFRESH, f"{root}/r"),
    ]


@pytest.mark.parametrize(
    "html",
    [
        "<a name=x>",
        "<form method=POST action=/x></form>",
        "<form></form>",
        "<link rel='dns-prefetch' href=//cdn.example>",
        "<link rel=preconnect href=//cdn.example>",
        "<img src=''>",
        "<template><a href=/x></a></template>",
        "<!-- <a href=/x> -->",
        "<script>'<a href=/x>'</script>",
        "<meta http-equiv=refresh content=60>",
    ],
)
def test_what_is_no_link(html: str) -> None:
    assert kinds(html) == []


def test_rel_and_text_are_collapsed_and_an_image_lends_its_alternative_text() -> None:
    html = "<a rel=' NoFollow\n ugc' href=/1> one\n <b>two</b> </a><a href=/2><img alt=' a  picture '></a>"
    first, second = found_links(parse_html(html), PAGE)
    assert (first.rel, first.anchor_text) == ("nofollow ugc", "one two")
    assert second.anchor_text == "a picture"


def test_text_is_cut_at_500_characters() -> None:
    (link,) = found_links(parse_html(f"<a href=/1>{'x' * 2000}</a>"), PAGE)
    assert len(link.anchor_text) == 500


def test_what_is_no_url_keeps_what_was_written() -> None:
    (link,) = found_links(parse_html("<a href='http://a b/'>x</a>"), PAGE)
    assert link == FoundLink("", "http://a b/", LinkKind.A, "", "x")


@pytest.mark.parametrize(
    ("raw", "encoding", "query"),
    [
        ("?q=д", "windows-1251", "?q=%E4"),
        ("?q=д", "utf-8", "?q=%D0%B4"),
        ("?q=漢", "windows-1252", "?q=%26%2328450%3B"),
        ("?q=д", "utf-16le", "?q=%D0%B4"),
        ("?a=1&b=ß;c#д", "iso-8859-2", "?a=1&b=%DF;c#%D0%B4"),
    ],
)
def test_a_query_is_written_in_the_encoding_of_its_document(raw: str, encoding: str, query: str) -> None:
    assert f"http://e.example/{query}" == resolved(f"/{raw}", PAGE, encoding)


def test_canonical_is_the_first_that_can_be_crawled() -> None:
    html = "<link rel=canonical href='mailto:x@e.example'><link rel='x CANONICAL' href=/c><link rel=canonical href=/d>"
    assert canonical_of(found_links(parse_html(html), PAGE)) == "http://e.example/c"


def test_link_headers_that_lead_to_pages() -> None:
    lines = ('</c>; rel="canonical", </style.css>; rel=preload; as=style', '<de>; rel=alternate; hreflang="de, x"')
    assert [(link.kind, link.url, link.rel) for link in header_links(lines, PAGE)] == [
        (LinkKind.CANONICAL, "http://e.example/c", "canonical"),
        (LinkKind.HREFLANG, "http://e.example/dir/de", "alternate"),
    ]


def test_a_hostile_link_header_takes_no_time() -> None:
    started = time.process_time()
    for line in ("<" * 250_000, "<a>;" + "a" * 250_000, '<a>;a="' + '\\"' * 120_000, "<a>" + "; " * 120_000):
        header_links((line,), PAGE)
    assert time.process_time() - started < 5
