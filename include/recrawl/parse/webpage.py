"""Web pages: HTML and XHTML."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from recrawl.parse import charset, html, links
from recrawl.parse import text as texts
from recrawl.parse.capture import ParsedPage
from recrawl.parse.documents import Document, Handler
from recrawl.parse.encodings import decode
from recrawl.parse.metadata import Statements, linked_urls
from recrawl.parse.monitor import watched_on_page
from recrawl.parse.nesting import flattened
from recrawl.parse.normalised import page_checksum
from recrawl.parse.refusals import refusal_of
from recrawl.parse.rendering import needs_rendering, visible_text
from recrawl.parse.soft_404 import names_missing_page, soft_404_reason
from recrawl.tables.vocabulary import LinkKind, ParseOutcome


def parse_page(document: Document, page: ParsedPage) -> None:
    """Fill `page` from HTML: the cheap and important first, so that a time limit cuts off the text."""
    capture = document.capture
    page.charset = charset.detect(document.body, capture.content_type)
    source, flattened_count = flattened(decode(document.body, page.charset))
    if flattened_count:
        page.parse_outcome = ParseOutcome.PARTIAL
        page.detail = f"{flattened_count} elements nested too deep were flattened"
    tree = html.parse_html(source)
    directives = html.robots_directives(tree, capture.agent, capture.x_robots_tag)
    page.noindex, page.nofollow, page.noarchive = directives
    page.title = html.title_of(tree)
    refusal = refusal_of(capture.header_lines, page.title, source)
    if refusal:
        # What such a page links to is the guard's, not the site's.
        page.parse_outcome = ParseOutcome.REFUSED
        page.detail = f"rule {refusal}"
        return
    page.links = links.found_links(tree, capture.url, encoding=page.charset)
    if document.settings.linked_data_links:
        page.links += linked_urls(tree, capture.url)
    if _is_missing(tree, page):
        return
    if not capture.want_text:
        return
    page.author, page.published_at_text, page.metadata = Statements(tree).all()
    if document.settings.monitors:
        page.watched = watched_on_page(document.settings.monitors, capture.url, page.title, tree)
    anchors = [link.anchor_text for link in page.links if link.kind is LinkKind.A]
    page.needs_rendering = needs_rendering(tree, len(anchors))
    declared_language = html.language_of(tree)
    page.text_checksum = page_checksum(tree, page.title)
    if page.text_checksum is not None and page.text_checksum == capture.previous_text_checksum:
        # Only what changes by itself has changed: the text is that of the capture before.
        page.language = declared_language
        return
    del tree
    main_text = texts.main_text(source, document.settings.text_extractor)
    anchor_characters = sum(map(len, anchors))
    words = document.settings.unwanted_words
    texts.add_text(page, main_text, anchor_characters, declared_language, words, capture.duplicate_share)


def _is_missing(tree: LexborHTMLParser, page: ParsedPage) -> bool:
    """Whether a page says that it is none; its outcome then says so too."""
    heading = html.heading_of(tree)
    # The text is only looked at where title or heading give a reason to.
    if not names_missing_page(page.title, heading):
        return False
    reason = soft_404_reason(page.title, heading, visible_text(tree))
    if reason:
        page.parse_outcome = ParseOutcome.SOFT_404
        page.detail = reason
    return bool(reason)


HANDLER = Handler(
    "html", frozenset({"text/html", "application/xhtml+xml"}), parse_page, isolated=False, prepare=texts.prepare
)
