"""Hosts that stand out: more links to traps, or more duplicates, than hosts of their size have.

Two measures of a host, both from 0 to 1:

- duplicates: of its captures, those whose content another URL has;
- trap links: t / (1 + t) with t the links a capture to URLs of its own that a filter for traps
  turned away (`TRAP_FILTERS`).

A host is compared with those of its size class, floor(log2(captures)); a class of fewer than
`CLASS_HOSTS` hosts is judged by all hosts. Its counts are first lowered by twice their square root,
so that a handful says nothing; those of the hosts it is compared with are not. A measure stands out
above

    median + k * max(1.4826 * MAD, least deviation),   k = 5

(MAD: median absolute deviation; 1.4826 makes it the standard deviation of a normal distribution:
Leys et al., "Detecting outliers", J. Exp. Soc. Psych. 49, 2013). The score is how far of the way
from there to 1 the measure is; that of a host is its greater one.

Medians come from counts of hosts by class and hundredth of each measure: a few thousand rows
whatever the number of hosts, and the same result whatever their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

#: Captures below which a host is not judged.
LEAST_CAPTURES = 10
#: Deviations above the median from which on a measure stands out.
K = 5.0
#: A class whose hosts are all alike deviates by this at least.
LEAST_DEVIATION = 0.05
#: Hosts from which on a size class has a median of its own.
CLASS_HOSTS = 30
#: A host of this score is worth this much less to the frontier; a score of 1 leaves a tenth.
SCORE_WEIGHT = 0.9

_MAD_TO_DEVIATION = 1.4826
_BINS = 100


def duplicate_measure(duplicates: float, captures: int) -> float:
    """The share of duplicates, 0 to 1."""
    return duplicates / max(1, captures)


def trap_measure(trap_links: float, captures: int) -> float:
    """Trap links a capture, drawn to 0 to 1."""
    a_capture = trap_links / max(1, captures)
    return a_capture / (1.0 + a_capture)


def size_class(captures: int) -> int:
    """Hosts of one class have at most twice as many captures as each other."""
    return max(0, captures.bit_length() - 1)


def _lowered(count: int) -> float:
    """A count less what chance may do."""
    return max(0.0, count - 2.0 * math.sqrt(count))


@dataclass(frozen=True)
class Norm:
    """Above what a measure stands out, in hosts of a size."""

    median: float
    deviation: float

    @property
    def threshold(self) -> float:
        """median + k deviations."""
        return self.median + K * max(self.deviation, LEAST_DEVIATION)

    def score(self, measure: float) -> float:
        """0 up to the threshold, 1 for a measure of 1."""
        room = 1.0 - self.threshold
        return max(0.0, (measure - self.threshold) / room) if room > 0 else 0.0


@dataclass(frozen=True)
class HostNorms:
    """Norms of both measures by size class; None: of all hosts."""

    duplicates: Mapping[int | None, Norm]
    trap_links: Mapping[int | None, Norm]

    @classmethod
    def of_counts(cls, rows: Iterable[tuple[int, int, int, int]]) -> HostNorms | None:
        """From rows of `COUNTS_SQL`; None without any host."""
        counted = sorted(rows)
        if not counted:
            return None
        return cls(_norms([(c, d, n) for c, d, _, n in counted]), _norms([(c, t, n) for c, _, t, n in counted]))

    def score(self, captures: int, duplicates: int, trap_links: int) -> float:
        """The trap score of a host, 0 to 1."""
        if captures < LEAST_CAPTURES:
            return 0.0
        of_size = size_class(captures)
        return max(
            _of(self.duplicates, of_size).score(duplicate_measure(_lowered(duplicates), captures)),
            _of(self.trap_links, of_size).score(trap_measure(_lowered(trap_links), captures)),
        )


def _of(norms: Mapping[int | None, Norm], of_size: int) -> Norm:
    return norms.get(of_size, norms[None])


def _norms(rows: list[tuple[int, int, int]]) -> dict[int | None, Norm]:
    """From (class, bin, hosts), sorted by class."""
    found: dict[int | None, Norm] = {None: _norm([(b, n) for _, b, n in rows])}
    for of_size, members in groupby(rows, key=lambda row: row[0]):
        bins = [(b, n) for _, b, n in members]
        if sum(n for _, n in bins) >= CLASS_HOSTS:
            found[of_size] = _norm(bins)
    return found


def _norm(bins: list[tuple[int, int]]) -> Norm:
    median = _median(bins)
    return Norm(median / _BINS, _MAD_TO_DEVIATION * _median([(abs(b - median), n) for b, n in bins]) / _BINS)


def _median(bins: list[tuple[int, int]]) -> int:
    """The lower median of values that stand in bins with counts."""
    half = (sum(count for _, count in bins) + 1) // 2
    seen = 0
    for value, count in sorted(bins):
        seen += count
        if seen >= half:
            return value
    return 0


def _measures_sql(captures: str, duplicates: str, trap_links: str) -> tuple[str, str]:
    least_one = f"greatest(CAST(1 AS DOUBLE), CAST({captures} AS DOUBLE))"
    a_capture = f"(CAST({trap_links} AS DOUBLE) / {least_one})"
    one = "CAST(1 AS DOUBLE)"
    return f"(CAST({duplicates} AS DOUBLE) / {least_one})", f"({a_capture} / ({one} + {a_capture}))"


def _lowered_sql(count: str) -> str:
    return f"greatest(0D, {count} - 2D * sqrt({count}))"


def counts_sql(table: str) -> str:
    """SQL, for any engine, of (size class, hundredth of duplicates, hundredth of trap links, hosts)."""
    duplicates, trap_links = _measures_sql("page_count", "duplicate_count", "trap_link_count")
    bins = [f"CAST(floor({measure} * {_BINS}) AS INT)" for measure in (duplicates, trap_links)]
    of_size = "CAST(floor(log2(CAST(page_count AS DOUBLE))) AS INT)"
    return (
        f"SELECT of_size, duplicate_bin, trap_bin, count(*) AS hosts FROM (SELECT {of_size} AS of_size, "
        f"{bins[0]} AS duplicate_bin, {bins[1]} AS trap_bin FROM {table} WHERE page_count >= {LEAST_CAPTURES}) "
        "AS measured GROUP BY of_size, duplicate_bin, trap_bin"
    )


def score_sql(norms: HostNorms | None, captures: str, duplicates: str, trap_links: str) -> str:
    """SQL of `HostNorms.score`; DOUBLE. Without norms nothing stands out."""
    if norms is None:
        return "0D"
    measures = _measures_sql(captures, _lowered_sql(duplicates), _lowered_sql(trap_links))
    scores = [
        _score_sql(by_class, captures, measure)
        for by_class, measure in zip((norms.duplicates, norms.trap_links), measures, strict=True)
    ]
    return f"CASE WHEN {captures} < {LEAST_CAPTURES} THEN 0D ELSE greatest({', '.join(scores)}) END"


def _score_sql(by_class: Mapping[int | None, Norm], captures: str, measure: str) -> str:
    def of(norm: Norm) -> str:
        room = 1.0 - norm.threshold
        return f"greatest(0D, ({measure} - {norm.threshold!r}D) / {room!r}D)" if room > 0 else "0D"

    cases = [f"WHEN {of_size} THEN {of(norm)}" for of_size, norm in by_class.items() if of_size is not None]
    if not cases:
        return of(by_class[None])
    of_size = f"CAST(floor(log2(CAST({captures} AS DOUBLE))) AS INT)"
    return f"CASE {of_size} {' '.join(cases)} ELSE {of(by_class[None])} END"


def trap_factor(score: float) -> float:
    """The factor of a host's trap score on the crawl values of its URLs: from 1 down to 0.1."""
    return 1.0 - SCORE_WEIGHT * min(max(score, 0.0), 1.0)


def trap_factor_sql(score: str) -> str:
    """SQL of `trap_factor`; DOUBLE; a NULL score is 0."""
    return f"(1D - {SCORE_WEIGHT}D * least(greatest(coalesce({score}, 0D), 0D), 1D))"
