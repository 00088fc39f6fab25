"""Content handlers by media type, and the one way to parse a capture.

A handler fills a `ParsedPage` from a `Document`. Those of this package are built in; others are
found by the entry-point group `recrawl.handlers`, each an object with the attributes of
`Handler`, and win over the built-in ones for the types that they name.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from urllib.parse import urlsplit

from recrawl.config.model import Parse
from recrawl.errors import ConfigurationError
from recrawl.mime import is_xml, sniff
from recrawl.parse import charset, html, links, markup, plain
from recrawl.parse import text as texts
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.encodings import decode
from recrawl.parse.limits import OutOfTime, in_child, time_limit
from recrawl.parse.metadata import author_and_date
from recrawl.parse.nesting import flattened
from recrawl.tables.vocabulary import LinkKind, ParseOutcome

#: Raised whenever the same capture would give other rows.
PARSER_VERSION: int = 1

ENTRY_POINT_GROUP = "recrawl.handlers"

#: Documents larger than this, or with more tags, are parsed in a child that can be killed: below,
#: the worst loops known in the libraries end within seconds.
CHILD_BYTES = 256 << 10
CHILD_TAGS = 4_000

_GZIP_TYPES = frozenset({"application/gzip", "application/x-gzip"})


@dataclass(frozen=True)
class Document:
    """What a handler reads.

    Attributes:
        capture: the capture; its body may be packed or larger than `body`.
        body: the bytes to parse: unpacked, and cut at the size limit.
        media_type: what the body shows.
        settings: the section `parse` of the configuration.
    """

    capture: Capture
    body: bytes
    media_type: str
    settings: Parse


@dataclass(frozen=True)
class Handler:
    """How documents of some media types are parsed.

    Attributes:
        name: stored with each page.
        media_types: `type/subtype` in lower case.
        parse: fills the page; sets `parse_outcome` and `detail` where not all went well. What it
            raises becomes the outcome FAILED, and what it filled in before is kept.
        max_bytes: bytes parsed instead of `parse.max_parse_bytes`; None: that.
    """

    name: str
    media_types: frozenset[str]
    parse: Callable[[Document, ParsedPage], None]
    max_bytes: int | None = None


def parse_capture(capture: Capture, settings: Parse) -> ParsedPage:
    """What a capture says. Never raises, whatever the body and the headers are.

    Raises:
        ConfigurationError: an installed handler can't be loaded.
    """
    page = ParsedPage()
    body = capture.body
    if not body:
        _add_header_directives(capture, page)
        page.parse_outcome = ParseOutcome.EMPTY
        return page
    page.mime_sniffed = sniff(capture.content_type, body)
    if page.mime_sniffed in _GZIP_TYPES:
        body = _unpacked(body, max(settings.max_parse_bytes, markup.MAX_SITEMAP_BYTES))
        page.mime_sniffed = sniff(None, body) if body else page.mime_sniffed
    handler = handler_for(page.mime_sniffed, capture.url, body)
    if handler is None:
        _add_header_directives(capture, page)
        page.parse_outcome = ParseOutcome.UNSUPPORTED
        page.detail = f"no handler for {page.mime_sniffed}"
        return page
    page.handler = handler.name
    limit = max(handler.max_bytes or 0, settings.max_parse_bytes)
    document = Document(capture, body[:limit], page.mime_sniffed, settings)
    page = _guarded(handler, document, page)
    if len(body) > limit and page.parse_outcome is ParseOutcome.OK:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = f"cut at {limit} bytes"
    return page


def _guarded(handler: Handler, document: Document, page: ParsedPage) -> ParsedPage:
    """Run a handler within the limits of time and memory."""
    body = document.body
    if len(body) <= CHILD_BYTES and body.count(b"<") <= CHILD_TAGS:
        return _run(handler, document, page)
    seconds = document.settings.timeout_seconds
    try:
        parsed = in_child(lambda: _run(handler, document, page), seconds)
    except OSError as error:
        page.parse_outcome = ParseOutcome.FAILED
        page.detail = f"no child process: {error.strerror}"
        return page
    if parsed is None:
        _add_header_directives(document.capture, page)
        page.parse_outcome = ParseOutcome.TIMEOUT
        page.detail = f"killed at its limit of {seconds:g} s or of memory"
        return page
    return parsed


def _run(handler: Handler, document: Document, page: ParsedPage) -> ParsedPage:
    seconds = document.settings.timeout_seconds
    try:
        _add_header_directives(document.capture, page)
        with time_limit(seconds):
            handler.parse(document, page)
    except OutOfTime:
        page.parse_outcome = ParseOutcome.TIMEOUT
        page.detail = f"cut off after {seconds:g} s"
    except Exception as error:  # a handler's fault is that page's outcome, never the task's
        page.parse_outcome = ParseOutcome.FAILED
        page.detail = f"{type(error).__name__}: {error}"[:500]
    return _storable(page)


def _add_header_directives(capture: Capture, page: ParsedPage) -> None:
    directives = html.robots_directives(None, capture.agent, capture.x_robots_tag)
    page.noindex |= directives.noindex
    page.nofollow |= directives.nofollow


def _storable(page: ParsedPage) -> ParsedPage:
    """Texts that can be written as UTF-8: escapes in scripts may name lone surrogates."""
    for name in ("title", "author", "published_at_text", "text", "detail"):
        value = getattr(page, name)
        if value is not None and not value.isascii():
            setattr(page, name, value.encode("utf-8", "replace").decode("utf-8"))
    return page


def _unpacked(body: bytes, limit: int) -> bytes:
    """A gzip body unpacked, up to `limit` bytes and as far as it is sound."""
    unpacker = zlib.decompressobj(wbits=31)
    unpacked = b""
    try:
        unpacked = unpacker.decompress(body, limit)
    except zlib.error:
        # Half a sitemap is better than none: feed it piecewise up to the fault.
        unpacker = zlib.decompressobj(wbits=31)
        pieces: list[bytes] = []
        size = 0
        for at in range(0, len(body), 4096):
            try:
                pieces.append(unpacker.decompress(body[at : at + 4096], limit - size))
            except zlib.error:
                break
            size += len(pieces[-1])
            if size >= limit:
                break
        unpacked = b"".join(pieces)
    return unpacked


def handler_for(media_type: str, url: str, body: bytes) -> Handler | None:
    """The handler of a document; None when there is none for its type."""
    registered = registry()
    if media_type == "text/plain" and urlsplit(url).path == "/robots.txt":
        return ROBOTS
    handler = registered.get(media_type)
    if handler is None and is_xml(media_type):
        handler = registered["application/xml"]
    if handler is LISTING and not markup.is_listing(root := markup.root_name(body)):
        return registered["text/html"] if root == "html" else None
    return handler


@cache
def registry() -> dict[str, Handler]:
    """Every handler by media type, loaded once a process.

    Raises:
        ConfigurationError: an installed handler can't be loaded.
    """
    found = {media_type: handler for handler in BUILT_IN for media_type in handler.media_types}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            handler = entry.load()
            found.update({media_type: handler for media_type in handler.media_types})
        except Exception as error:
            raise ConfigurationError(
                f"The content handler {entry.name!r} ({entry.value}) can't be loaded: {error}.",
                "Mend or uninstall the package that brings it.",
            ) from error
    return found


def _parse_html(document: Document, page: ParsedPage) -> None:
    capture = document.capture
    page.charset = charset.detect(document.body, capture.content_type)
    source, flattened_count = flattened(decode(document.body, page.charset))
    if flattened_count:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = f"{flattened_count} elements nested too deep were flattened"
    tree = html.parse_html(source)
    # The cheap and important first: what a time limit cuts off is the text.
    directives = html.robots_directives(tree, capture.agent, capture.x_robots_tag)
    page.noindex, page.nofollow = directives
    page.title = html.title_of(tree)
    page.links = links.found_links(tree, capture.url, encoding=page.charset)
    page.links += links.header_links(capture.link_headers, capture.url)
    page.canonical = links.canonical_of(page.links)
    if not capture.want_text:
        return
    page.author, page.published_at_text = author_and_date(tree)
    declared_language = html.language_of(tree)
    del tree
    anchors = sum(len(link.anchor_text) for link in page.links if link.kind is LinkKind.A)
    _add_text(page, texts.main_text(source, document.settings.text_extractor), anchors, declared_language)


def _add_text(page: ParsedPage, text: str | None, anchor_characters: int, declared_language: str | None) -> None:
    page.language = declared_language
    if text is None:
        return
    page.text = text
    page.text_checksum = texts.text_checksum(text)
    page.quality = texts.quality(text, anchor_characters)
    page.language = texts.language_of_text(text) or declared_language


def _parse_listing(document: Document, page: ParsedPage) -> None:
    markup.parse_listing(document.capture.url, document.capture.content_type, document.body, page)


def _parse_text(document: Document, page: ParsedPage) -> None:
    capture = document.capture
    page.charset = charset.detect_text(document.body, capture.content_type)
    text = decode(document.body, page.charset)
    page.links = plain.text_links(text)
    page.links += links.header_links(capture.link_headers, capture.url)
    page.canonical = links.canonical_of(page.links)
    if capture.want_text and document.settings.text_extractor != "none":
        _add_text(page, text.strip() or None, 0, None)


def _parse_robots(document: Document, page: ParsedPage) -> None:
    page.charset = "utf-8"
    page.links = plain.robots_sitemaps(decode(document.body, "utf-8"), document.capture.url)


ROBOTS = Handler("robots", frozenset(), _parse_robots)
LISTING = Handler(
    "sitemap",
    frozenset({"application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml"}),
    _parse_listing,
    max_bytes=markup.MAX_SITEMAP_BYTES,
)
BUILT_IN: tuple[Handler, ...] = (
    Handler("html", frozenset({"text/html", "application/xhtml+xml"}), _parse_html),
    LISTING,
    Handler("text", frozenset({"text/plain"}), _parse_text),
)
