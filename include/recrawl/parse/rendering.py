"""Pages that are empty until a browser runs their scripts."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.parse.html import attribute, collapsed

#: A page with more links than these shows something without scripts.
MAX_LINKS = 4
#: And so does one with more visible characters.
MAX_CHARACTERS = 200
#: Characters of scripts in the page itself below which they only count visits.
MIN_SCRIPT_CHARACTERS = 200

_INVISIBLE = frozenset({"script", "style", "noscript", "template", "head", "svg", "-comment", "iframe", "object"})
#: ids of the element that scripts fill, as the common frameworks name it.
_ROOT_IDS = frozenset({"root", "app", "__next", "__nuxt", "___gatsby", "svelte", "q-app", "main-app", "react-root"})
_ROOT_TAGS = ("app-root", "ng-app")
_ASKS_FOR_SCRIPTS = re.compile(r"java\s?script|browser", re.IGNORECASE)


def visible_text(tree: LexborHTMLParser, most: int = 4_000) -> str:
    """The text that a reader without scripts sees, white space collapsed, at most about `most` characters."""
    pieces: list[str] = []
    size = 0
    pending: list[LexborNode] = [tree.body] if tree.body is not None else []
    while pending and size < most:
        node = pending.pop()
        if node.tag == "-text":
            text = node.text_content or ""
            if not text.isspace():
                pieces.append(text)
                size += len(text)
        elif node.tag not in _INVISIBLE:
            children = list(node.iter(include_text=True))
            pending.extend(reversed(children))
    return collapsed(" ".join(pieces))[:most]


def needs_rendering(tree: LexborHTMLParser, link_count: int) -> bool:
    """Whether a page shows next to nothing without its scripts, and has scripts that could fill it.

    True when it has at most `MAX_LINKS` links, at most `MAX_CHARACTERS` of visible text, a script
    that could build a page, and one sign more: no visible text at all, the empty root element of
    a framework, or a noscript that asks for scripts.

    Args:
        link_count: anchors of the page.
    """
    if link_count > MAX_LINKS:
        return False
    scripts = tree.tags("script")
    builds = any(attribute(node, "src") or len(node.text()) >= MIN_SCRIPT_CHARACTERS for node in scripts)
    if not builds:
        return False
    text = visible_text(tree, MAX_CHARACTERS + 1)
    if len(text) > MAX_CHARACTERS:
        return False
    return not text or _has_empty_root(tree) or _asks_for_scripts(tree)


def _has_empty_root(tree: LexborHTMLParser) -> bool:
    if any(tree.tags(tag) for tag in _ROOT_TAGS):
        return True
    return any(
        (attribute(node, "id") or "").lower() in _ROOT_IDS and not collapsed(node.text()) for node in tree.tags("div")
    )


def _asks_for_scripts(tree: LexborHTMLParser) -> bool:
    return any(_ASKS_FOR_SCRIPTS.search(node.text()) is not None for node in tree.tags("noscript"))
