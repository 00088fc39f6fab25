"""Sitemaps and sitemap indexes (sitemaps.org), as XML.

One pass of lxml in recovery mode, so that a broken file yields the entries before and after the
break; no entities, no DTDs, no network.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from recrawl.parse.capture import MAX_STATED_CHARACTERS, FoundLink, ParsedPage
from recrawl.parse.charset import bom_encoding, header_encoding, xml_charset
from recrawl.parse.documents import Document, Handler
from recrawl.tables.vocabulary import LinkKind, ParseOutcome
from recrawl.urls.canonical import parse

#: sitemaps.org: uncompressed size and entries of one sitemap.
MAX_SITEMAP_BYTES = 50 << 20
MAX_SITEMAP_URLS = 50_000

_ENTRIES = frozenset({"url", "sitemap"})
_OPTIONS = {
    "recover": True,
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}


def parse_sitemap(document: Document, page: ParsedPage) -> None:
    """Fill `page` from a sitemap; a malformed one gives what could be read, as PARTIAL."""
    body, content_type = document.body, document.capture.content_type
    page.charset = xml_charset(body, content_type)
    problem = _read(body, _Entries(document.capture.url, page), _override(body, content_type))
    if problem:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = problem


def _override(body: bytes, content_type: str | None) -> str | None:
    """The encoding that stands above the XML declaration: the header's (RFC 7303, section 3)."""
    encoding = None if bom_encoding(body) else header_encoding(content_type)
    return None if encoding in (None, "replacement", "x-user-defined") else encoding


class _Entries:
    """The entries of a sitemap, from its elements in the order in which they end."""

    def __init__(self, page_url: str, page: ParsedPage) -> None:
        self._page_url = page_url
        self._links = page.links
        self._stated: dict[str, str] = {}
        #: The entry's place among the links, -1 before its location is read.
        self._entry = -1

    @property
    def count(self) -> int:
        return len(self._links)

    def ended(self, element: Any) -> bool:
        """Take an element; True when an entry has ended and can be forgotten."""
        name = _local(element)
        if name in _ENTRIES:
            self._end_entry()
            return True
        if name == "link":
            if element.get("hreflang") and (element.get("rel") or "").lower() == "alternate":
                self._add(element.get("href"), LinkKind.HREFLANG, "alternate")
        # Image and video extensions have locations and dates of their own.
        elif name in ("loc", "lastmod", "priority") and _local(element.getparent()) in _ENTRIES:
            if name == "loc":
                added = self._add(element.text, LinkKind.SITEMAP, "")
                self._entry = len(self._links) - 1 if added else -1
            else:
                self._stated[name] = (element.text or "").strip()[:MAX_STATED_CHARACTERS]
        return False

    def _add(self, raw: str | None, kind: LinkKind, rel: str) -> bool:
        raw = (raw or "").strip()
        if raw:
            self._links.append(FoundLink(parse(raw, self._page_url) or "", raw, kind, rel, ""))
        return bool(raw)

    def _end_entry(self) -> None:
        if self._stated and self._entry >= 0:
            self._links[self._entry] = self._links[self._entry]._replace(
                lastmod=self._stated.get("lastmod", ""), priority=priority_of(self._stated.get("priority", ""))
            )
        self._stated = {}
        self._entry = -1


def priority_of(text: str) -> float | None:
    """A sitemap's priority, 0 to 1; None for what is none."""
    try:
        priority = float(text)
    except ValueError:
        return None
    return priority if 0.0 <= priority <= 1.0 else None


def _read(body: bytes, entries: _Entries, encoding: str | None) -> str:
    """Hand every element to `entries` at its end; the first problem of the file, or ""."""
    from lxml import etree  # type: ignore[import-untyped]

    # White space before an XML declaration is frequent, and fatal to the parser.
    source = BytesIO(body.lstrip())
    try:
        events = etree.iterparse(source, events=("end",), encoding=encoding, **_OPTIONS)
    except LookupError:
        events = etree.iterparse(source, events=("end",), **_OPTIONS)
    try:
        for _, element in events:
            if entries.ended(element):
                _forget(element)
            if entries.count > 2 * MAX_SITEMAP_URLS:
                return f"more than {2 * MAX_SITEMAP_URLS} links"
    except (etree.XMLSyntaxError, ValueError) as error:
        return f"XML: {str(error)[:200]}"
    log = events.error_log
    return f"XML: {log[0].message[:200]} (line {log[0].line})" if len(log) else ""


def _forget(element: Any) -> None:
    """Free an entry that has been read, and what stands before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _local(element: Any) -> str:
    if element is None or not isinstance(element.tag, str):
        return ""
    return str(element.tag).rpartition("}")[2]


HANDLER = Handler(
    "sitemap",
    frozenset({"application/xml", "text/xml"}),
    parse_sitemap,
    max_bytes=MAX_SITEMAP_BYTES,
    isolated=False,
)
