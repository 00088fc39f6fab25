"""The srcset attribute (HTML, section 4.8.4.2, "parsing a srcset attribute")."""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[\t\n\x0c\r ,]*")
_URL = re.compile(r"[^\t\n\x0c\r ]+")
#: Descriptors: everything up to a comma that stands outside of parentheses.
_DESCRIPTORS = re.compile(r"(?:[^,(]|\([^)]*(?:\)|$))*")


def srcset_urls(srcset: str) -> list[str]:
    """The URLs of the image candidates of a srcset, as written and in order.

    Descriptors are stepped over, not judged: a candidate that a browser would drop for a bad
    descriptor still names a resource.
    """
    urls: list[str] = []
    at = 0
    while True:
        at = _end(_SEPARATORS, srcset, at)
        match = _URL.match(srcset, at)
        if match is None:
            return urls
        at = match.end()
        url = match.group()
        if url.endswith(","):
            url = url.rstrip(",")
        else:
            at = _end(_DESCRIPTORS, srcset, at)
        urls.append(url)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
