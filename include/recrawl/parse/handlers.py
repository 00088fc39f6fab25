"""Content handlers by media type, and the one way to parse a capture.

A handler fills a `ParsedPage` from a `Document`; see `recrawl.parse.documents`. Those of this
package are named by `BUILT_IN`; others are found by the entry-point group `recrawl.handlers` and
win over the built-in ones for the types that they name.
"""

from __future__ import annotations

import pkgutil
import zlib
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from urllib.parse import urlsplit

from recrawl.config.model import Parse
from recrawl.errors import ConfigurationError
from recrawl.mime import is_xml, sniff
from recrawl.parse import feed, html, links, plain, sitemap
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.documents import ENTRY_POINT_GROUP, Document, Handler
from recrawl.parse.limits import Killed, OutOfTime, in_child, time_limit
from recrawl.parse.xml_root import FEED_ROOTS, SITEMAP_ROOTS, root_name
from recrawl.tables.vocabulary import ParseOutcome

__all__ = ["ENTRY_POINT_GROUP", "PARSER_VERSION", "Document", "Handler", "parse_capture"]

#: Raised whenever the same capture would give other rows.
PARSER_VERSION: int = 3

#: The handlers of this package. The project declares the same as entry points, but does not depend
#: on them: a checkout that is not installed has none.
BUILT_IN = {
    "html": "recrawl.parse.webpage:HANDLER",
    "sitemap": "recrawl.parse.sitemap:HANDLER",
    "feed": "recrawl.parse.feed:HANDLER",
    "text": "recrawl.parse.plain:HANDLER",
    "pdf": "recrawl.parse.pdf:HANDLER",
    "image": "recrawl.parse.image:HANDLER",
    "media": "recrawl.parse.media:HANDLER",
}

#: Documents larger than this, or with more tags, are parsed in a child that can be killed: below,
#: the worst loops known in the libraries end within seconds.
CHILD_BYTES = 256 << 10
CHILD_TAGS = 4_000

_GZIP_TYPES = frozenset({"application/gzip", "application/x-gzip"})


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
        body = _unpacked(body, max(settings.max_parse_bytes, sitemap.MAX_SITEMAP_BYTES))
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
    if not handler.isolated and len(body) <= CHILD_BYTES and body.count(b"<") <= CHILD_TAGS:
        return _run(handler, document, page)
    settings = document.settings
    try:
        if handler.prepare is not None:
            handler.prepare(document)
        parsed = in_child(
            lambda: _run(handler, document, page), settings.timeout_seconds, settings.max_memory_mib << 20
        )
    except OSError as error:
        page.parse_outcome = ParseOutcome.FAILED
        page.detail = f"no child process: {error.strerror}"
        return page
    except ImportError as error:
        page.parse_outcome = ParseOutcome.FAILED
        page.detail = f"{type(error).__name__}: {error}"[:500]
        return page
    if isinstance(parsed, Killed):
        _add_header_directives(document.capture, page)
        page.parse_outcome = ParseOutcome.TIMEOUT if parsed is Killed.LATE else ParseOutcome.FAILED
        page.detail = (
            f"killed at its limit of {settings.timeout_seconds:g} s"
            if parsed is Killed.LATE
            else f"its process died; its limit is {settings.max_memory_mib:,} MiB of memory"
        )
        return page
    return parsed


def _run(handler: Handler, document: Document, page: ParsedPage) -> ParsedPage:
    settings = document.settings
    try:
        _add_header_directives(document.capture, page)
        with time_limit(settings.timeout_seconds):
            handler.parse(document, page)
    except OutOfTime:
        page.parse_outcome = ParseOutcome.TIMEOUT
        page.detail = f"cut off after {settings.timeout_seconds:g} s"
    except MemoryError:
        page.parse_outcome = ParseOutcome.FAILED
        page.detail = f"no memory left; its limit is {settings.max_memory_mib:,} MiB"
    except Exception as error:  # a handler's fault is that page's outcome, never the task's
        page.parse_outcome = ParseOutcome.FAILED
        page.detail = f"{type(error).__name__}: {error}"[:500]
    if page.parse_outcome is not ParseOutcome.REFUSED:
        page.links += links.header_links(document.capture.link_headers, document.capture.url)
        page.canonical = page.canonical or links.canonical_of(page.links)
    return _storable(page)


def _add_header_directives(capture: Capture, page: ParsedPage) -> None:
    directives = html.robots_directives(None, capture.agent, capture.x_robots_tag)
    page.noindex |= directives.noindex
    page.nofollow |= directives.nofollow
    page.noarchive |= directives.noarchive


def _storable(page: ParsedPage) -> ParsedPage:
    """Texts that can be written as UTF-8: escapes in scripts may name lone surrogates."""
    for name in ("title", "author", "published_at_text", "text", "detail"):
        value = getattr(page, name)
        if value is not None and not value.isascii():
            setattr(page, name, _utf8(value))
    page.watched = [_utf8(match) for match in page.watched]
    page.metadata = {_utf8(name): _utf8(value) for name, value in page.metadata.items()}
    return page


def _utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


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
        return plain.ROBOTS
    handler = registered.get(media_type)
    if handler is None and is_xml(media_type):
        handler = registered["application/xml"]
    if handler is not sitemap.HANDLER and handler is not feed.HANDLER:
        return handler
    # What an XML document is, its root element knows better than its type.
    root = root_name(body)
    if root in SITEMAP_ROOTS:
        return registered["application/xml"]
    if root in FEED_ROOTS:
        return registered["application/rss+xml"]
    return registered["text/html"] if root == "html" else None


@cache
def registry() -> dict[str, Handler]:
    """Every handler by media type, loaded once a process.

    Raises:
        ConfigurationError: an installed handler can't be loaded.
    """
    found: dict[str, Handler] = {}
    for reference in BUILT_IN.values():
        built_in: Handler = pkgutil.resolve_name(reference)
        if built_in.requires is not None and find_spec(built_in.requires) is None:
            continue
        found.update({media_type: built_in for media_type in built_in.media_types})
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.value in BUILT_IN.values():
            continue
        try:
            handler = entry.load()
            found.update({media_type: handler for media_type in handler.media_types})
        except Exception as error:
            raise ConfigurationError(
                f"The content handler {entry.name!r} ({entry.value}) can't be loaded: {error}.",
                "Mend or uninstall the package that brings it.",
            ) from error
    return found
