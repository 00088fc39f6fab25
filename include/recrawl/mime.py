"""The media type that a body shows, after the WHATWG MIME Sniffing standard.

Two things differ from a browser on purpose, because a crawler renders nothing and headers lie:
a body that begins with the signature of a binary format is that format whatever a text type
claims, and a body that begins as HTML is HTML whatever a binary type claims.
"""

from __future__ import annotations

import re

#: Bytes of a body that the standard looks at.
SNIFF_BYTES = 1445

UNKNOWN_TYPE = "application/octet-stream"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNDECLARED = frozenset(
    {"unknown/unknown", "application/unknown", "*/*", UNKNOWN_TYPE, "binary/octet-stream", "application/binary"}
)

#: MIME Sniffing, section 7.1: a tag is followed by a space or `>`.
_HTML = re.compile(
    rb"[\t\n\x0c\r ]*(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)"
    rb"[ \t\n\x0c\r/>])",
    re.IGNORECASE,
)
_HTML_DOCUMENT = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*+(?:<\?xml[^>]*>)?(?:[\t\n\x0c\r ]++|<!--.*?-->)*+"
    rb"<(?:!doctype html|html)[ \t\n\x0c\r>]",
    re.IGNORECASE | re.DOTALL,
)
_XML = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<\?xml[ \t\n\r]")
_BINARY_BYTE = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_TEXT_BOM = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")

#: MIME Sniffing, section 7.1 to 7.3 and 6: signatures at the start of a body.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"BM", "image/bmp"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"OggS\x00", "application/ogg"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"ID3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x7fELF", "application/x-elf"),
)
#: Signatures short enough to begin a text by chance.
_WEAK_SIGNATURES = frozenset({b"BM", b"ID3", b"wOFF", b"wOF2"})
_RIFF = {b"WEBPVP": "image/webp", b"AVI ": "video/avi", b"WAVE": "audio/wave"}


def essence(content_type: str | None) -> str | None:
    """`type/subtype` of a Content-Type header, in lower case; None when it has none."""
    if not content_type:
        return None
    match = _TOKEN.match(content_type.strip())
    return match.group().lower() if match else None


def is_xml(media_type: str) -> bool:
    """Whether a media type is an XML type (MIME Sniffing, section 4.6)."""
    return media_type.endswith("+xml") or media_type in ("text/xml", "application/xml")


def sniff(content_type: str | None, head: bytes) -> str:
    """The media type of a body.

    Args:
        content_type: the Content-Type header, if there was one.
        head: the body, or at least its first `SNIFF_BYTES` bytes.

    Returns:
        `type/subtype` in lower case. Without any clue text/plain or application/octet-stream.
    """
    head = head[:SNIFF_BYTES]
    declared = essence(content_type)
    if declared is None or declared in _UNDECLARED:
        return _sniff_unknown(head)
    signature = _signature(head)
    if declared == "text/html" or declared == "application/xhtml+xml" or is_xml(declared):
        return signature or _markup(declared, head)
    if declared == "text/plain":
        return signature or ("text/plain" if _looks_like_text(head) else UNKNOWN_TYPE)
    if declared.startswith("text/"):
        return signature or declared
    if _HTML_DOCUMENT.match(head):
        return "text/html"
    if declared.startswith(("image/", "audio/", "video/")):
        return signature or declared
    return declared


def _markup(declared: str, head: bytes) -> str:
    """The type of a body that was declared HTML or XML."""
    feed = _feed(head)
    if feed is not None:
        return feed
    if declared == "text/html":
        return "text/xml" if _XML.match(head) and _sitemap(head) else declared
    if declared != "application/xhtml+xml" and _HTML_DOCUMENT.match(head):
        return "application/xhtml+xml" if b"http://www.w3.org/1999/xhtml" in head else "text/html"
    return declared


def _sitemap(head: bytes) -> bool:
    return b"<urlset" in head or b"<sitemapindex" in head


def _sniff_unknown(head: bytes) -> str:
    """MIME Sniffing, section 7.1: nothing useful was declared."""
    if _HTML_DOCUMENT.match(head):
        return "text/html"
    if _XML.match(head):
        return _feed(head) or "text/xml"
    if _HTML.match(head):
        return "text/html"
    signature = _signature(head)
    if signature is not None:
        return signature
    if _feed(head) is not None or _sitemap(head[:256]):
        return _feed(head) or "text/xml"
    return "text/plain" if _looks_like_text(head) else UNKNOWN_TYPE


def _looks_like_text(head: bytes) -> bool:
    """MIME Sniffing, section 7.2: a byte order mark, or no binary data byte."""
    return head.startswith(_TEXT_BOM) or _BINARY_BYTE.search(head) is None


def _signature(head: bytes) -> str | None:
    for signature, media_type in _SIGNATURES:
        if head.startswith(signature):
            if signature in _WEAK_SIGNATURES and _looks_like_text(head):
                return None
            return media_type
    if head.startswith(b"RIFF"):
        return next((kind for mark, kind in _RIFF.items() if head.startswith(mark, 8)), None)
    if head[4:8] == b"ftyp" and b"mp4" in head[8:64]:
        return "video/mp4"
    return None


def _feed(head: bytes) -> str | None:
    """MIME Sniffing, section 7.3: the feed that a document's root element opens, if it does."""
    at = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    while True:
        at = head.find(b"<", at)
        if at < 0:
            return None
        if head.startswith(b"<!--", at):
            at = head.find(b"-->", at + 4)
        elif head.startswith((b"<!", b"<?"), at):
            at = head.find(b">", at)
        elif head.startswith(b"<rss", at):
            return "application/rss+xml"
        elif head.startswith(b"<feed", at):
            return "application/atom+xml"
        elif head.startswith(b"<rdf:RDF", at):
            is_rss = b"http://purl.org/rss/1.0/" in head and b"http://www.w3.org/1999/02/22-rdf-syntax-ns#" in head
            return "application/rss+xml" if is_rss else None
        else:
            return None
        if at < 0:
            return None
