"""URL filters: which URLs are never taken, each with the sentence that says why.

A filter is a small callable from a URL (and its depth) to a reason, or "" when it has nothing to
say; `UrlFilters` asks them in the order of `RejectFilter` below and stops at the first reason.
Blacklists are sets asked a few times, never loops, so that lists of 100,000 hosts cost nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import NamedTuple, Self

from recrawl.config.model import Urls
from recrawl.errors import ConfigurationError
from recrawl.tables.vocabulary import RejectFilter
from recrawl.urls.canonical import CRAWLED_PREFIXES, parse

#: Path segments that repeat as a group are looked for in groups of up to this many.
MAX_SEGMENT_PERIOD = 4
#: A calendar page is far from today when its year is further ahead or back than these.
CALENDAR_YEARS_AHEAD = 2
CALENDAR_YEARS_BACK = 10


class Rejection(NamedTuple):
    """Why a URL is not taken: the filter, and one sentence with the particulars."""

    filter: RejectFilter
    reason: str


def uncanonical(url: str, base: str | None = None) -> Rejection:
    """Why `url`, which has no canonical form, is not taken: not a URL, or of another scheme."""
    href = parse(url, base)
    if href is None:
        return Rejection(RejectFilter.INVALID, "It is not a URL.")
    reason = scheme_reason(href)
    return Rejection(RejectFilter.SCHEME if reason else RejectFilter.INVALID, reason or "Its host is empty.")


def scheme_reason(url: str) -> str:
    """Why the scheme of `url` is not crawled, "" for http, https and ftp."""
    if url.startswith(CRAWLED_PREFIXES):
        return ""
    scheme = url.partition(":")[0][:20] if ":" in url else ""
    return f"The scheme {scheme!r} is not crawled."


class HostBlacklist:
    """Hosts and domains, each with all its subdomains, whatever the port."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._hosts = frozenset(host.lower().strip(".") for host in hosts)

    def reason(self, url: str) -> str:
        """Why `url` is not taken, "" when it passes."""
        # The URL may be any text: what has no authority has no host to block.
        authority = url.partition("://")[2]
        name = re.split(r"[/?#]", authority, maxsplit=1)[0].rpartition("@")[2]
        name = re.sub(r":\d*$", "", name).lower().rstrip(".")
        while name:
            if name in self._hosts:
                return f"The host or domain {name!r} is blocked."
            name = name.partition(".")[2]
        return ""


class PrefixBlacklist:
    """URL prefixes, compared with canonical URLs as they are written."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._prefixes = frozenset(prefixes)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def reason(self, url: str) -> str:
        """Why `url` is not taken, "" when it passes."""
        for length in self._lengths:
            if length > len(url):
                break
            if url[:length] in self._prefixes:
                return f"The prefix {url[:length]!r} is blocked."
        return ""


class PatternBlacklist:
    """Regular expressions that may match anywhere in the URL.

    Raises:
        ConfigurationError: a pattern is no regular expression.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = []
        for pattern in patterns:
            try:
                self._patterns.append(re.compile(pattern))
            except re.error as error:
                raise ConfigurationError(
                    f"urls.blocked_patterns: {pattern!r} is no regular expression ({error}).",
                    "Mend or remove it.",
                ) from None

    def reason(self, url: str) -> str:
        """Why `url` is not taken, "" when it passes."""
        for pattern in self._patterns:
            if pattern.search(url):
                return f"The pattern {pattern.pattern!r} is blocked."
        return ""


class ExtensionBlacklist:
    """Extensions of the last path segment, compared without case.

    Compressed sitemaps (`….xml.gz`) pass: they are how sites list their pages.
    """

    _EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,10})(?:;[^/?#]*)?(?:[?#]|$)")

    def __init__(self, extensions: Iterable[str]) -> None:
        self._extensions = frozenset(extension.lower().lstrip(".") for extension in extensions)

    def reason(self, url: str) -> str:
        """Why `url` is not taken, "" when it passes."""
        authority = url.find("://") + 3
        path = url.find("/", authority)
        if path < 0:
            return ""
        end = _first_of(url, "?#", path)
        found = self._EXTENSION.search(url, url.rfind("/", path, end))
        if found is None or found.start() >= end:
            return ""
        extension = found[1].lower()
        if extension not in self._extensions or url[: found.end(1)].lower().endswith(".xml.gz"):
            return ""
        return f"The extension {extension!r} is blocked."


def _first_of(url: str, characters: str, start: int) -> int:
    """The index of the first of `characters` from `start` on, or the length of `url`."""
    return min(
        (index for index in (url.find(character, start) for character in characters) if index >= 0), default=len(url)
    )


class SegmentRepeat:
    """Groups of 1 to 4 path segments that follow each other more often than allowed.

    `/a/b/a/b/a/b/a/b` is the group `a/b` four times: what a relative link on every page of a
    site that answers any path makes.
    """

    def __init__(self, max_repeats: int) -> None:
        self._max_repeats = max_repeats

    def reason(self, url: str) -> str:
        """Why `url` is not taken, "" when it passes."""
        # Two slashes belong to `://`, and a URL of few segments can't hold enough repeats.
        if url.count("/") < self._max_repeats + 3:
            return ""
        path = url.partition("://")[2]
        segments = path[: _first_of(path, "?#", 0)].split("/")[1:]
        for period in range(1, MAX_SEGMENT_PERIOD + 1):
            # A run of n equal neighbours at distance `period` is n / period + 1 repeats.
            run = 0
            for left, right in zip(segments, segments[period:], strict=False):
                run = run + 1 if left == right else 0
                if run >= period * self._max_repeats:
                    return f"{period} path segment(s) repeat more than {self._max_repeats} times."
        return ""


class QueryExplosion:
    """More query parameters than the limit."""

    def __init__(self, max_parameters: int) -> None:
        self._max_parameters = max_parameters

    def reason(self, url: str) -> str:
        """Why `url` is not taken, "" when it passes."""
        # A cheap bound first: n parameters have n - 1 ampersands.
        if url.count("&") < self._max_parameters:
            return ""
        query = url.partition("#")[0].partition("?")[2]
        count = sum(1 for piece in query.split("&") if piece)
        if count <= self._max_parameters:
            return ""
        return f"It has {count} query parameters; the limit is {self._max_parameters}."


class Calendar:
    """Pages of a calendar whose year is far from today: `/calendar/2087/05`, `?month=2087-05`.

    Only URLs that speak of a calendar and name a year count; an archive of old articles passes.
    """

    _WORD = re.compile(r"calend|kalend|agenda|[/?&_-](?:month|week|day|date|year|events?)[/=_-]", re.IGNORECASE)
    _YEAR = re.compile(
        r"(?<!\d)([12]\d{3})(?=(?:[-/_]?(?:0?[1-9]|1[0-2]))?(?:\D|$)|(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?:\D|$))"
    )

    def __init__(self, today: date) -> None:
        self._first = today.year - CALENDAR_YEARS_BACK
        self._last = today.year + CALENDAR_YEARS_AHEAD

    def reason(self, url: str) -> str:
        """Why `url` is not taken, "" when it passes."""
        start = url.find("/", url.find("://") + 3)
        if start < 0 or self._WORD.search(url, start) is None:
            return ""
        years = [int(found[1]) for found in self._YEAR.finditer(url, start)]
        # The nearest year decides: a page of today may well speak of 1848.
        if not years or any(self._first <= year <= self._last for year in years):
            return ""
        return f"A calendar page of {years[0]}; only {self._first} to {self._last} are taken."


class UrlFilters:
    """All filters of the configuration, in order.

    Args:
        urls: the section of the configuration with limits and blacklists.
        today: the round's date, for the calendar filter; None leaves that filter out.

    Raises:
        ConfigurationError: a blocked pattern is no regular expression.
    """

    def __init__(self, urls: Urls, today: date | None = None) -> None:
        self._max_url_bytes = urls.max_url_bytes
        self._max_depth = urls.max_depth
        ordered: list[tuple[RejectFilter, bool, Callable[[str], str]]] = [
            (RejectFilter.HOST, bool(urls.blocked_hosts), HostBlacklist(urls.blocked_hosts).reason),
            (RejectFilter.PREFIX, bool(urls.blocked_prefixes), PrefixBlacklist(urls.blocked_prefixes).reason),
            (RejectFilter.REGEX, bool(urls.blocked_patterns), PatternBlacklist(urls.blocked_patterns).reason),
            (RejectFilter.EXTENSION, bool(urls.blocked_extensions), ExtensionBlacklist(urls.blocked_extensions).reason),
            (RejectFilter.SEGMENT_REPEAT, True, SegmentRepeat(urls.max_segment_repeats).reason),
            (RejectFilter.QUERY_EXPLOSION, True, QueryExplosion(urls.max_query_parameters).reason),
        ]
        self._filters = [(name, reason) for name, wanted, reason in ordered if wanted]
        if today is not None:
            self._filters.append((RejectFilter.CALENDAR, Calendar(today).reason))

    @classmethod
    def from_settings(cls, urls: Urls, today: date | None = None) -> Self:
        """The filters that the section `urls` of the configuration asks for."""
        return cls(urls, today)

    def check(self, url: str, depth: int) -> Rejection | None:
        """The first filter that turns `url`, found `depth` links from a seed, away; None = taken.

        Meant for canonical URLs; any other text is answered too, never with an exception.
        """
        reason = scheme_reason(url)
        if reason:
            return Rejection(RejectFilter.SCHEME, reason)
        length = len(url) if url.isascii() else len(url.encode("utf-8", "surrogatepass"))
        if length > self._max_url_bytes:
            reason = f"It is {length} bytes long; the limit is {self._max_url_bytes}."
            return Rejection(RejectFilter.LENGTH, reason)
        if depth > self._max_depth:
            return Rejection(
                RejectFilter.DEPTH, f"It is {depth} links away from a seed; the limit is {self._max_depth}."
            )
        for name, reason_of in self._filters:
            reason = reason_of(url)
            if reason:
                return Rejection(name, reason)
        return None
