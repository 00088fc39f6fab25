"""RSS and Atom feeds, through feedparser, which reads broken ones too."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from recrawl.parse.capture import (
    MAX_ANCHOR_CHARACTERS,
    MAX_STATED_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    FoundLink,
    ParsedPage,
)
from recrawl.parse.charset import xml_charset
from recrawl.parse.documents import Document, Handler
from recrawl.parse.encodings import codec_of
from recrawl.parse.html import collapsed
from recrawl.tables.vocabulary import LinkKind, ParseOutcome
from recrawl.urls.canonical import parse

#: Relations of a feed's own links that lead to other pages (RFC 4287, 5005).
_FEED_RELS = frozenset({"alternate", "next", "previous", "prev", "first", "last", "next-archive", "prev-archive"})
#: What feedparser notes about feeds that are sound: the header and the declaration differ.
_HARMLESS = frozenset({"CharacterEncodingOverride", "NonXMLContentType"})
_TAG = re.compile(r"<[^<>]*>")


def parse_feed(document: Document, page: ParsedPage) -> None:
    """Fill `page` from a feed; a malformed one gives what could be read, as PARTIAL."""
    import feedparser  # a tenth of a second, and few rounds hold feeds

    capture = document.capture
    # A stream, because feedparser takes a text for an address or a file's name where it looks so.
    page.charset = xml_charset(document.body, capture.content_type)
    content_type = f"application/xml; charset={codec_of(page.charset)}"
    headers = {"content-location": capture.url, "content-type": content_type}
    found: Any = feedparser.parse(
        BytesIO(document.body), response_headers=headers, resolve_relative_uris=False, sanitize_html=False
    )
    feed = found.feed
    page.title = _plain(feed, "title", MAX_TITLE_CHARACTERS)
    page.author = _plain(feed, "author", MAX_STATED_CHARACTERS)
    page.published_at_text = _stated(feed, "updated", "published")
    page.language = _language(feed)
    if description := _plain(feed, "subtitle", MAX_ANCHOR_CHARACTERS):
        page.metadata["description"] = description
    for link in feed.get("links", ()):
        rel = collapsed(link.get("rel") or "alternate").lower()
        if rel in _FEED_RELS:
            _add(page, capture.url, link.get("href"), LinkKind.LINK, rel, "", "")
    for entry in found.entries:
        _add_entry(entry, capture.url, page)
    if found.get("bozo") and type(found.bozo_exception).__name__ not in _HARMLESS:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = f"XML: {found.bozo_exception}"[:300]


def _add_entry(entry: Any, page_url: str, page: ParsedPage) -> None:
    """The page of a feed's entry: its alternate links, else a permanent guid."""
    title = _plain(entry, "title", MAX_ANCHOR_CHARACTERS) or ""
    stated = _stated(entry, "updated", "published") or ""
    targets = [
        link.get("href") for link in entry.get("links", ()) if (link.get("rel") or "alternate").lower() == "alternate"
    ]
    if not targets and str(entry.get("link", "")).startswith(("http://", "https://")):
        targets = [entry.link]
    for target in targets:
        _add(page, page_url, target, LinkKind.FEED, "", title, stated)


def _add(page: ParsedPage, base: str, raw: str | None, kind: LinkKind, rel: str, text: str, lastmod: str) -> None:
    raw = (raw or "").strip()
    if raw:
        page.links.append(FoundLink(parse(raw, base) or "", raw, kind, rel, text, lastmod))


def _plain(holder: Any, name: str, most: int) -> str | None:
    """A text construct without markup, white space collapsed."""
    value = holder.get(name)
    if not isinstance(value, str):
        return None
    detail = holder.get(f"{name}_detail") or {}
    if detail.get("type") in ("text/html", "application/xhtml+xml"):
        value = _TAG.sub(" ", value)
    return collapsed(value)[:most] or None


def _stated(holder: Any, *names: str) -> str | None:
    for name in names:
        # Asked for outright, a missing `updated` is answered with `published` and a warning.
        value = holder.get(name) if name in holder else None
        if isinstance(value, str) and value.strip():
            return collapsed(value)[:MAX_STATED_CHARACTERS]
    return None


def _language(feed: Any) -> str | None:
    primary = re.split(r"[-_]", str(feed.get("language") or "").strip().lower(), maxsplit=1)[0]
    return primary if len(primary) == 2 and primary.isascii() and primary.isalpha() else None


def prepare(document: Document) -> None:
    """Load the library once."""
    import feedparser  # noqa: F401


HANDLER = Handler(
    "feed",
    frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"}),
    parse_feed,
    isolated=False,
    prepare=prepare,
)
