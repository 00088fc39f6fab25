"""XML that lists pages: sitemaps, sitemap indexes, RSS and Atom feeds.

One pass of lxml in recovery mode, so that a broken file yields the entries before and after the
break; no entities, no DTDs, no network.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

from lxml import etree  # type: ignore[import-untyped]

from recrawl.parse.capture import FoundLink, ParsedPage
from recrawl.parse.charset import bom_encoding, header_encoding, xml_encoding
from recrawl.parse.html import MAX_TITLE_CHARACTERS, collapsed
from recrawl.parse.links import MAX_ANCHOR_CHARACTERS
from recrawl.tables.vocabulary import LinkKind, ParseOutcome
from recrawl.urls.canonical import parse

#: sitemaps.org: uncompressed size and entries of one sitemap.
MAX_SITEMAP_BYTES = 50 << 20
MAX_SITEMAP_URLS = 50_000

_SITEMAP_ROOTS = frozenset({"urlset", "sitemapindex"})
_FEED_ROOTS = frozenset({"rss", "RDF", "feed"})
_ENTRIES = frozenset({"item", "entry"})
#: Relations of a feed's own links that lead to other pages (RFC 4287, 5005).
_FEED_RELS = frozenset({"", "alternate", "next", "previous", "prev", "first", "last", "next-archive", "prev-archive"})


def root_name(body: bytes) -> str | None:
    """The local name of a document's root element; None when there is none in its first 64 KiB."""
    parser = etree.XMLPullParser(events=("start",), **_OPTIONS)
    try:
        parser.feed(body[: 1 << 16].lstrip())
        for _, element in parser.read_events():
            return _local(element)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return None


def is_listing(root: str | None) -> bool:
    """Whether a root element is that of a sitemap or a feed."""
    return root in _SITEMAP_ROOTS or root in _FEED_ROOTS


def parse_listing(page_url: str, content_type: str | None, body: bytes, page: ParsedPage) -> None:
    """Fill `page` from a sitemap or feed; malformed ones give what could be read, as PARTIAL."""
    page.charset = bom_encoding(body) or header_encoding(content_type) or xml_encoding(body) or "utf-8"
    root = root_name(body)
    page.handler = "feed" if root in _FEED_ROOTS else "sitemap"
    collect = _feed_element if root in _FEED_ROOTS else _sitemap_element
    problem = _read(body, page_url, page, collect, _override(body, content_type))
    if problem:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = problem


_OPTIONS = {
    "recover": True,
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}

_Collect = Callable[[etree._Element, str, ParsedPage], bool]


def _override(body: bytes, content_type: str | None) -> str | None:
    """The encoding that stands above the XML declaration: the header's (RFC 7303, section 3)."""
    encoding = None if bom_encoding(body) else header_encoding(content_type)
    return None if encoding in (None, "replacement", "x-user-defined") else encoding


def _read(body: bytes, page_url: str, page: ParsedPage, collect: _Collect, encoding: str | None) -> str:
    """Hand every element to `collect` at its end; the first problem of the file, or ""."""
    # White space before an XML declaration is frequent, and fatal to the parser.
    source = BytesIO(body.lstrip())
    try:
        events = etree.iterparse(source, events=("end",), encoding=encoding, **_OPTIONS)
    except LookupError:
        events = etree.iterparse(source, events=("end",), **_OPTIONS)
    try:
        for _, element in events:
            if collect(element, page_url, page):
                _forget(element)
            if len(page.links) > 2 * MAX_SITEMAP_URLS:
                return f"more than {2 * MAX_SITEMAP_URLS} links"
    except (etree.XMLSyntaxError, ValueError) as error:
        return f"XML: {str(error)[:200]}"
    log = events.error_log
    return f"XML: {log[0].message[:200]} (line {log[0].line})" if len(log) else ""


def _forget(element: etree._Element) -> None:
    """Free an entry that has been read, and what stands before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _local(element: etree._Element | None) -> str:
    if element is None or not isinstance(element.tag, str):
        return ""
    return element.tag.rpartition("}")[2]


def _sitemap_element(element: etree._Element, page_url: str, page: ParsedPage) -> bool:
    name = _local(element)
    if name == "loc":
        # Image and video extensions have locations of their own.
        if _local(element.getparent()) in ("url", "sitemap"):
            _add(page, page_url, element.text, LinkKind.SITEMAP, "", "")
    elif name == "link" and element.get("hreflang") and (element.get("rel") or "").lower() == "alternate":
        _add(page, page_url, element.get("href"), LinkKind.HREFLANG, "alternate", "")
    return name in ("url", "sitemap")


def _feed_element(element: etree._Element, page_url: str, page: ParsedPage) -> bool:
    name = _local(element)
    if name in _ENTRIES:
        _add_entry(element, page_url, page)
        return True
    parent = element.getparent()
    if _local(parent) not in ("channel", "feed"):
        return False
    if name == "title" and page.title is None:
        page.title = collapsed(_text(element))[:MAX_TITLE_CHARACTERS] or None
    elif name == "link":
        rel = collapsed(element.get("rel") or "").lower()
        if element.get("href") is None:
            _add(page, page_url, element.text, LinkKind.LINK, "alternate", "")
        elif rel in _FEED_RELS:
            _add(page, _base(element, page_url), element.get("href"), LinkKind.LINK, rel or "alternate", "")
    return False


def _add_entry(entry: etree._Element, page_url: str, page: ParsedPage) -> None:
    """The page of a feed's entry: RSS link or permanent guid, Atom's alternate link."""
    title = ""
    guid: str | None = None
    added = False
    for child in entry:
        name = _local(child)
        if name == "title":
            title = title or collapsed(_text(child))[:MAX_ANCHOR_CHARACTERS]
        elif name == "guid" and (child.get("isPermaLink") or "true").lower() == "true":
            guid = child.text
    for child in entry:
        if _local(child) != "link" or (child.get("rel") or "alternate").lower() != "alternate":
            continue
        target = child.get("href")
        base = page_url if target is None else _base(child, page_url)
        added = _add(page, base, child.text if target is None else target, LinkKind.FEED, "", title) or added
    if not added and guid is not None and guid.strip().startswith(("http://", "https://")):
        _add(page, page_url, guid, LinkKind.FEED, "", title)


def _text(element: etree._Element) -> str:
    return "".join(text for text in element.itertext() if isinstance(text, str))


def _base(element: etree._Element, page_url: str) -> str:
    """The base of an Atom link: xml:base, resolved against the feed's own URL."""
    return parse(element.base or "", page_url) or page_url


def _add(page: ParsedPage, base: str, raw: str | None, kind: LinkKind, rel: str, text: str) -> bool:
    raw = (raw or "").strip()
    if raw:
        page.links.append(FoundLink(parse(raw, base) or "", raw, kind, rel, text))
    return bool(raw)
