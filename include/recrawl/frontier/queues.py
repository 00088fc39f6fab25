"""Front queues: which of the due URLs a round takes.

Weights are floors. Each queue is first guaranteed floor(weight * capacity) of its own best; what
is left of the capacity goes to the best of all queues together, manual URLs before the others.
Within a queue the order is crawl value, then a hash of the URL seeded with the round (so that
equal values are not always taken from the same end), then url_id.

`take` is the oracle. At scale no task may sort a whole queue, so the job does the same in two
small steps; what is taken of a queue is always a prefix of its order:

1. `GROUP BY queue, band` with `band_sql` counts the due URLs by narrow bands of value (16 to a
   doubling, a few thousand rows in all). From these counts `plan_cuts` finds, for each queue, the
   band in which its guaranteed part ends, and the band in which the rest ends.
2. A row above its cut is taken, a row below is not, by comparison alone (`above_cut_sql`). Only
   rows *in* a cut band (`in_cut_sql`) go through
   `row_number() OVER (PARTITION BY queue ORDER BY <order_sql>) <= taken_in_band`.
   For the rest there is one cut for all queues, on `rest_band_sql`, over rows not guaranteed.

A predicate `guaranteed` OR `rest` over the two windows yields the plan; the others are skips with
the reason `capacity`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import xxhash

from recrawl.tables.vocabulary import FrontQueue
from recrawl.urls.keys import SPARK_XXHASH64_SEED

#: Bands to a doubling of the value: within one, values differ by less than 4.5 %.
BANDS_PER_DOUBLING = 16

#: Bands lie within +-1,200 doublings; a value of 0 has the band below all others.
ZERO_BAND = -20_000

#: Added to the band of manual URLs where all queues compete, so that they come first.
MANUAL_BAND_RISE = 100_000


@dataclass(frozen=True)
class Due:
    """A URL that may be taken: its queue and its crawl value (finite, not negative)."""

    url_id: int
    queue: FrontQueue
    value: float


@dataclass(frozen=True)
class Cut:
    """Where a prefix ends: all above `band` are taken, and the first `taken_in_band` within it."""

    band: int
    taken_in_band: int


@dataclass(frozen=True)
class Cuts:
    """The end of each queue's guaranteed part, and of the rest (in bands of `rest_band_sql`)."""

    guaranteed: Mapping[FrontQueue, Cut]
    rest: Cut


#: A cut that takes nothing: no band lies above it.
NOTHING = Cut(band=2 * MANUAL_BAND_RISE, taken_in_band=0)


def _xxhash64(value: int) -> int:
    digest = xxhash.xxh64_intdigest(struct.pack("<q", value), SPARK_XXHASH64_SEED)
    return digest - (1 << 64) if digest >= 1 << 63 else digest


def round_seed(round_id: str) -> int:
    """The round's seed, signed 64-bit: Spark's xxhash64 of the round id."""
    digest = xxhash.xxh64_intdigest(round_id.encode("utf-8"), SPARK_XXHASH64_SEED)
    return digest - (1 << 64) if digest >= 1 << 63 else digest


def tie_hash(url_id: int, seed: int) -> int:
    """Breaks ties differently in each round: xxhash64(url_id ^ seed), signed 64-bit."""
    return _xxhash64(url_id ^ seed)


def tie_hash_sql(url_id: str, seed: int) -> str:
    """SQL of `tie_hash`; BIGINT. The seed stands as text, for -2^63 is no literal."""
    return f"xxhash64({url_id} ^ CAST('{seed}' AS BIGINT))"


def band(value: float) -> int:
    """The band of a value: floor(16 * log2(value)); greater values never have lesser bands."""
    return ZERO_BAND if value <= 0.0 else math.floor(math.log2(value) * BANDS_PER_DOUBLING)


def band_sql(value: str) -> str:
    """SQL of `band`; INT. (Where log2 rounds otherwise than Python's, a value at the very edge may
    fall into the next band: the job uses the SQL for counts and cuts alike, so its cuts agree.)
    """
    known = f"floor(log2({value}) * {BANDS_PER_DOUBLING}D)"
    return f"CAST(CASE WHEN coalesce({value}, 0D) <= 0D THEN {ZERO_BAND} ELSE {known} END AS INT)"


def rest_band_sql(queue: str, band_of_row: str) -> str:
    """SQL of the band where all queues compete; INT."""
    return f"({band_of_row} + CASE WHEN {queue} = '{FrontQueue.MANUAL}' THEN {MANUAL_BAND_RISE} ELSE 0 END)"


def order_sql(value: str, url_id: str, seed: int) -> str:
    """SQL of the order within a queue or band, for the ORDER BY of a window."""
    return f"coalesce({value}, 0D) DESC, {tie_hash_sql(url_id, seed)} ASC, {url_id} ASC"


def above_cut_sql(band_of_row: str, cut: Cut) -> str:
    """SQL predicate: the row is taken by its band alone."""
    return f"{band_of_row} > {cut.band}"


def in_cut_sql(band_of_row: str, cut: Cut) -> str:
    """SQL predicate: the row is in the band of the cut and its row number (<= `taken_in_band`) decides."""
    return f"{band_of_row} = {cut.band}"


def guaranteed_counts(capacity: int, weights: Mapping[FrontQueue, float]) -> dict[FrontQueue, int]:
    """URLs guaranteed to each queue: floor(weight * capacity). ValueError if the weights pass 1 together."""
    if math.fsum(weights.values()) > 1.0 + 1e-9 or any(weight < 0 for weight in weights.values()):
        raise ValueError(f"the weights of front queues must not be negative or sum to more than 1: {dict(weights)}")
    counts: dict[FrontQueue, int] = {}
    left = capacity
    for queue in FrontQueue:
        counts[queue] = min(left, math.floor(weights.get(queue, 0.0) * capacity + 1e-9))
        left -= counts[queue]
    return counts


def _prefix_cut(counts: Mapping[int, int], wanted: int) -> tuple[Cut, dict[int, int]]:
    """The cut after `wanted` rows in falling bands, and what each band has left behind it."""
    left = {b: n for b, n in counts.items() if n > 0}
    cut = NOTHING
    for b in sorted(left, reverse=True):
        if wanted <= 0:
            break
        taken = min(wanted, left[b])
        cut = Cut(b, taken)
        left[b] -= taken
        wanted -= taken
    return cut, {b: n for b, n in left.items() if n > 0}


def plan_cuts(counts: Mapping[tuple[FrontQueue, int], int], capacity: int, weights: Mapping[FrontQueue, float]) -> Cuts:
    """The cuts that `take` would make, from the number of due URLs by queue and band.

    A queue that can't use its guarantee leaves it to the rest.
    """
    guaranteed: dict[FrontQueue, Cut] = {}
    rest: dict[int, int] = {}
    used = 0
    for queue, wanted in guaranteed_counts(capacity, weights).items():
        own = {b: n for (q, b), n in counts.items() if q == queue}
        guaranteed[queue], left = _prefix_cut(own, wanted)
        used += sum(own.values()) - sum(left.values())
        rise = MANUAL_BAND_RISE if queue == FrontQueue.MANUAL else 0
        for b, n in left.items():
            rest[b + rise] = rest.get(b + rise, 0) + n
    return Cuts(guaranteed, _prefix_cut(rest, capacity - used)[0])


def take(due: Iterable[Due], capacity: int, weights: Mapping[FrontQueue, float], seed: int) -> list[Due]:
    """The URLs that a round takes, best first within guaranteed and rest: the oracle.

    Args:
        due: candidates after quotas. capacity: URLs of the round.
        weights: share of the capacity guaranteed to each queue. seed: `round_seed`.
    """

    def place(row: Due) -> tuple[float, int, int]:
        return -row.value, tie_hash(row.url_id, seed), row.url_id

    ordered = sorted(due, key=place)
    taken: list[Due] = []
    rest: list[Due] = []
    for queue, wanted in guaranteed_counts(capacity, weights).items():
        own = [row for row in ordered if row.queue == queue]
        taken += own[:wanted]
        rest += own[wanted:]
    rest.sort(key=lambda row: (row.queue != FrontQueue.MANUAL, *place(row)))
    return taken + rest[: capacity - len(taken)]
