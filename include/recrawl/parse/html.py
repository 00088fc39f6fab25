"""The head of an HTML document: base, title, directives, canonical link, refresh.

Trees are selectolax's (lexbor), which builds them as the HTML standard says. Selectors are lists
of plain tag names: those give each node once, in document order.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.parse.capture import MAX_TITLE_CHARACTERS
from recrawl.urls.canonical import parse

_REFRESH_DELAY = re.compile(r"[\t\n\x0c\r ]*(?:([0-9]+)|(?=\.))[0-9.]*")
_REFRESH_URL = re.compile(
    r"[\t\n\x0c\r ]*[;,]?[\t\n\x0c\r ]*(?:url[\t\n\x0c\r ]*=[\t\n\x0c\r ]*)?(.*)", re.IGNORECASE | re.DOTALL
)
#: Words that ask that no copy of the page is shown; `none` is noindex and nofollow alone.
_NO_COPY = ("noarchive", "nocache")
#: Directives of robots metas and X-Robots-Tag that take a value after a colon.
_VALUED_DIRECTIVES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_AGENT_PREFIX = re.compile(r"\s*([A-Za-z0-9_*-]+)\s*:")


class Refresh(NamedTuple):
    """A meta refresh: where to, absolute, and after how many seconds."""

    target: str
    delay_seconds: int
    raw: str


class Directives(NamedTuple):
    """What a page asks of robots."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False


def parse_html(text: str | bytes, scripting: bool = False) -> LexborHTMLParser:
    """The tree of a document.

    Args:
        text: decoded text, or bytes that are UTF-8 already.
        scripting: treat the content of noscript as text, as a browser that runs scripts does.
    """
    return LexborHTMLParser(text, scripting=scripting)


def attribute(node: LexborNode, name: str) -> str | None:
    """An attribute's value, "" where it has none, None where there is no such attribute."""
    attributes = node.attributes
    return (attributes[name] or "") if name in attributes else None


def collapsed(text: str) -> str:
    """Text with every run of white space as one space, none at the ends."""
    return " ".join(text.split())


def base_url(tree: LexborHTMLParser, url: str) -> str:
    """What the links of a document at `url` are resolved against (HTML, "document base URL")."""
    for node in tree.tags("base"):
        href = attribute(node, "href")
        if href is None:
            continue
        base = parse(href, url)
        # HTML, "set the frozen base URL": these schemes are refused, and the first href decides.
        return url if base is None or base.startswith(("data:", "javascript:")) else base
    return url


def meta_refresh(tree: LexborHTMLParser, base: str, page_url: str | None = None) -> Refresh | None:
    """The first meta refresh of a document that is one (HTML, "shared declarative refresh steps").

    One inside noscript is left alone: it speaks to readers without scripts, and most often says
    that the page can't be shown to them.

    Args:
        base: the document's base, as `base_url` gives it.
        page_url: the document's own URL, the target where the refresh names none; `base` if None.
    """
    for node in tree.tags("meta"):
        if collapsed(attribute(node, "http-equiv") or "").lower() == "refresh" and not _in_noscript(node):
            refresh = refresh_of(attribute(node, "content") or "", base, page_url or base)
            if refresh is not None:
                return refresh
    return None


def refresh_of(content: str, base: str, page_url: str) -> Refresh | None:
    """What the content of a Refresh means; None when it is none or its target is no URL."""
    delay = _REFRESH_DELAY.match(content)
    if delay is None:
        return None
    rest = content[delay.end() :]
    if rest and rest[0] not in ";,\t\n\x0c\r ":
        return None
    # More digits than a year of seconds has are a page that never refreshes.
    seconds = int((delay.group(1) or "0")[:9])
    match = _REFRESH_URL.match(rest)
    raw = match.group(1) if match else ""
    if not raw and not rest.strip("\t\n\x0c\r ;,"):
        return Refresh(page_url, seconds, "")
    if raw[:1] in ("'", '"') and raw:
        raw = raw[1:].partition(raw[0])[0]
    target = parse(raw, base)
    return None if target is None else Refresh(target, seconds, raw)


def _in_noscript(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag == "noscript":
            return True
        parent = parent.parent
    return False


def robots_directives(tree: LexborHTMLParser | None, agent: str, x_robots_tag: str | None = None) -> Directives:
    """What robots metas and X-Robots-Tag ask of `agent`.

    Everything that applies is summed: what any of them forbids is forbidden.

    Args:
        tree: the document; None for what is not HTML.
        agent: our product token.
        x_robots_tag: the header lines, joined by newlines; a line may be addressed to one agent
            (`otherbot: noindex`).
    """
    words: set[str] = set()
    names = ("robots", agent.lower())
    for node in tree.tags("meta") if tree is not None else ():
        name = attribute(node, "name")
        if name is not None and name.strip().lower() in names:
            words.update(_words(attribute(node, "content") or ""))
    for line in (x_robots_tag or "").splitlines():
        words.update(_header_words(line, agent.lower()))
    everything = "none" in words
    return Directives(
        noindex=everything or "noindex" in words,
        nofollow=everything or "nofollow" in words,
        noarchive=not words.isdisjoint(_NO_COPY),
    )


def _words(content: str) -> list[str]:
    return re.split(r"[\s,;]+", content.lower())


def _header_words(line: str, agent: str) -> list[str]:
    """The directives of one X-Robots-Tag line that are meant for `agent`."""
    words: list[str] = []
    addressed = True
    for part in line.split(","):
        prefix = _AGENT_PREFIX.match(part)
        if prefix is not None and prefix.group(1).lower() not in _VALUED_DIRECTIVES:
            addressed = prefix.group(1).lower() in (agent, "*", "robots")
            part = part[prefix.end() :]
        if addressed:
            words.extend(_words(part.strip()))
    return words


def title_of(tree: LexborHTMLParser) -> str | None:
    """The title of a document, white space collapsed; None when it is empty or missing."""
    for node in tree.tags("title"):
        parent = node.parent
        # SVG has titles too; the document's stands in its head, or astray in its body.
        if parent is None or parent.tag not in ("svg", "g", "a", "path", "symbol", "use", "defs"):
            return collapsed(node.text())[:MAX_TITLE_CHARACTERS] or None
    return None


def heading_of(tree: LexborHTMLParser) -> str | None:
    """The first heading of the first level that says something, white space collapsed."""
    for node in tree.tags("h1"):
        if text := collapsed(node.text())[:MAX_TITLE_CHARACTERS]:
            return text
    return None


def language_of(tree: LexborHTMLParser) -> str | None:
    """The primary language that the root element declares, e.g. `en`; None without a usable one."""
    root = tree.root
    declared = (attribute(root, "lang") or attribute(root, "xml:lang") or "") if root is not None else ""
    primary = re.split(r"[-_]", declared.strip().lower(), maxsplit=1)[0]
    return primary if len(primary) == 2 and primary.isascii() and primary.isalpha() else None
