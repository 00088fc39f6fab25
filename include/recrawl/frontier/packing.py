"""Packing hosts into fetch partitions, so that all end at about the same time.

A partition is one task of the fetch step; there are as many as slots, one wave. Hosts that must
not meet two tasks at once form a *group*: those of one registered domain, and domains known to
share an IP address. A group lies in exactly one partition. Zones are packed one by one.

Predicted seconds of a partition = max(its longest host, requests / task rate, bytes / bandwidth).
The longest host does not add up (hosts wait side by side), so what is balanced is the *work*
max(requests / rate, bytes / bandwidth), in whole microseconds to be the same in Python and SQL.

Groups whose work passes 1 % of a partition are few (at most 100 a partition): they are placed one
by one on the driver, heaviest first, onto the least loaded partition (LPT; Graham 1969: at most
4/3 of the best). All the others are laid, in the order of a hash, end to end into the room that
is left; where the running sum stands is the partition. That running sum is SQL (`running_sum_sql`)
over slices, so that no task sorts all groups.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

#: A group with more than this part of a partition's work is placed by itself.
BIG_PARTS = 100

#: Slices of the running sum; each is summed by one task.
SLICES = 4_096

#: Addresses with more domains than this are shared hosting or CDNs: they hold no group together,
#: or one group would hold half of the web.
MAX_DOMAINS_PER_IP = 50

#: Rounds of label passing that join domains over shared addresses.
LABEL_PASSES = 3

_MICROS = 1_000_000


@dataclass(frozen=True)
class TaskPace:
    """What one fetch task achieves: requests a second and bytes a second, both positive."""

    requests_per_second: float
    bytes_per_second: float


@dataclass(frozen=True)
class HostGroup:
    """Hosts that stay together.

    Attributes:
        group: its key. requests: planned. bytes: expected.
        longest_host_seconds: the most that one of its hosts takes, requests times delay.
    """

    group: str
    requests: int
    longest_host_seconds: float
    bytes: int


@dataclass(frozen=True)
class PartitionForecast:
    """What a partition is expected to take; `longest_group` holds its slowest host."""

    partition: int
    groups: int
    requests: int
    bytes: int
    seconds: float
    longest_group: str


@dataclass(frozen=True)
class Packing:
    """Where groups go.

    Attributes:
        placed: the big groups, one by one.
        boundaries: microseconds of running sum at which the next partition of `order` begins.
        order: the partitions that still had room, one more than `boundaries`.
    """

    placed: Mapping[str, int]
    boundaries: tuple[int, ...]
    order: tuple[int, ...]

    def partition_at(self, running_sum_before: int) -> int:
        """The partition of a small group before which the running sum stands at this many microseconds."""
        return self.order[bisect_right(self.boundaries, running_sum_before)]


def work_micros(requests: int, expected_bytes: int, pace: TaskPace) -> int:
    """The work of a group in microseconds of a task, at least 1."""
    seconds = max(requests / pace.requests_per_second, expected_bytes / pace.bytes_per_second)
    return max(1, math.ceil(seconds * _MICROS))


def work_micros_sql(requests: str, expected_bytes: str, pace: TaskPace) -> str:
    """SQL of `work_micros`; BIGINT."""
    by_requests = f"CAST({requests} AS DOUBLE) / {float(pace.requests_per_second)!r}D"
    by_bytes = f"CAST({expected_bytes} AS DOUBLE) / {float(pace.bytes_per_second)!r}D"
    return f"greatest(1L, CAST(ceil(greatest({by_requests}, {by_bytes}) * {_MICROS}D) AS BIGINT))"


def big_from_micros(total_work_micros: int, partitions: int) -> int:
    """Work from which on a group is placed by itself: more than 1 % of an even partition."""
    return total_work_micros // (partitions * BIG_PARTS) + 1


def _room_of_partitions(loads: Sequence[int], small_work: int) -> list[int]:
    """Microseconds to pour into each partition so that all it fills stand at one level; sums to `small_work`."""
    by_load = sorted(range(len(loads)), key=lambda p: (loads[p], p))
    sums = list(accumulate(loads[p] for p in by_load))
    filled = 1
    while filled < len(loads) and loads[by_load[filled]] * filled - sums[filled - 1] < small_work:
        filled += 1
    level, extra = divmod(small_work + sums[filled - 1], filled)
    rooms = [0] * len(loads)
    for place, partition in enumerate(by_load[:filled]):
        rooms[partition] = level + (1 if place < extra else 0) - loads[partition]
    return rooms


def pack(big: Iterable[tuple[str, int]], small_work_micros: int, partitions: int) -> Packing:
    """Places the big groups and cuts the room for the rest.

    Args:
        big: (group, work in microseconds) of every group from `big_from_micros` on.
        small_work_micros: the sum of all other groups' work.
        partitions: how many there are, at least 1.
    """
    if partitions < 1:
        raise ValueError(f"there must be a partition, not {partitions}")
    heap = [(0, partition) for partition in range(partitions)]
    loads = [0] * partitions
    placed: dict[str, int] = {}
    for group, work in sorted(big, key=lambda item: (-item[1], item[0])):
        load, partition = heapq.heappop(heap)
        placed[group] = partition
        loads[partition] = load + work
        heapq.heappush(heap, (load + work, partition))
    rooms = _room_of_partitions(loads, small_work_micros)
    order = tuple(partition for partition in range(partitions) if rooms[partition] > 0) or (0,)
    boundaries = tuple(accumulate(rooms[partition] for partition in order))[:-1]
    return Packing(placed, boundaries, order)


def slice_sql(group: str) -> str:
    """SQL of the slice of a group, 0 to 4,095; INT."""
    return f"CAST(pmod(xxhash64({group}), {SLICES}) AS INT)"


def running_sum_sql(work: str, group: str, slice_offset: str) -> str:
    """SQL of the running sum before a small group, microseconds; BIGINT.

    Args:
        work: `work_micros_sql`. group: its key.
        slice_offset: the work of all lower slices, from the 4,096 sums by `slice_sql` (a window
            over those few rows, joined back by broadcast).
    """
    window = (
        f"PARTITION BY {slice_sql(group)} ORDER BY xxhash64({group}), {group} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    )
    return f"({slice_offset} + sum({work}) OVER ({window}) - {work})"


def partition_sql(running_sum_before: str, packing: Packing) -> str:
    """SQL of `Packing.partition_at`; INT. The boundaries stand in the text as one array of literals."""
    order = f"array({', '.join(str(partition) for partition in packing.order)})"
    if not packing.boundaries:
        return f"{order}[0]"
    boundaries = f"array({', '.join(f'{boundary}L' for boundary in packing.boundaries)})"
    return f"{order}[size(filter({boundaries}, b -> b <= {running_sum_before}))]"


def predicted_seconds(longest_host_seconds: float, requests: int, expected_bytes: int, pace: TaskPace) -> float:
    """Predicted seconds of a partition: max(longest host, requests / rate, bytes / bandwidth)."""
    by_requests = requests / pace.requests_per_second
    return max(longest_host_seconds, by_requests, expected_bytes / pace.bytes_per_second)


def forecast(partition: int, groups: Sequence[HostGroup], pace: TaskPace) -> PartitionForecast:
    """What a partition with these groups is expected to take."""
    longest = max(groups, key=lambda g: (g.longest_host_seconds, g.group), default=HostGroup("", 0, 0.0, 0))
    requests = sum(g.requests for g in groups)
    size = sum(g.bytes for g in groups)
    seconds = predicted_seconds(longest.longest_host_seconds, requests, size, pace)
    return PartitionForecast(partition, len(groups), requests, size, seconds, longest.group)


def predicted_finish(start: datetime, forecasts: Iterable[PartitionForecast], time_budget_seconds: float) -> datetime:
    """When the fetch step ends: with its slowest partition, or at the deadline if that comes first."""
    seconds = max((f.seconds for f in forecasts), default=0.0)
    return start + timedelta(seconds=min(seconds, time_budget_seconds))


def groups_by_address(
    addresses: Mapping[str, Iterable[str]],
    max_domains_per_ip: int = MAX_DOMAINS_PER_IP,
    passes: int = LABEL_PASSES,
) -> dict[str, str]:
    """The group of each registered domain: domains that share an address get one label.

    Each pass gives a domain the least label found at any of its addresses; an address of more
    than `max_domains_per_ip` domains joins nothing. In SQL one pass is
    `min(label) OVER (PARTITION BY ip)` and then `min(label) GROUP BY domain`, on (domain, ip)
    rows of crowded addresses filtered out before. Chains longer than the passes stay in several
    groups, which costs politeness towards an address nothing but the width of the gap between tasks.
    """
    domains_at: dict[str, set[str]] = {}
    for domain, ips in addresses.items():
        for ip in ips:
            domains_at.setdefault(ip, set()).add(domain)
    shared = [domains for domains in domains_at.values() if 1 < len(domains) <= max_domains_per_ip]
    labels = {domain: domain for domain in addresses}
    for _ in range(passes):
        new = dict(labels)
        for domains in shared:
            least = min(labels[domain] for domain in domains)
            for domain in domains:
                new[domain] = min(new[domain], least)
        labels = new
    return labels
