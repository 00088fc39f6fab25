"""The back queues: a FIFO a host, in memory as far as a bound allows, behind that in a scratch file.

A plan of hundreds of thousands of URLs then costs a task the heads of its queues and no more.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from recrawl.fetch.spill import Place, SpillFile

T = TypeVar("T")

#: Items that all queues of a task hold in memory before they spill.
MAX_HELD_ITEMS = 10_000
#: Items that each queue may hold beyond that: its head never waits for the disk.
HEAD_ITEMS = 4
#: Items read back at once.
BLOCK_ITEMS = 8


class _Block(NamedTuple):
    place: Place
    items: int


class QueueRoom:
    """What the back queues of a task share: the count of items in memory, and the scratch file."""

    def __init__(self, spill: SpillFile | None = None, max_held_items: int = MAX_HELD_ITEMS) -> None:
        self.spill = spill or SpillFile()
        self.max_held_items = max_held_items
        self.held_items = 0


class BackQueue(Generic[T]):
    """One host's FIFO of (not before, item); items that are spilled have to be picklable."""

    __slots__ = ("_blocks", "_held", "_room", "_spilled_items")

    def __init__(self, room: QueueRoom) -> None:
        self._room = room
        self._held: deque[tuple[float, T]] = deque()
        self._blocks: deque[_Block] | None = None  # most queues never spill
        self._spilled_items = 0

    def __len__(self) -> int:
        return len(self._held) + self._spilled_items

    def first_not_before(self) -> float:
        """When the first item may start; the queue is not empty."""
        return self._held[0][0]

    def extend(self, items: Sequence[tuple[float, T]]) -> None:
        """Append items in their order."""
        kept = 0 if self._blocks else min(len(items), self._free_places())
        self._hold(items[:kept])
        for start in range(kept, len(items), BLOCK_ITEMS):
            block = list(items[start : start + BLOCK_ITEMS])
            place = self._room.spill.append(pickle.dumps(block, pickle.HIGHEST_PROTOCOL))
            if self._blocks is None:
                self._blocks = deque()
            self._blocks.append(_Block(place, len(block)))
            self._spilled_items += len(block)

    def push_front(self, item: T) -> None:
        """Put an item, which may start at once, before all others."""
        self._held.appendleft((0.0, item))
        self._room.held_items += 1

    def pop(self) -> T:
        """Take the first item; the queue is not empty."""
        _, item = self._held.popleft()
        self._room.held_items -= 1
        if not self._held and self._blocks:
            self._hold(self._next_block(self._blocks))
        return item

    def take_all(self) -> Iterator[T]:
        """Empty the queue; its items, which are read back as they are asked for."""
        held, blocks = self._held, self._blocks or deque()
        self._held, self._blocks, self._spilled_items = deque(), None, 0
        self._room.held_items -= len(held)
        return self._all_of(held, blocks)

    def _all_of(self, held: deque[tuple[float, T]], blocks: deque[_Block]) -> Iterator[T]:
        for _, item in held:
            yield item
        for block in blocks:
            for _, item in self._read(block):
                yield item

    def _free_places(self) -> int:
        return max(0, HEAD_ITEMS - len(self._held), self._room.max_held_items - self._room.held_items)

    def _hold(self, items: Sequence[tuple[float, T]]) -> None:
        self._held.extend(items)
        self._room.held_items += len(items)

    def _next_block(self, blocks: deque[_Block]) -> list[tuple[float, T]]:
        block = blocks.popleft()
        self._spilled_items -= block.items
        return self._read(block)

    def _read(self, block: _Block) -> list[tuple[float, T]]:
        items: list[tuple[float, T]] = pickle.loads(self._room.spill.read(block.place))
        return items
