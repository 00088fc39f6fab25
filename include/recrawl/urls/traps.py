"""Filters for crawler traps: URLs that a site can make without end.

Each is a small callable from a URL and the place of its path (`url[start:end]`) to a reason, or ""
when it has nothing to say. Each asks something cheap first that most URLs fail.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date

#: Path segments that repeat as a group are looked for in groups of up to this many.
MAX_SEGMENT_PERIOD = 4
#: A calendar page is far from today when its year is further ahead or back than these.
CALENDAR_YEARS_AHEAD = 2
CALENDAR_YEARS_BACK = 10
#: The same for a month that stands in the query: a calendar that is computed goes on for ever.
COMPUTED_YEARS_AHEAD = 1
COMPUTED_YEARS_BACK = 1
#: Times that one parameter may stand in a query.
MAX_SAME_PARAMETER = 3
#: Different parameters that a page offers to add to its query from which on it is a faceted search.
FACET_NAMES = 3
#: Links of one page that continue the last segment of its path by so many characters are a trap.
GROWING_LINKS = 2
EVER_LONGER_CHARACTERS = 64
#: Links of one page to names that its path of so many segments or more holds already are a trap.
NESTED_AGAIN_LINKS = 2
NESTED_SEGMENTS = 3
#: Segments from which on a path that grows by each link is a trap, and not a deep tree.
EVER_DEEPER_SEGMENTS = 8


class SegmentRepeat:
    """Groups of 1 to 4 path segments that follow each other more often than allowed.

    `/a/b/a/b/a/b/a/b` is the group `a/b` four times: what a relative link on every page of a
    site that answers any path makes.
    """

    def __init__(self, max_repeats: int) -> None:
        self._max_repeats = max_repeats

    def reason(self, url: str, start: int, end: int) -> str:
        """Why `url` is not taken, "" when it passes."""
        most = self._max_repeats
        # A path of few segments can't hold enough repeats, nor can one whose segments differ.
        if url.count("/", start, end) <= most:
            return ""
        segments = url[start + 1 : end].split("/")
        if len(segments) - len(set(segments)) < most:
            return ""
        for period in range(1, MAX_SEGMENT_PERIOD + 1):
            # A run of n equal neighbours at distance `period` is n / period + 1 repeats.
            run = 0
            for left, right in zip(segments, segments[period:], strict=False):
                run = run + 1 if left == right else 0
                if run >= period * most:
                    return f"{period} path segment(s) repeat more than {most} times."
        return ""


class LongPath:
    """More path segments than any page of a site made by people needs."""

    def __init__(self, max_segments: int) -> None:
        self._max_segments = max_segments

    def reason(self, url: str, start: int, end: int) -> str:
        """Why `url` is not taken, "" when it passes."""
        segments = url.count("/", start, end)
        if segments <= self._max_segments:
            return ""
        return f"Its path has {segments} segments; the limit is {self._max_segments}."


def ever_deeper(page_url: str, url: str, depth: int) -> str:
    """Why a link is one step more into a path that grows by each link; "" when it is not.

    A trap such as `/deep/a/b/c/…` adds a segment with each click, for ever. A link is one of
    it when its path continues that of its page, has at least `EVER_DEEPER_SEGMENTS` segments, and
    when about all links on the way from the seed have each added one.

    Args:
        page_url: canonical URL of the page that holds the link.
        url: canonical URL of the target.
        depth: links from a seed to the target.
    """
    if depth < EVER_DEEPER_SEGMENTS - 2 or "?" in page_url:
        return ""
    folder = page_url if page_url.endswith("/") else page_url + "/"
    if not url.startswith(folder):
        return ""
    path = url.partition("?")[0].rstrip("/")
    segments = path.count("/") - 2
    if segments < EVER_DEEPER_SEGMENTS or depth < segments - 2:
        return ""
    return f"Each link to it from the seed on led one path segment deeper, {segments} by now."


def growing_links(page_url: str, urls: Iterable[str]) -> frozenset[str]:
    """The links of a page that are its own name with much more behind it, where there are several.

    A trap such as `/long/a` → `/long/a-b-c-…` grows within one segment. A link is one of it when it
    continues the last segment of its page's path by `EVER_LONGER_CHARACTERS` or more, after a mark
    that ends a word. A single one passes: `/posts/7` may lead to `/posts/7-a-very-long-title-…`.

    Args:
        page_url: canonical URL of the page that holds the links.
        urls: canonical URLs of its links.
    """
    length = len(page_url)
    if "?" in page_url or page_url.endswith("/"):
        return frozenset()
    found = set()
    for url in urls:
        if len(url) >= length + EVER_LONGER_CHARACTERS and url.startswith(page_url) and url[length] in "-_.+~%":
            end = min((place for mark in "/?;" if (place := url.find(mark, length)) >= 0), default=len(url))
            if end - length >= EVER_LONGER_CHARACTERS:
                found.add(url)
    return frozenset(found) if len(found) >= GROWING_LINKS else frozenset()


def nested_again_links(page_url: str, urls: Iterable[str]) -> frozenset[str]:
    """The links of a page one folder deeper, by names that its own path holds already, where there are several.

    A site that answers any path offers the same few names on every level: `/deep/a/b` leads to
    `/deep/a/b/a` and `/deep/a/b/b`. A single one passes: `/blog/2024/12` has a day 12.

    Args:
        page_url: canonical URL of the page that holds the links, with three path segments or more.
        urls: canonical URLs of its links.
    """
    folder = page_url if page_url.endswith("/") else page_url + "/"
    own = set(folder.split("/")[3:-1])
    if "?" in page_url or folder.count("/") < 3 + NESTED_SEGMENTS:
        return frozenset()
    length = len(folder)
    found = {url for url in urls if url.startswith(folder) and url[length:].partition("?")[0].rstrip("/") in own}
    return frozenset(found) if len(found) >= NESTED_AGAIN_LINKS else frozenset()


def faceted_links(page_url: str, urls: Iterable[str]) -> frozenset[str]:
    """The links of a faceted search that each add one choice more to the page's own query.

    Such a page has two parameters or more already, and at least `FACET_NAMES` different parameters
    are offered to be added to all of them: `/search?q=a&page=1` with `…&color=red`, `…&size=xl`,
    `…&sort=price`. Each choice taken offers the others again, so their products have no end. Links
    that only turn the pages of a list add one parameter, and pass.

    Args:
        page_url: canonical URL of the page that holds the links.
        urls: canonical URLs of its links.
    """
    path, mark, query = page_url.partition("?")
    own = set(query.split("&"))
    if not mark or len(own) < 2:
        return frozenset()
    added: dict[str, set[str]] = {}
    for url in urls:
        if url.startswith(path + "?") and len(url) > len(page_url):
            pieces = set(url[len(path) + 1 :].split("&"))
            if own < pieces:
                added[url] = {piece.partition("=")[0] for piece in pieces - own}
    names = set().union(*added.values())
    return frozenset(added) if len(names) >= FACET_NAMES else frozenset()


class SessionInPath:
    """A session id as a segment of the path, which makes each page new with each visit.

    `/(S(4mdzq3qxwpl2uoqvj5lk2t55))/a.aspx`, `/session/0f3a…/a`, `/sid=0f3a…/a`. Ids in path
    parameters (`;jsessionid=…`) and queries are dropped by the URL rules instead.
    """

    _ID = re.compile(
        r"/(?:\((?:[a-z]\()?[0-9a-z]{20,}\)+"
        r"|(?:(?:php|asp|j)?sess(?:ion)?[-_]?(?:id)?|sid)[=:~/_-](?=[a-z-]*[0-9])[0-9a-z-]{16,})(?=[/;?]|$)",
        re.IGNORECASE,
    )

    def reason(self, url: str, start: int, end: int) -> str:
        """Why `url` is not taken, "" when it passes."""
        if end - start < 20:
            return ""
        match = self._ID.search(url, start, end)
        return f"Its path holds a session id: {match[0][1:61]!r}." if match else ""


class QueryExplosion:
    """More query parameters than the limit, or one parameter again and again.

    Faceted searches add `&sort=…&color=…&sort=…` with each click.
    """

    def __init__(self, max_parameters: int) -> None:
        self._max_parameters = max_parameters

    def reason(self, url: str, start: int, end: int) -> str:
        """Why `url` is not taken, "" when it passes."""
        # A cheap bound first: n parameters have n - 1 ampersands.
        if url.count("&", end) < min(self._max_parameters, MAX_SAME_PARAMETER):
            return ""
        query = url[end + 1 :].partition("#")[0]
        names = [piece.partition("=")[0] for piece in query.split("&") if piece]
        if len(names) > self._max_parameters:
            return f"It has {len(names)} query parameters; the limit is {self._max_parameters}."
        if len(names) - len(set(names)) >= MAX_SAME_PARAMETER:
            name, times = Counter(names).most_common(1)[0]
            if times > MAX_SAME_PARAMETER and not name.endswith(("[]", "%5B%5D")):
                return f"Its query parameter {name[:40]!r} stands {times} times; the limit is {MAX_SAME_PARAMETER}."
        return ""


class Calendar:
    """Pages of a calendar far from today: `/calendar/2087/05`, `?month=2087-05`.

    Only URLs that speak of a calendar and name a year count; an archive of old articles passes. The
    days of a calendar that is computed (`/calendar/day?d=2026-12-24`) are never taken: there are thirty
    to a month, and what happens on one of them is linked from the month.
    """

    _FOUR_DIGITS = re.compile(r"[12][0-9]{3}")
    _WORD = re.compile(
        r"calend|kalend|agenda|/(?:month|week|day|date|year|events?)/|[?&_-](?:month|week|day|date|year|events?)=",
        re.IGNORECASE,
    )
    _CALENDAR = re.compile(r"calend|kalend|agenda", re.IGNORECASE)
    _COMPUTED_DAY = re.compile(r"=[12]\d{3}(?:([-/_])(?:0?[1-9]|1[0-2])\1|(?:0[1-9]|1[0-2]))(?:[0-2]?\d|3[01])(?:\D|$)")
    _YEAR = re.compile(
        r"(?<!\d)([12]\d{3})(?=([-/_]?(?:0?[1-9]|1[0-2]))?(?:\D|$)|((?:0[1-9]|1[0-2])(?:[0-2]\d|3[01]))(?:\D|$))"
    )

    def __init__(self, today: date) -> None:
        self._window = (today.year - CALENDAR_YEARS_BACK, today.year + CALENDAR_YEARS_AHEAD)
        self._computed_window = (today.year - COMPUTED_YEARS_BACK, today.year + COMPUTED_YEARS_AHEAD)

    def reason(self, url: str, start: int, end: int) -> str:
        """Why `url` is not taken, "" when it passes."""
        if self._FOUR_DIGITS.search(url, start) is None or self._WORD.search(url, start) is None:
            return ""
        refusal = ""
        for found in self._YEAR.finditer(url, start):
            computed = found.start() >= end and (found[2] or found[3])
            if computed and self._COMPUTED_DAY.search(url, end) and self._CALENDAR.search(url, start, end):
                return "A day of a calendar that is computed."
            first, last = self._computed_window if computed else self._window
            # The nearest year decides: a page of today may well speak of 1848.
            if first <= int(found[1]) <= last:
                return ""
            refusal = refusal or f"A calendar page of {found[1]}; only {first} to {last} are taken."
        return refusal
