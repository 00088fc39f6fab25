"""Was the crawler polite? Computed from the server's log alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from protego import Protego

from tests.web.log import Hit

ROBOTS_PATH = "/robots.txt"


class Audit:
    """Findings about a log of requests.

    Args:
        hits: the log.
        robots: the rules that each host showed; None where it showed none that bind.
        port: the port in the URLs of all hosts.
    """

    def __init__(self, hits: Iterable[Hit], robots: Mapping[str, str | None], port: int) -> None:
        self.hits = sorted(hits, key=lambda hit: hit.started_seconds)
        self._robots = robots
        self._port = port

    def max_concurrency(self) -> dict[str, int]:
        """The most requests that were open at one time, by host."""
        return {host: _most_open(hits) for host, hits in self._grouped(lambda hit: hit.host).items()}

    def min_gap_seconds(self) -> dict[str, float]:
        """The least time from the end of an answer to the next request, by host; negative if they overlapped.

        Hosts with one request are left out.
        """
        return self._min_gaps(lambda hit: hit.host)

    def min_gap_seconds_by_address(self) -> dict[str, float]:
        """As `min_gap_seconds`, by IP address."""
        return self._min_gaps(lambda hit: hit.address)

    def content_before_robots(self) -> list[Hit]:
        """Requests for content of a host before its robots.txt had been answered."""
        answered: dict[str, float] = {}
        for hit in self.hits:
            if hit.path == ROBOTS_PATH and hit.host not in answered:
                answered[hit.host] = hit.ended_seconds
        return [
            hit
            for hit in self.hits
            if hit.path != ROBOTS_PATH and hit.started_seconds < answered.get(hit.host, float("inf"))
        ]

    def disallowed_hits(self, agent: str) -> list[Hit]:
        """Requests that the host's robots.txt forbids to `agent`, as protego reads it."""
        found = []
        parsers = {host: Protego.parse(text) for host, text in self._robots.items() if text is not None}
        for hit in self.hits:
            parser = parsers.get(hit.host)
            url = f"http://{hit.host}:{self._port}{hit.path}"
            if parser is not None and hit.path != ROBOTS_PATH and not parser.can_fetch(url, agent):
                found.append(hit)
        return found

    def repeated(self) -> dict[tuple[str, str], int]:
        """How often each (host, path) was asked for, where that is more than once; robots.txt too."""
        counts = Counter((hit.host, hit.path) for hit in self.hits)
        return {place: count for place, count in counts.items() if count > 1}

    def _grouped(self, key: Callable[[Hit], str]) -> dict[str, list[Hit]]:
        groups: dict[str, list[Hit]] = defaultdict(list)
        for hit in self.hits:
            groups[key(hit)].append(hit)
        return groups

    def _min_gaps(self, key: Callable[[Hit], str]) -> dict[str, float]:
        gaps = {}
        for name, hits in self._grouped(key).items():
            if len(hits) > 1:
                latest_end = hits[0].ended_seconds
                least = float("inf")
                for earlier, later in pairwise(hits):
                    latest_end = max(latest_end, earlier.ended_seconds)
                    least = min(least, later.started_seconds - latest_end)
                gaps[name] = least
        return gaps


def _most_open(hits: list[Hit]) -> int:
    # At one moment an end counts before a start: the next request may come at once.
    moments = [(hit.started_seconds, 1) for hit in hits] + [(hit.ended_seconds, -1) for hit in hits]
    open_now = most = 0
    for _, change in sorted(moments):
        open_now += change
        most = max(most, open_now)
    return most
