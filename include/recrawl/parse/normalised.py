"""The normalised text of a document: what is left when what changes by itself is taken away.

Two captures of a page whose normalised texts are equal show the same content, though dates, counters,
tokens or advertisements differ; two URLs whose normalised texts are equal are duplicates.

Taken away are:

- elements that are no content of the page: scripts, styles, navigation, footers, asides, and those
  whose class or id says that they are advertisements, counters or clocks;
- dates, times, ages ("5 minutes ago"), durations, the year of a copyright notice;
- numbers beside a word that counts readers or reactions ("visitors online: 12", "1,204 views");
- tokens: words of 16 characters or more of letters and at least four digits, UUIDs, Unix times;
- white space and the case of ASCII letters.

Prices, versions and other numbers stay: they are content. So do the names of images' files, for a
gallery's pages have one text.

All of it works on UTF-8 bytes, and the patterns on lines with a digit alone: it is done for every page.
"""

from __future__ import annotations

import re

import xxhash
from selectolax.lexbor import LexborHTMLParser

from recrawl.parse.html import attribute

#: A shorter normalised text identifies nothing: the checksum of the body must do.
MIN_BYTES = 40

_NO_CONTENT = ["script", "style", "noscript", "template", "nav", "footer", "aside", "iframe", "svg", "select"]

#: Class words and ids of what changes at each look.
_VOLATILE_WORDS = (
    "ad", "ads", "adv", "advert", "advertisement", "advertising", "ad-slot", "ad-container", "ad-banner", "ad-wrapper",
    "adsbygoogle", "banner-ad", "sponsored", "sponsor", "counter", "hit-counter", "visitor-counter", "visitors",
    "clock", "timestamp", "last-updated", "page-generated",
)  # fmt: skip
_VOLATILE = ",".join(f".{word}" for word in _VOLATILE_WORDS) + ",#ad,#ads,#counter,#clock,#timestamp,#visitors"
_MONTHS = (
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember mrz okt dez "
    "janvier février fevrier mars avril juin juillet août aout septembre octobre novembre décembre decembre "
    "enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre"
)
_MONTH = b"(?:" + "|".join(sorted(_MONTHS.split(), key=len, reverse=True)).encode() + b")"
_ZONE = rb"(?:\s?(?:utc|gmt|z|[a-z]{1,4}t)\b|\s?[+-][0-9]{2}:?[0-9]{2}\b)?"
_SECONDS = rb"(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:\s?[ap]\.?m\b\.?)?"
_TIME = rb"[0-9]{1,2}:[0-9]{2}" + _SECONDS + _ZONE
_COUNTED = (
    rb"(?:views?|visitors?|visits?|hits?|readers?|reads|users? online|online|guests?|members? online|comments?|replies|"
    rb"likes?|shares?|followers?|downloads?|votes?|besucher|aufrufe|vues|visitas)"
)
_UNIT = rb"(?:seconds?|secs?|s|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?)"

#: What begins with a digit: the scan looks for digits alone.
_FROM_DIGIT = re.compile(
    rb"[0-9](?<![0-9a-z][0-9])(?:"
    rb"[0-9]{3}[-/.][0-9]{1,2}[-/.][0-9]{1,2}(?:[t\s,]{1,3}" + _TIME + rb")?"  # 2026-11-30T12:00:00Z
    rb"|[0-9]?(?:[-/.][0-9]{1,2}[-/.][0-9]{4}|/[0-9]{1,2}/[0-9]{2})\b(?:[t\s,]{1,3}" + _TIME + rb")?"  # 30.11.2026
    rb"|[0-9]?(?:st|[nr]d|th|\.)?\s(?:(?:of|de)\s)?" + _MONTH + rb"\b[.,]?(?:\s(?:de\s)?[0-9]{4}\b)?"
    rb"(?:[\s,]{1,3}(?:at\s)?" + _TIME + rb")?"  # 30 November 2026, 12:00
    rb"|[0-9]?:[0-9]{2}"
    + _SECONDS
    + _ZONE  # 12:00:30 am
    + rb"|[0-9]{3}\xe5\xb9\xb4[0-9]{1,2}\xe6\x9c\x88[0-9]{1,2}\xe6\x97\xa5"  # 2026年11月30日
    rb"|[0-9]*\s" + _UNIT + rb"\sago\b"  # 5 minutes ago
    rb"|[0-9]*[.,][0-9]+\s?(?:ms|s|secs?|seconds?|milliseconds?)\b"  # 0.123 s
    rb"|[0-9.,]*\s" + _COUNTED + rb"\b"  # 1,204 views
    rb")"
)
_FROM_LETTER = re.compile(
    rb"\b" + _MONTH + rb"\b\.?\s[0-9]{1,2}(?:st|[nr]d|th)?\b,?(?:\s[0-9]{4}\b)?(?:[\s,]{1,3}(?:at\s)?" + _TIME + rb")?"
    rb"|\b" + _COUNTED + rb"\b[^0-9a-z\n]{0,4}[0-9][0-9.,]*"  # visitors: 12
    rb"|(?:\xc2\xa9|\(c\)|copyright)[^0-9\n]{0,12}[0-9]{4}(?:\s?(?:-|\xe2\x80\x93)\s?[0-9]{4})?"  # © 2020-2026
)
#: Words of letters and at least four digits, UUIDs, and Unix times in seconds or milliseconds.
_TOKEN = re.compile(
    rb"\b(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    rb"|(?=(?:[a-z_-]*[0-9]){4})(?=[0-9_-]*[a-z])[0-9a-z_-]{16,}|1[5-9][0-9]{8}(?:[0-9]{3})?)\b"
)
_WEEKDAYS = (
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche"
)
_WEEKDAY_OF_DATE = re.compile(rb"\b(?:" + "|".join(_WEEKDAYS.split()).encode() + rb")\b\.?,?\s?(?=\x00)")
#: Every digit becomes 0 and every other byte a space: one table and `find` are the fastest search for digits.
_DIGITS_AS_0 = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_WHITE = b" \t\n\x0b\x0c\r\x00"


def steady_text(tree: LexborHTMLParser) -> str:
    """The text of a web page without the elements that are no content of it: they are taken out of `tree`."""
    tree.strip_tags(_NO_CONTENT, recursive=True)
    # A list of selectors gives a node once for each that it matches; inner ones go first, since what
    # stood in an element that is gone can't be touched any more.
    volatile = {node.mem_id: node for node in tree.css(_VOLATILE)}
    for node in reversed(volatile.values()):
        node.decompose()
    body = tree.body
    return body.text(separator=" ") if body is not None else ""


def image_names(tree: LexborHTMLParser) -> str:
    """The file names of a page's images, a line each."""
    sources = (attribute(node, "src") or "" for node in tree.tags("img"))
    return "\n".join(source.partition("?")[0].rpartition("/")[2] for source in sources if source[:5] != "data:")


def normalised(text: str) -> bytes:
    """A text without what changes by itself, as UTF-8 without white space."""
    lowered = text.encode("utf-8", "replace").lower()
    digits = lowered.translate(_DIGITS_AS_0)
    kept: list[bytes] = []
    done = 0
    while (at := digits.find(b"0", done)) >= 0:
        start = lowered.rfind(b"\n", done, at) + 1 or done
        end = lowered.find(b"\n", at)
        end = len(lowered) if end < 0 else end
        kept += lowered[done:start], _steady(lowered[start:end])
        done = end
    kept.append(lowered[done:])
    return b"".join(kept).replace(b"\xc2\xa0", b"").translate(None, _WHITE)


def _steady(line: bytes) -> bytes:
    """A line without dates, counters and tokens; NUL stands where they stood."""
    line = _FROM_DIGIT.sub(b"\x00", _FROM_LETTER.sub(b"\x00", _TOKEN.sub(b"\x00", line)))
    return _WEEKDAY_OF_DATE.sub(b"", line) if b"\x00" in line else line


def text_checksum(text: str) -> int | None:
    """64 signed bits of a text's normalised form; None when it is too short to identify anything."""
    steady = normalised(text)
    if len(steady) < MIN_BYTES:
        return None
    unsigned: int = xxhash.xxh3_64_intdigest(steady)
    return unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned


def page_checksum(tree: LexborHTMLParser, title: str | None) -> int | None:
    """`text_checksum` of a web page: its title, its visible text, the names of its images.

    Args:
        tree: the document; what is not needed for the text is gone from it afterwards.
        title: the document's title.
    """
    text = steady_text(tree)
    return text_checksum(f"{title or ''}\n{text}\n{image_names(tree)}")
