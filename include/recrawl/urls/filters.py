"""URL filters: which URLs are never taken, each with the sentence that says why.

`UrlFilters` asks the lists of the configuration and the filters for traps in a fixed order and
stops at the first that has something to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import NamedTuple, Self

from recrawl.config.model import Urls
from recrawl.tables.vocabulary import RejectFilter
from recrawl.urls.canonical import CRAWLED_PREFIXES, parse
from recrawl.urls.lists import ExtensionList, HostList, PatternList, PrefixList, entries_of
from recrawl.urls.traps import Calendar, LongPath, QueryExplosion, SegmentRepeat, SessionInPath

_ReasonOf = Callable[[str, int, int], str]


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


def path_of(url: str) -> tuple[int, int]:
    """Where the path of a URL with an authority begins and ends; for any other text, somewhere."""
    end = url.find("?")
    if end < 0:
        end = len(url)
    fragment = url.find("#", 0, end)
    if fragment >= 0:
        end = fragment
    start = url.find("/", url.find(":") + 3, end)
    return (end if start < 0 else start), end


class _Blocked:
    """A list whose entries are turned away; a class, so that filters can be pickled."""

    def __init__(self, listed: HostList | PrefixList | PatternList | ExtensionList, what: str) -> None:
        self._listed = listed
        self._what = what

    def reason(self, url: str, start: int, end: int) -> str:
        entry = self._listed.found(url, start, end)
        return f"The {self._what} {entry!r} is blocked." if entry else ""


class _Allowed:
    """Allow lists: where there is any, what none of them names is turned away."""

    def __init__(self, lists: list[HostList | PrefixList | PatternList]) -> None:
        self._lists = lists

    def reason(self, url: str, start: int, end: int) -> str:
        for listed in self._lists:
            if listed.found(url, start, end):
                return ""
        return "No allow list names it."


class UrlFilters:
    """All filters of the configuration, in order.

    Args:
        urls: the section of the configuration with limits and lists.
        today: the round's date, for the calendar filter; None leaves that filter out.
        trap_prefixes: URL prefixes that people accepted as traps.

    Raises:
        ConfigurationError: a pattern is no regular expression, or a list's file can't be read.
    """

    def __init__(self, urls: Urls, today: date | None = None, trap_prefixes: Iterable[str] = ()) -> None:
        self._max_url_bytes = urls.max_url_bytes
        self._max_depth = urls.max_depth
        allowed: list[HostList | PrefixList | PatternList] = [
            HostList(entries_of("allowed_hosts", urls.allowed_hosts)),
            PrefixList(entries_of("allowed_prefixes", urls.allowed_prefixes)),
            PatternList("allowed_patterns", entries_of("allowed_patterns", urls.allowed_patterns)),
        ]
        hosts = HostList(entries_of("blocked_hosts", urls.blocked_hosts))
        prefixes = PrefixList(entries_of("blocked_prefixes", urls.blocked_prefixes))
        patterns = PatternList("blocked_patterns", entries_of("blocked_patterns", urls.blocked_patterns))
        extensions = ExtensionList(entries_of("blocked_extensions", urls.blocked_extensions))
        traps = PrefixList(trap_prefixes)
        ordered: list[tuple[RejectFilter, bool, _ReasonOf]] = [
            (RejectFilter.ALLOW_LIST, any(allowed), _Allowed([listed for listed in allowed if listed]).reason),
            (RejectFilter.HOST, bool(hosts), _Blocked(hosts, "host or domain").reason),
            (RejectFilter.PREFIX, bool(prefixes), _Blocked(prefixes, "prefix").reason),
            (RejectFilter.REGEX, bool(patterns), _Blocked(patterns, "pattern").reason),
            (RejectFilter.TRAP, bool(traps), _Blocked(traps, "trap").reason),
            (RejectFilter.EXTENSION, bool(extensions), _Blocked(extensions, "extension").reason),
            (RejectFilter.SEGMENT_REPEAT, True, SegmentRepeat(urls.max_segment_repeats).reason),
            (RejectFilter.EVER_DEEPER, True, LongPath(urls.max_path_segments).reason),
            (RejectFilter.SESSION, True, SessionInPath().reason),
            (RejectFilter.QUERY_EXPLOSION, True, QueryExplosion(urls.max_query_parameters).reason),
        ]
        if today is not None:
            ordered.append((RejectFilter.CALENDAR, True, Calendar(today).reason))
        self._filters = [(name, reason) for name, wanted, reason in ordered if wanted]

    @classmethod
    def from_settings(cls, urls: Urls, today: date | None = None, trap_prefixes: Iterable[str] = ()) -> Self:
        """The filters that the section `urls` of the configuration asks for, and those that people accepted."""
        return cls(urls, today, trap_prefixes)

    def check(self, url: str, depth: int) -> Rejection | None:
        """Why `url`, found `depth` links from a seed, is turned away; None = taken.

        Meant for canonical URLs; any other text is answered too, never with an exception.
        """
        if not url.startswith(CRAWLED_PREFIXES):
            return Rejection(RejectFilter.SCHEME, scheme_reason(url))
        length = len(url) if url.isascii() else len(url.encode("utf-8", "surrogatepass"))
        if length > self._max_url_bytes:
            reason = f"It is {length} bytes long; the limit is {self._max_url_bytes}."
            return Rejection(RejectFilter.LENGTH, reason)
        if depth > self._max_depth:
            return Rejection(
                RejectFilter.DEPTH, f"It is {depth} links away from a seed; the limit is {self._max_depth}."
            )
        start, end = path_of(url)
        for name, reason_of in self._filters:
            reason = reason_of(url, start, end)
            if reason:
                return Rejection(name, reason)
        return None
