"""Web monitors: pages are watched for terms and CSS selectors (`parse.monitors`).

What a monitor finds stands in `pages.watched`; rank makes one alert of it for each content that was
not seen before. A term is found in title or visible text as whole words, whatever the case and the
white space; a selector is found where it matches an element. Both only on pages whose URL begins
with one of the monitor's prefixes, or on all where it names none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from recrawl.config.model import Monitor
from recrawl.errors import ConfigurationError
from recrawl.parse.html import collapsed
from recrawl.parse.rendering import visible_text

#: Characters of a page's text that are searched.
MAX_CHARACTERS = 500_000


def check_monitors(monitors: Sequence[Monitor]) -> None:
    """Refuse what could never match.

    Raises:
        ConfigurationError: a selector that can't be understood.
    """
    empty = LexborHTMLParser("<p>")
    for monitor in monitors:
        for selector in monitor.selectors:
            try:
                empty.css_first(selector)
            except SelectolaxError:
                raise ConfigurationError(
                    f"parse.monitors: {selector!r} of the monitor {monitor.name!r} is no CSS selector.",
                    "Write it as in a style sheet, e.g. div.price.",
                ) from None


def watched(
    monitors: Sequence[Monitor], url: str, title: str | None, text: str, tree: LexborHTMLParser | None = None
) -> list[str]:
    """What the monitors find on a page, as `monitor: what matched`, in their order.

    Args:
        url: canonical URL of the page.
        text: its visible text.
        tree: its elements; None where it has none: no selector matches then.
    """
    found: list[str] = []
    searched = collapsed(f"{title or ''} {text[:MAX_CHARACTERS]}").casefold()
    for monitor in monitors:
        if monitor.prefixes and not url.startswith(tuple(monitor.prefixes)):
            continue
        matches = [term for term in monitor.terms if _pattern(term).search(searched)]
        if tree is not None:
            matches += [selector for selector in monitor.selectors if tree.css_first(selector) is not None]
        found += [f"{monitor.name}: {match}" for match in matches]
    return found


def watched_on_page(monitors: Sequence[Monitor], url: str, title: str | None, tree: LexborHTMLParser) -> list[str]:
    """`watched` of a web page."""
    if not any(not monitor.prefixes or url.startswith(tuple(monitor.prefixes)) for monitor in monitors):
        return []
    return watched(monitors, url, title, visible_text(tree, MAX_CHARACTERS), tree)


@lru_cache(1_000)
def _pattern(term: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(collapsed(term).casefold())}(?!\w)")
