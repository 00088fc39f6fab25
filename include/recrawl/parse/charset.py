"""Which encoding a document is in.

In order: byte order mark, HTTP header, the HTML standard's prescan for a meta declaration, an
XML declaration, strict UTF-8, and last a guess by byte statistics. A document of ASCII alone
that declares nothing is windows-1252, the standard's default. A declaration of UTF-8 that most of
the letters contradict is passed over.
"""

from __future__ import annotations

import re

from resiliparse.parse.encoding import detect_encoding

from recrawl.parse.encodings import encoding_of

#: HTML, section 13.2.3.2: bytes that are searched for a declaration before parsing.
PRESCAN_BYTES = 1024
#: Bytes searched after that, as a browser's tree builder does while it parses ("changing the
#: encoding while parsing", HTML section 13.2.3.4).
LATE_META_BYTES = 16 * 1024
DEFAULT_ENCODING = "windows-1252"

_SPACE = b"\t\n\x0c\r "
_CHARSET_PARAMETER = re.compile(
    r";[\t\n\r ]*charset[\t\n\r ]*=[\t\n\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^;\s]*))", re.IGNORECASE
)
_META = re.compile(rb"<meta[\t\n\x0c\r /]", re.IGNORECASE)
_TAG = re.compile(rb"</?[a-zA-Z]")
_META_CHARSET = re.compile(rb"charset[\t\n\x0c\r ]*=[\t\n\x0c\r ]*", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*([\"'])([^\"'>]*)\1[^>]*>")
_RAW_TEXT = re.compile(
    rb"<!--.*?-->|<(script|style|noscript|template|textarea|title)\b.*?</\1", re.IGNORECASE | re.DOTALL
)


def detect(body: bytes, content_type: str | None) -> str:
    """The WHATWG name, in lower case, of the encoding that a body is to be decoded with."""
    return (
        bom_encoding(body)
        or _believed(header_encoding(content_type), body)
        or _believed(prescan(body[:PRESCAN_BYTES]), body)
        or _believed(xml_encoding(body), body)
        or _believed(_late_meta(body), body)
        or _guess(body)
    )


def detect_text(body: bytes, content_type: str | None) -> str:
    """As `detect`, for a body without markup: no declaration inside of it counts."""
    return bom_encoding(body) or _believed(header_encoding(content_type), body) or _guess(body)


def _believed(declared: str | None, body: bytes) -> str | None:
    """A declared encoding, unless it is UTF-8 and the body is plainly not.

    A browser would show the page's letters as U+FFFD then; its readers complain, ours can't. A few
    broken bytes in UTF-8 are no other encoding: more must be broken than sound.
    """
    if declared != "utf-8" or body.isascii():
        return declared
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
        broken = text.count("\ufffd")
        sound = sum(not character.isascii() for character in text) - broken
        return None if broken > sound else declared
    return declared


def bom_encoding(body: bytes) -> str | None:
    """The encoding that a byte order mark names (Encoding standard, section 6)."""
    if body.startswith(b"\xef\xbb\xbf"):
        return "utf-8"
    if body.startswith(b"\xfe\xff"):
        return "utf-16be"
    return "utf-16le" if body.startswith(b"\xff\xfe") else None


def header_encoding(content_type: str | None) -> str | None:
    """The encoding that a Content-Type header names; None when it names none that exists."""
    match = _CHARSET_PARAMETER.search(content_type or "")
    return encoding_of(next(filter(None, match.groups()), "")) if match else None


def xml_encoding(body: bytes) -> str | None:
    """The encoding of an XML declaration (HTML, "get an XML encoding")."""
    match = _XML_DECLARATION.match(body[:PRESCAN_BYTES])
    return _declared(match.group(2)) if match else None


def xml_charset(body: bytes, content_type: str | None) -> str:
    """The encoding of XML that is not HTML: mark, header, declaration, UTF-8 (RFC 7303, section 3)."""
    return bom_encoding(body) or header_encoding(content_type) or xml_encoding(body) or "utf-8"


def prescan(head: bytes) -> str | None:
    """HTML, section 13.2.3.2: prescan a byte stream to determine its encoding."""
    if head.startswith(b"<\x00?\x00x\x00"):
        return "utf-16le"
    if head.startswith(b"\x00<\x00?\x00x"):
        return "utf-16be"
    at = 0
    while (at := head.find(b"<", at)) >= 0:
        if head.startswith(b"<!--", at):
            end = head.find(b"-->", at + 2)
            if end < 0:
                return None
            at = end + 3
        elif _META.match(head, at):
            attributes, at = _attributes(head, at + 6)
            found = _encoding_of_meta(attributes)
            # A declaration cut by the end of what is scanned is none.
            if found is not None and at < len(head):
                return found
        elif match := _TAG.match(head, at):
            name_end = match.end()
            while name_end < len(head) and head[name_end] not in b"\t\n\x0c\r >":
                name_end += 1
            _, at = _attributes(head, name_end)
        elif head.startswith((b"<!", b"</", b"<?"), at):
            end = head.find(b">", at)
            if end < 0:
                return None
            at = end
        else:
            at += 1
    return None


def _declared(label: bytes) -> str | None:
    """What a declaration inside of the document means: it can't be in UTF-16 if it was readable."""
    encoding = encoding_of(label.decode("latin-1"))
    if encoding in ("utf-16le", "utf-16be"):
        return "utf-8"
    return DEFAULT_ENCODING if encoding == "x-user-defined" else encoding


def _encoding_of_meta(attributes: dict[bytes, bytes]) -> str | None:
    if b"charset" in attributes and (encoding := _declared(attributes[b"charset"])):
        return encoding
    if attributes.get(b"http-equiv") == b"content-type":
        return _content_encoding(attributes.get(b"content", b""))
    return None


def _content_encoding(content: bytes) -> str | None:
    """HTML, "extracting a character encoding from a meta element"."""
    match = _META_CHARSET.search(content)
    if match is None:
        return None
    rest = content[match.end() :]
    if rest[:1] in (b'"', b"'"):
        end = rest.find(rest[:1], 1)
        return _declared(rest[1:end]) if end > 0 else None
    return _declared(re.split(rb"[\t\n\x0c\r ;]", rest, maxsplit=1)[0])


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """The attributes of a tag from `at` on, first of each name, and where the tag ends.

    The end is `len(head)` when the tag is not closed in `head`.
    """
    found: dict[bytes, bytes] = {}
    while True:
        attribute = _attribute(head, at)
        if attribute is None:
            break
        name, value, at = attribute
        found.setdefault(name, value)
    while at < len(head) and head[at] in _SPACE + b"/":
        at += 1
    return found, at


def _attribute(head: bytes, at: int) -> tuple[bytes, bytes, int] | None:
    """HTML, "get an attribute": name and value in lower case and the place after them."""
    size = len(head)
    while at < size and head[at] in _SPACE + b"/":
        at += 1
    if at >= size or head[at : at + 1] == b">":
        return None
    start = at
    at += 1  # an equals sign that begins a name is part of it
    while at < size and head[at] not in _SPACE + b"/>=":
        at += 1
    name = head[start:at].lower()
    after_name = at
    while at < size and head[at] in _SPACE:
        at += 1
    if head[at : at + 1] != b"=":
        return (name, b"", after_name) if after_name < size else None
    at += 1
    while at < size and head[at] in _SPACE:
        at += 1
    quote = head[at : at + 1]
    if quote in (b'"', b"'") and quote:
        end = head.find(quote, at + 1)
        # No closing quote: the declaration was cut, and so the tag.
        return (name, head[at + 1 : end].lower(), end + 1) if end >= 0 else (name, b"", size)
    start = at
    while at < size and head[at] not in _SPACE + b">":
        at += 1
    return name, head[start:at].lower(), at


def _late_meta(body: bytes) -> str | None:
    """A meta declaration that stands behind the prescan's limit, outside of scripts and comments."""
    if len(body) <= PRESCAN_BYTES:
        return None
    head = body[:LATE_META_BYTES]
    return prescan(_RAW_TEXT.sub(b"", head)) if _META.search(head) else None


def _guess(body: bytes) -> str:
    if body.isascii():
        return "iso-2022-jp" if b"\x1b$" in body else DEFAULT_ENCODING
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A body cut at its size limit may end within a character.
        if error.end >= len(body) and error.start > 0 and error.reason == "unexpected end of data":
            return "utf-8"
    else:
        return "utf-8"
    guessed = encoding_of(detect_encoding(body, max_len=131_072) or "")
    # The guesser answers UTF-8 when it knows nothing; that was excluded above.
    return DEFAULT_ENCODING if guessed in (None, "utf-8", "replacement") else guessed
