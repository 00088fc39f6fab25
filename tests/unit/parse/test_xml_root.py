"""The root element that says what an XML document is."""

from __future__ import annotations

import pytest

from recrawl.parse.xml_root import root_name


@pytest.mark.parametrize(
    ("body", "root"),
    [
        (b"<urlset>", "urlset"),
        (
            b"\xef\xbb\xbf \n<?xml version='1.0'?>\n<!-- <rss> --><?xml-stylesheet href='x'?><sitemapindex x='1'>",
            "sitemapindex",
        ),
        (b"<!DOCTYPE rss [<!ENTITY a 'x'>]><rss version='2.0'>", "rss"),
        (b"<!doctype html PUBLIC '-//W3C//DTD XHTML 1.0//EN' 'http://x/'><html>", "html"),
        (b"<rdf:RDF xmlns:rdf='x'>", "RDF"),
        (b"<s:urlset xmlns:s='x'/>", "urlset"),
        ("\ufeff<?xml version='1.0' encoding='UTF-16'?><feed>".encode("utf-16-le"), "feed"),
        (b"junk before <rss>", "rss"),
        (b"<?xml version='1.0'?>", None),
        (b"<!-- <rss>", None),
        (b"", None),
        (b"<" * 100_000, None),
        (b" " * 100_000 + b"<rss>", None),
        (b"<!DOCTYPE " * 10_000, None),
        (b"<!--" * 20_000, None),
    ],
)
def test_root_name(body: bytes, root: str | None) -> None:
    assert root_name(body) == root
