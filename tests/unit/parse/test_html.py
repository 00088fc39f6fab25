"""Titles, directives, refreshes and bases."""

from __future__ import annotations

import pytest

from recrawl.parse.html import Directives, base_url, meta_refresh, parse_html, refresh_of, robots_directives, title_of

PAGE = "http://e.example/dir/page"


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> A \n  B </title>", "A B"),
        ("<svg><title>icon</title></svg><p>x", None),
        ("<title></title>", None),
        ("<title>a &amp; b<b></title>", "a & b<b>"),
    ],
)
def test_title(html: str, title: str | None) -> None:
    assert title == title_of(parse_html(html))


@pytest.mark.parametrize(
    ("html", "header", "directives"),
    [
        ("", None, Directives()),
        ("<meta name=robots content='noindex,follow'>", None, Directives(noindex=True)),
        ("<meta name=Recrawl content=nofollow>", None, Directives(nofollow=True)),
        ("<meta name=otherbot content=none>", None, Directives()),
        ("<meta name=robots content=noindex><meta name=robots content=nofollow>", None, Directives(True, True)),
        ("", "noindex", Directives(noindex=True)),
        ("", "otherbot: none", Directives()),
        ("", "otherbot: none\nrecrawl: noindex, nofollow", Directives(True, True)),
        ("", "otherbot: noindex, nofollow, RECRAWL: noindex", Directives(noindex=True)),
        ("", "unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow", Directives(nofollow=True)),
        ("", "max-snippet:-1, none", Directives(True, True)),
        ("<meta name=robots content=noindex>", "nofollow", Directives(True, True)),
    ],
)
def test_directives_sum_what_is_meant_for_us(html: str, header: str | None, directives: Directives) -> None:
    assert directives == robots_directives(parse_html(html), "recrawl", header)


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=/a", "http://e.example/a"),
        ("0;URL='a b'junk", "http://e.example/dir/a%20b"),
        (".5, b", "http://e.example/dir/b"),
        ("5", PAGE),
        ("5;", PAGE),
        ("x;url=/a", None),
        ("5x;url=/a", None),
        ("", None),
        ("0;url=http://[", None),
    ],
)
def test_refresh_follows_the_standard(content: str, target: str | None) -> None:
    refresh = refresh_of(content, PAGE, PAGE)
    assert target == (refresh.target if refresh else None)


def test_refresh_in_noscript_is_left_alone() -> None:
    html = "<noscript><meta http-equiv=refresh content='0;url=/nojs'></noscript>"
    assert meta_refresh(parse_html(html), PAGE) is None


def test_first_base_with_a_href_decides() -> None:
    assert base_url(parse_html("<base target=x><base href=/a/><base href=/b/>"), PAGE) == "http://e.example/a/"
    assert base_url(parse_html("<base href='javascript:x'><base href=/b/>"), PAGE) == PAGE
