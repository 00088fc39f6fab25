"""Plain text and robots.txt: URLs that stand in lines."""

from __future__ import annotations

import re

from recrawl.parse import charset
from recrawl.parse.capture import FoundLink, ParsedPage
from recrawl.parse.documents import Document, Handler
from recrawl.parse.encodings import decode
from recrawl.parse.monitor import watched
from recrawl.parse.normalised import text_checksum
from recrawl.parse.text import add_text
from recrawl.tables.vocabulary import LinkKind
from recrawl.urls.canonical import parse

#: Longer ones are no links that anybody wrote.
_URL = re.compile(r"\bhttps?://[^\s<>\"'`{}|\\^\x00-\x1f\x7f]{1,4096}", re.IGNORECASE)
#: Punctuation at the end of a URL in a sentence that belongs to the sentence.
_TRAILING = ".,;:!?*_~"
_CLOSING = {")": "(", "]": "["}
_SITEMAP = re.compile(r"[ \t]*site-?map[ \t]*:[ \t]*([^\s#]+)", re.IGNORECASE)


def text_links(text: str) -> list[FoundLink]:
    """The http(s) URLs in a text, in order."""
    found = []
    for match in _URL.finditer(text):
        raw = _without_sentence(match.group())
        url = parse(raw)
        if url is not None:
            found.append(FoundLink(url, raw, LinkKind.TEXT, "", ""))
    return found


def _without_sentence(raw: str) -> str:
    while raw:
        last = raw[-1]
        if last in _TRAILING or (last in _CLOSING and raw.count(last) > raw.count(_CLOSING[last])):
            raw = raw[:-1]
        else:
            break
    return raw


def robots_sitemaps(text: str, robots_url: str) -> list[FoundLink]:
    """The sitemaps that a robots.txt names (sitemaps.org; RFC 9309, section 2.2.4)."""
    found = []
    for line in text.removeprefix("\ufeff").splitlines():
        match = _SITEMAP.match(line)
        if match is not None:
            raw = match.group(1)
            found.append(FoundLink(parse(raw, robots_url) or "", raw, LinkKind.SITEMAP, "", ""))
    return found


def parse_text(document: Document, page: ParsedPage) -> None:
    """Fill `page` from plain text."""
    capture = document.capture
    page.charset = charset.detect_text(document.body, capture.content_type)
    text = decode(document.body, page.charset)
    page.links = text_links(text)
    if not capture.want_text:
        return
    page.text_checksum = text_checksum(text)
    page.watched = watched(document.settings.monitors, capture.url, None, text)
    if document.settings.text_extractor != "none":
        words = document.settings.unwanted_words
        add_text(page, text.strip() or None, 0, None, words, capture.duplicate_share)


def parse_robots(document: Document, page: ParsedPage) -> None:
    """Fill `page` from a robots.txt that was fetched as a page."""
    page.charset = "utf-8"
    page.links = robots_sitemaps(decode(document.body, "utf-8"), document.capture.url)


HANDLER = Handler("text", frozenset({"text/plain"}), parse_text, isolated=False)
#: For the path `/robots.txt` alone, so it has no type of its own.
ROBOTS = Handler("robots", frozenset(), parse_robots, isolated=False)
