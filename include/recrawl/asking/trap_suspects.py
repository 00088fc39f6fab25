"""Crawler traps for a person to judge: URL prefixes of hosts that stand out, each with its evidence.

Hosts come from `hosts.trap_score` (`recrawl.rank.trap_scores`). Within one, URLs are grouped by the
first segment of their path; a group is a suspect when filters for traps turned at least
`LEAST_TURNED_AWAY` of its URLs away and no fewer than are known, or when at least `LEAST_DUPLICATES`
of its URLs are duplicates and four in five are. Accepting one makes its prefix a filter rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import xxhash

from recrawl.asking.reader import Reader
from recrawl.errors import UsageError
from recrawl.tables.vocabulary import TRAP_FILTERS, UrlState
from recrawl.urls.canonical import host_of
from recrawl.urls.filters import path_of

LEAST_TURNED_AWAY = 10
LEAST_DUPLICATES = 20
DUPLICATE_SHARE = 0.8

#: Hosts looked into, those of the highest scores, and URLs read of each table.
MAX_HOSTS = 200
_MAX_URLS = 500_000
_EXAMPLES = 3


@dataclass(frozen=True)
class Suspect:
    """A prefix that looks like a trap.

    Attributes:
        suspect_id: names it in `recrawl trap accept`; the same as long as the prefix is.
        prefix: what a rule would turn away.
        trap_score, captures, duplicates, trap_links: of the host.
        known, known_duplicates: URLs with the prefix that are known, and of these duplicates.
        turned_away: URLs with the prefix that filters for traps turned away.
        filters: which filters those were.
        test_url: a URL that the rule must turn away.
        examples: some more.
    """

    suspect_id: str
    host: str
    prefix: str
    trap_score: float
    captures: int
    duplicates: int
    trap_links: int
    known: int
    known_duplicates: int
    turned_away: int
    filters: tuple[str, ...]
    test_url: str
    examples: tuple[str, ...]

    @property
    def evidence(self) -> str:
        """One sentence."""
        said = [f"{self.known} URLs known"]
        if self.turned_away:
            said.append(f"{self.turned_away} turned away by {', '.join(self.filters)}")
        if self.known_duplicates:
            said.append(f"{self.known_duplicates} duplicates")
        return "; ".join(said)


@dataclass
class _Group:
    known: list[str] = field(default_factory=list)
    duplicates: int = 0
    turned_away: dict[str, str] = field(default_factory=dict)

    @property
    def is_suspect(self) -> bool:
        away = len(self.turned_away)
        copied = self.duplicates >= max(LEAST_DUPLICATES, DUPLICATE_SHARE * len(self.known))
        return (away >= LEAST_TURNED_AWAY and away >= len(self.known)) or copied


def trap_suspects(reader: Reader, host: str | None = None) -> list[Suspect]:
    """The suspects, those of the most conspicuous hosts first.

    Args:
        host: look into this host alone, whatever its score.
    """
    wanted = "trap_score > 0" if host is None else f"host = {_text(host)}"
    hosts = reader.query(
        "SELECT host, bucket, page_count, duplicate_count, trap_link_count, trap_score FROM hosts "
        f"WHERE {wanted} ORDER BY trap_score DESC, host LIMIT {MAX_HOSTS}"
    ).to_pylist()
    if not hosts:
        return []
    groups = _groups(reader, hosts)
    return [
        _suspect(row, first, group)
        for row in hosts
        for first, group in sorted(groups[row["host"]].items())
        if first and group.is_suspect
    ]


def suspect_named(suspects: Iterable[Suspect], suspect_id: str) -> Suspect:
    """The suspect of an id. Raises UsageError when there is none."""
    for suspect in suspects:
        if suspect.suspect_id == suspect_id:
            return suspect
    raise UsageError(f"No suspect has the id {suspect_id!r}.", "`recrawl trap suspects` lists them.")


def _groups(reader: Reader, hosts: list[dict[str, Any]]) -> dict[str, dict[str, _Group]]:
    """host → first segment → group."""
    names = ", ".join(_text(row["host"]) for row in hosts)
    buckets = ", ".join(str(bucket) for bucket in sorted({row["bucket"] for row in hosts}))
    filters = ", ".join(_text(name.value) for name in sorted(TRAP_FILTERS))
    known = reader.query(
        f"SELECT url, state FROM urls WHERE bucket IN ({buckets}) AND host IN ({names}) ORDER BY url LIMIT {_MAX_URLS}"
    )
    rejects = reader.query(
        f"SELECT DISTINCT dst_url, filter FROM rejects WHERE step = 'parse' AND filter IN ({filters}) "
        f"AND split_part(split_part(dst_url, '://', 2), '/', 1) IN ({names}) ORDER BY dst_url LIMIT {_MAX_URLS}"
    )
    groups: dict[str, dict[str, _Group]] = defaultdict(lambda: defaultdict(_Group))
    for row in known.to_pylist():
        group = groups[host_of(row["url"])][_first_segment(row["url"])]
        group.known.append(row["url"])
        group.duplicates += row["state"] == UrlState.DUPLICATE
    for row in rejects.to_pylist():
        groups[host_of(row["dst_url"])][_first_segment(row["dst_url"])].turned_away[row["dst_url"]] = row["filter"]
    return groups


def _first_segment(url: str) -> str:
    start, end = path_of(url)
    return url[start + 1 : end].partition("/")[0].partition(";")[0]


def _suspect(row: dict[str, Any], first: str, group: _Group) -> Suspect:
    urls = sorted({*group.turned_away, *group.known})
    prefix = _prefix(urls, first)
    examples = sorted(group.turned_away)[:_EXAMPLES] or sorted(group.known)[:_EXAMPLES]
    return Suspect(
        suspect_id=f"{xxhash.xxh64_intdigest(prefix.encode()):016x}"[:8],
        host=row["host"],
        prefix=prefix,
        trap_score=round(row["trap_score"], 3),
        captures=row["page_count"],
        duplicates=row["duplicate_count"],
        trap_links=row["trap_link_count"],
        known=len(group.known),
        known_duplicates=group.duplicates,
        turned_away=len(group.turned_away),
        filters=tuple(sorted(set(group.turned_away.values()))),
        test_url=examples[0],
        examples=tuple(examples),
    )


def _prefix(urls: list[str], first: str) -> str:
    """Scheme, host and first segment of the first URL, with what follows it in all of them."""
    start, _ = path_of(urls[0])
    prefix = urls[0][: start + 1] + first
    following = {url[len(prefix) : len(prefix) + 1] for url in urls if url.startswith(prefix)}
    return prefix + following.pop() if len(following) == 1 else prefix


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
