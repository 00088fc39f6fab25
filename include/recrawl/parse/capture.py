"""What goes into parsing and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from recrawl.tables.vocabulary import LinkKind, ParseOutcome

#: Characters kept of a title, of a link's text, and of what a document states about itself.
MAX_TITLE_CHARACTERS = 1_000
MAX_ANCHOR_CHARACTERS = 500
MAX_STATED_CHARACTERS = 200


@dataclass(frozen=True)
class Capture:
    """An answered fetch, as it is parsed.

    Attributes:
        url: canonical URL of the page.
        content_type: the Content-Type header.
        body: the body, content codings undone.
        x_robots_tag: the X-Robots-Tag header lines, joined by newlines.
        depth: links from a seed to the page.
        agent: our product token, for directives addressed to it.
        want_text: whether main text, language and metadata are wanted, the expensive part; not for
            content that another capture has brought already.
        previous_text_checksum: `ParsedPage.text_checksum` of the page's last capture; where the new one
            is the same, main text is left out.
        link_headers: the Link header lines (RFC 8288).
        header_lines: all header lines, `name: value`, for the rules of `recrawl.parse.refusals`.
        duplicate_share: of its host's captures, those whose content another URL has, 0 to 1.
    """

    url: str
    content_type: str | None
    body: bytes
    x_robots_tag: str | None
    depth: int
    agent: str
    want_text: bool
    link_headers: tuple[str, ...] = ()
    header_lines: tuple[str, ...] = ()
    duplicate_share: float = 0.0
    previous_text_checksum: int | None = None


class FoundLink(NamedTuple):
    """A link as it stands in a document.

    Attributes:
        url: absolute, resolved against the document's base, not yet canonical; empty when
            `raw` is no URL.
        raw: as written.
        kind: where it stands.
        rel: its rel words, in lower case, one space between them.
        anchor_text: its text, white space collapsed, at most 500 characters.
        lastmod: when a sitemap or feed says that the target changed last, as written.
        priority: what a sitemap gives the target, 0 to 1.
    """

    url: str
    raw: str
    kind: LinkKind
    rel: str
    anchor_text: str
    lastmod: str = ""
    priority: float | None = None


@dataclass
class ParsedPage:
    """What a capture says. Handlers fill it as they go, so that a cut parse keeps what it had.

    Attributes:
        published_at_text: publication date as found.
        text: main text; None when not wanted or not found.
        language: ISO 639-1 code of the text's language.
        charset: WHATWG name of the encoding; None for what has none.
        canonical: absolute target of the canonical link, not yet canonical form.
        noarchive: page or headers ask that no copy is shown.
        needs_rendering: the page is empty until its scripts run; None where that was not looked at.
        metadata: what else the document states: OpenGraph and linked data of a web page, the size of
            an image, the pages of a PDF.
        watched: what web monitors found, see `recrawl.parse.monitor`.
        quality: 0 to 1, see `recrawl.parse.text.quality`.
        handler: name of the content handler; `none` when there is none.
        text_checksum: 64 signed bits of the normalised text (`recrawl.parse.normalised`); None where
            that is too short to identify anything.
        mime_sniffed: media type that the body shows.
        detail: what went wrong, for people.
    """

    title: str | None = None
    author: str | None = None
    published_at_text: str | None = None
    text: str | None = None
    language: str | None = None
    charset: str | None = None
    canonical: str | None = None
    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    needs_rendering: bool | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    watched: list[str] = field(default_factory=list)
    quality: float | None = None
    handler: str = "none"
    parse_outcome: ParseOutcome = ParseOutcome.OK
    text_checksum: int | None = None
    links: list[FoundLink] = field(default_factory=list)
    mime_sniffed: str = ""
    detail: str = ""
