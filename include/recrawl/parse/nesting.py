"""A cheap look at how deep a document nests, before a tree is built of it.

Tree builders search their stack of open elements, so time is depth times size: half a megabyte
of `<div>` takes lexbor 25 seconds.
"""

from __future__ import annotations

import re

#: Depth beyond which elements are flattened, the limit of browsers' trees too.
MAX_DEPTH = 512
#: Formatting elements left open beyond which they are flattened: each paragraph repeats them all.
MAX_OPEN_FORMATTING = 64

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
#: Documents of fewer tags are as quick as any, however they nest.
HARMLESS_TAGS = 1_000
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
#: Elements that the next start tag of their kind closes.
_SELF_CLOSING = frozenset(
    {"a", "p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup"}
)
_NOT_NESTING = _VOID | _SELF_CLOSING | {"rt", "rp", "html", "head", "body"}
_FORMATTING = frozenset({"b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"})


def flattened(text: str) -> tuple[str, int]:
    """The document with its start tags beyond the limits made void, and how many those were.

    Only tags are counted, no tree is built: an estimate, exact for well-formed markup. Links keep
    their place: what is flattened is the element around them.
    """
    if text.count("<") <= HARMLESS_TAGS:
        return text, 0
    open_count: dict[str, int] = {}
    depth = formatting = 0
    pieces: list[str] = []
    copied = 0
    for match in _TAG.finditer(text):
        closing, written = match.groups()
        name = written.lower()
        if name in _NOT_NESTING:
            continue
        count = open_count.get(name, 0)
        is_formatting = name in _FORMATTING
        if closing:
            if count:
                open_count[name] = count - 1
                depth -= 1
                formatting -= is_formatting
        elif depth >= MAX_DEPTH or (is_formatting and formatting >= MAX_OPEN_FORMATTING):
            pieces += (text[copied : match.start()], "<wbr")
            copied = match.end()
        else:
            open_count[name] = count + 1
            depth += 1
            formatting += is_formatting
    if not pieces:
        return text, 0
    return "".join(pieces) + text[copied:], len(pieces) // 2
