"""Sitemaps, feeds, robots.txt and plain text, as captures."""

from __future__ import annotations

import gzip

import pytest

from recrawl.config.model import Parse
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.tables.vocabulary import LinkKind, ParseOutcome

SITEMAP = b"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">
  <url><loc> http://e.example/a?x=1&amp;y=2 </loc><lastmod>2026-01-01</lastmod><priority>0.8</priority>
    <image:image><image:loc>http://e.example/a.png</image:loc></image:image>
    <xhtml:link rel="alternate" hreflang="de" href="http://e.example/de/a"/></url>
  <url><loc>http://e.example/b</loc></url>
</urlset>"""


def parsed(body: bytes, content_type: str | None, url: str = "http://e.example/x") -> ParsedPage:
    return parse_capture(Capture(url, content_type, body, None, 0, "recrawl", True), Parse())


def links_of(page: ParsedPage) -> list[tuple[LinkKind, str]]:
    return [(link.kind, link.url) for link in page.links]


SITEMAP_LINKS = [
    (LinkKind.SITEMAP, "http://e.example/a?x=1&y=2"),
    (LinkKind.HREFLANG, "http://e.example/de/a"),
    (LinkKind.SITEMAP, "http://e.example/b"),
]


@pytest.mark.parametrize("content_type", ["application/xml", "text/xml; charset=utf-8", "text/html", None])
def test_sitemap(content_type: str | None) -> None:
    page = parsed(SITEMAP, content_type)
    assert (page.handler, page.parse_outcome) == ("sitemap", ParseOutcome.OK)
    assert links_of(page) == SITEMAP_LINKS


def test_what_a_sitemap_states_goes_with_its_entry() -> None:
    body = b"""<urlset><url><priority>0.3</priority><lastmod> 2026-02-03T04:05:06Z </lastmod><loc>/first</loc></url>
    <url><loc>/second</loc><priority>7</priority></url><url><lastmod>2026-01-01</lastmod></url>
    <url><loc>/third</loc></url></urlset>"""
    stated = [(link.raw, link.lastmod, link.priority) for link in parsed(body, "text/xml").links]
    assert stated == [("/first", "2026-02-03T04:05:06Z", 0.3), ("/second", "", None), ("/third", "", None)]
    first = parsed(SITEMAP, "text/xml").links[0]
    assert (first.lastmod, first.priority) == ("2026-01-01", 0.8)
    [part] = parsed(
        b"<sitemapindex><sitemap><loc>/s</loc><lastmod>2026-05-05</lastmod></sitemap></sitemapindex>", None
    ).links
    assert (part.kind, part.lastmod) == (LinkKind.SITEMAP, "2026-05-05")


def test_packed_sitemap_whole_and_cut() -> None:
    whole = parsed(gzip.compress(SITEMAP), "application/x-gzip", "http://e.example/sitemap.xml.gz")
    assert links_of(whole) == SITEMAP_LINKS
    entries = b"".join(b"<url><loc>http://e.example/%d</loc></url>" % (n * n * 7919) for n in range(2000))
    cut = parsed(gzip.compress(b"<?xml version='1.0'?><urlset>" + entries)[:-4000], "application/gzip")
    assert cut.parse_outcome is ParseOutcome.PARTIAL
    assert 100 < len(cut.links) < 2000


def test_sitemap_index() -> None:
    page = parsed(b"<sitemapindex><sitemap><loc>http://e.example/s1.xml</loc></sitemap></sitemapindex>", "text/xml")
    assert links_of(page) == [(LinkKind.SITEMAP, "http://e.example/s1.xml")]


def test_broken_sitemap_gives_what_can_be_had() -> None:
    page = parsed(b"\n" + SITEMAP.replace(b"&amp;", b"&").replace(b"</urlset>", b"<url>"), "application/xml")
    assert page.parse_outcome is ParseOutcome.PARTIAL
    assert page.detail.startswith("XML: ")
    assert (LinkKind.SITEMAP, "http://e.example/b") in links_of(page)


def test_rss() -> None:
    page = parsed(
        b"""<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>The &lt;feed&gt;</title>
        <link>http://e.example/</link><atom:link rel="self" href="http://e.example/rss"/>
        <item><title> One  </title><link>/1</link></item>
        <item><guid>http://e.example/2</guid><description>d</description></item>
        <item><guid isPermaLink="false">tag:3</guid></item></channel></rss>""",
        "application/rss+xml",
    )
    assert (page.handler, page.title) == ("feed", "The <feed>")
    assert links_of(page) == [
        (LinkKind.LINK, "http://e.example/"),
        (LinkKind.FEED, "http://e.example/1"),
        (LinkKind.FEED, "http://e.example/2"),
    ]
    assert page.links[1].anchor_text == "One"


def test_atom_with_base_and_paging() -> None:
    page = parsed(
        b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" xml:base="/blog/"><title>T</title>
        <link rel="next" href="?page=2"/><entry><title>E</title><link rel="edit" href="e"/><link href="p"/></entry>
        </feed>""",
        "application/atom+xml",
    )
    assert links_of(page) == [
        (LinkKind.LINK, "http://e.example/blog/?page=2"),
        (LinkKind.FEED, "http://e.example/blog/p"),
    ]


def test_what_a_feed_states() -> None:
    page = parsed(
        b"""<rss version="2.0"><channel><title>T</title><language>de-AT</language><description>On  ships</description>
        <managingEditor>Ann</managingEditor><item><link>http://e.example/1</link>
        <title>A &lt;b&gt;bold&lt;/b&gt; one</title>
        <pubDate>Mon, 06 May 2024 10:00:00 GMT</pubDate></item></channel></rss>""",
        "text/xml",
    )
    assert (page.handler, page.language, page.author) == ("feed", "de", "Ann")
    assert page.metadata == {"description": "On ships"}
    [link] = page.links
    assert (link.anchor_text, link.lastmod) == ("A bold one", "Mon, 06 May 2024 10:00:00 GMT")


def test_a_broken_feed_gives_what_can_be_had() -> None:
    page = parsed(b"<rss><channel><title>A & B</title><item><link>http://e.example/1</link></item><item>", "text/xml")
    assert page.parse_outcome is ParseOutcome.PARTIAL
    assert page.detail.startswith("XML: ")
    assert links_of(page) == [(LinkKind.FEED, "http://e.example/1")]


def test_a_feed_whose_text_is_an_address_is_not_asked_for() -> None:
    page = parsed(b"http://127.0.0.1:9/feed", "application/rss+xml")
    assert page.links == []


def test_rss_in_the_headers_encoding() -> None:
    body = "<rss><channel><title>Новости</title></channel></rss>".encode("windows-1251")
    page = parsed(body, "text/xml; charset=windows-1251")
    assert (page.title, page.charset) == ("Новости", "windows-1251")


def test_entities_are_not_expanded() -> None:
    bomb = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
    page = parsed(bomb + b"<urlset><url><loc>http://e.example/&a;&f;</loc></url></urlset>", "text/xml")
    assert all("aaaa" not in link.raw and "root" not in link.raw for link in page.links)


def test_other_xml_is_unsupported_and_xhtml_is_html() -> None:
    assert parsed(b"<?xml version='1.0'?><data/>", "text/xml").parse_outcome is ParseOutcome.UNSUPPORTED
    page = parsed(
        b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><a href='/y'>y</a></html>", "text/xml"
    )
    assert (page.handler, links_of(page)) == ("html", [(LinkKind.A, "http://e.example/y")])


def test_robots_txt() -> None:
    body = b"\xef\xbb\xbfUser-agent: *\nSITEMAP : http://e.example/s.xml # main\nDisallow: /\nSitemap: /rel.xml\n"
    page = parsed(body, "text/plain", "http://e.example/robots.txt")
    assert page.handler == "robots"
    assert links_of(page) == [
        (LinkKind.SITEMAP, "http://e.example/s.xml"),
        (LinkKind.SITEMAP, "http://e.example/rel.xml"),
    ]


def test_plain_text() -> None:
    page = parsed(b"See (http://e.example/a_(b)), https://f.example/c. Not ftp: x.", "text/plain")
    assert links_of(page) == [(LinkKind.TEXT, "http://e.example/a_(b)"), (LinkKind.TEXT, "https://f.example/c")]
    assert page.text is not None and page.text.startswith("See")
