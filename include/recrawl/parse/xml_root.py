"""The root element of an XML document, which says what kind of document it is."""

from __future__ import annotations

import re

from recrawl.parse.charset import bom_encoding

#: Bytes of a document in which its root element begins.
ROOT_BYTES = 1 << 16

SITEMAP_ROOTS = frozenset({"urlset", "sitemapindex"})
FEED_ROOTS = frozenset({"rss", "RDF", "feed"})

#: What may stand before the root: declarations, instructions, comments, a doctype with its subset.
_PROLOG = re.compile(r"\s*+(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*+(?:\[.*?\]\s*+)?+>)", re.DOTALL | re.IGNORECASE)
_START_TAG = re.compile(r"[^<]{0,1000}<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)")


def root_name(body: bytes) -> str | None:
    """The local name of a document's root element; None when none is found at its start."""
    head = body[:ROOT_BYTES]
    text = head.decode(bom_encoding(head) or "latin-1", "replace").lstrip("\ufeff")
    at = 0
    while match := _PROLOG.match(text, at):
        at = match.end()
    root = _START_TAG.match(text, at)
    return root[1] if root else None
