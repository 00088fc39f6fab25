"""Back queues: FIFO whatever is in memory and what is not, bounded memory, nothing lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.fetch.back_queues import BLOCK_ITEMS, HEAD_ITEMS, BackQueue, QueueRoom
from recrawl.fetch.spill import SpillFile


@pytest.fixture
def spill(tmp_path: Path) -> Iterator[SpillFile]:
    file = SpillFile(tmp_path)
    yield file
    file.close()


@given(
    st.lists(st.one_of(st.integers(1, 70), st.sampled_from(["pop", "front", "all"])), max_size=40),
    st.integers(0, 60),
)
def test_a_queue_is_a_queue(steps: list[int | str], bound: int) -> None:
    spill = SpillFile()
    queues: list[BackQueue[int]] = []
    room = QueueRoom(spill, bound)
    queues = [BackQueue(room), BackQueue(room)]
    models: list[deque[int]] = [deque(), deque()]
    counter = 0
    for turn, step in enumerate(steps):
        queue, model = queues[turn % 2], models[turn % 2]
        if isinstance(step, int):
            queue.extend([(float(number), number) for number in range(counter, counter + step)])
            model.extend(range(counter, counter + step))
            counter += step
        elif step == "front":
            queue.push_front(-turn)
            model.appendleft(-turn)
        elif step == "all":
            assert list(queue.take_all()) == list(model)
            model.clear()
        elif model:
            assert queue.pop() == model.popleft()
        assert [len(queue) for queue in queues] == [len(model) for model in models]
        assert all(
            not model or queue.first_not_before() in (0.0, model[0])
            for queue, model in zip(queues, models, strict=True)
        )
    assert [list(queue.take_all()) for queue in queues] == [list(model) for model in models]
    assert room.held_items == 0
    spill.close()


def test_memory_is_bounded(spill: SpillFile) -> None:
    room = QueueRoom(spill, max_held_items=100)
    queues: list[BackQueue[str]] = [BackQueue(room) for _ in range(50)]
    for queue in queues:
        queue.extend([(0.0, f"item {number}") for number in range(200)])
    assert room.held_items <= 100 + 50 * HEAD_ITEMS
    for queue in queues:
        for _ in range(HEAD_ITEMS + 1):
            queue.pop()
    assert room.held_items <= 100 + 50 * BLOCK_ITEMS
    assert sum(map(len, queues)) == 50 * (200 - HEAD_ITEMS - 1)


def test_a_small_plan_touches_no_disk(tmp_path: Path) -> None:
    spill = SpillFile(tmp_path / "not there")
    queue: BackQueue[int] = BackQueue(QueueRoom(spill))
    queue.extend([(0.0, number) for number in range(1_000)])
    assert [queue.pop() for _ in range(1_000)] == list(range(1_000))


def test_pieces_are_read_back(spill: SpillFile) -> None:
    pieces = [b"", b"one", b"x" * 100_000, b"two"]
    places = [spill.append(piece) for piece in pieces]
    assert [spill.read(place) for place in reversed(places)] == pieces[::-1]
