"""When a host may be asked again: the back-queue selector, as pure code.

Every host has a FIFO (its back queue); a heap orders hosts by the time at which they may next be
asked. At most one request a host, and one an IP address, is in flight; a gap runs from the end
of an answer to the start of the next request. Time (seconds of a monotonic clock) and randomness
are arguments, so that a simulation and a crawl run the same code.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Generic, NamedTuple, TypeVar

from recrawl.fetch.back_queues import BackQueue, QueueRoom
from recrawl.fetch.delays import Answered, Delays, PolitenessSettings, Standing

T = TypeVar("T")


class Counts(NamedTuple):
    """Hosts by what they do, for the progress line."""

    ready: int
    in_flight: int
    waiting: int
    backing_off: int


class HostState(Standing, Generic[T]):
    """One host: how it stands, and what waits for it.

    Attributes:
        queue: its back queue.
        urgent: what goes before it, also while the host is held.
        is_held: the back queue is shut.
    """

    __slots__ = ("in_flight", "is_held", "queue", "stamp", "urgent")

    def __init__(self, name: str, room: QueueRoom) -> None:
        super().__init__(name)
        self.queue: BackQueue[T] = BackQueue(room)
        self.urgent: deque[T] = deque()
        self.is_held = False
        self.in_flight = False
        self.stamp = 0

    @property
    def remaining(self) -> int:
        return len(self.queue) + len(self.urgent)

    def ready_at(self) -> float | None:
        """When its next item may start; None when it has none that may."""
        if self.in_flight:
            return None
        if self.urgent:
            return self.next_at
        if self.queue and not self.is_held:
            return max(self.next_at, self.queue.first_not_before())
        return None


@dataclass(slots=True)
class _Address:
    """One IP address: whether a request to it is in flight, when it is free, and who waits for it."""

    busy_with: str | None = None
    free_at: float = 0.0
    waiting: deque[str] = field(default_factory=deque)
    is_armed: bool = False


class Politeness(Generic[T]):
    """Back queues and their selector.

    Args:
        settings, rng, may_go_unclamped: see `recrawl.fetch.delays.Delays`.
        room: where the back queues are held.
    """

    def __init__(
        self,
        settings: PolitenessSettings,
        rng: Random,
        may_go_unclamped: Callable[[str | None], bool],
        room: QueueRoom | None = None,
    ) -> None:
        self._delays = Delays(settings, rng, may_go_unclamped)
        self._room = room or QueueRoom()
        self._hosts: dict[str, HostState[T]] = {}
        self._addresses: dict[str, _Address] = {}
        # (time, tie, kind host or address, name, stamp); stale entries are recognised by their stamp.
        # What is urgent has a heap of its own, so that it goes first among what may go.
        self._urgent: list[tuple[float, int, bool, str, int]] = []
        self._heap: list[tuple[float, int, bool, str, int]] = []
        self._ticket = 0
        self.queued = 0

    # -- hosts and items ---------------------------------------------------------------

    def host(self, name: str) -> HostState[T]:
        """The state of a host, made on first use."""
        state = self._hosts.get(name)
        if state is None:
            state = self._hosts[name] = HostState(name, self._room)
        return state

    def hosts(self) -> Iterator[HostState[T]]:
        """All hosts."""
        return iter(self._hosts.values())

    def push(self, name: str, items: Sequence[tuple[float, T]]) -> None:
        """Append (not before, item) pairs to a host's back queue."""
        state = self.host(name)
        was_empty = not state.queue
        state.queue.extend(items)
        self.queued += len(items)
        if was_empty:  # else the queue's head, and so its time, is what it was
            self._schedule(state)

    def push_front(self, name: str, item: T) -> None:
        """Put an item at the head of a host's back queue (a redirect hop, an item put back)."""
        state = self.host(name)
        state.queue.push_front(item)
        self.queued += 1
        self._schedule(state)

    def push_urgent(self, name: str, item: T) -> None:
        """An item that goes before the back queue and also while the host is held (robots.txt)."""
        state = self.host(name)
        state.urgent.append(item)
        self.queued += 1
        self._schedule(state)

    def hold(self, name: str) -> None:
        """Keep the back queue of a host shut; urgent items still go."""
        self.host(name).is_held = True

    def release(self, name: str) -> None:
        """Open a held back queue again."""
        self.host(name).is_held = False
        self._schedule(self.host(name))

    def drop(self, name: str) -> Iterator[T]:
        """Take all items off a host."""
        state = self.host(name)
        self.queued -= state.remaining
        urgent = list(state.urgent)
        state.urgent.clear()
        return chain(urgent, state.queue.take_all())

    def not_before(self, name: str, at: float) -> None:
        """Let the host wait until `at` at least: an access of an earlier round, a block."""
        state = self.host(name)
        state.next_at = max(state.next_at, at)
        self._schedule(state)

    def continue_from(self, name: str, last_end_at: float) -> None:
        """The host's last answer ended at `last_end_at`, in an earlier attempt or round."""
        state = self.host(name)
        state.last_end_at = max(last_end_at, state.last_end_at or last_end_at)
        state.required_gap_seconds = self._delays.delay_seconds(state)
        self.not_before(name, state.last_end_at + state.required_gap_seconds)

    def set_crawl_delay(self, name: str, seconds: float | None) -> None:
        """What robots.txt asks for; it counts from the host's last answer, that of robots.txt included."""
        state = self.host(name)
        state.crawl_delay_seconds = seconds
        if seconds is not None and state.last_end_at is not None:
            state.required_gap_seconds = max(state.required_gap_seconds, seconds)
            state.next_at = max(state.next_at, state.last_end_at + seconds)
            self._schedule(state)

    # -- the selector ------------------------------------------------------------------

    def pop(self, now: float) -> tuple[HostState[T], T] | None:
        """The next item that may start now; its host is in flight from here on."""
        for heap in (self._urgent, self._heap):
            while heap and heap[0][0] <= now:
                _, _, is_host, name, stamp = heapq.heappop(heap)
                state = self._ready_host(name, stamp, now) if is_host else self._waiting_host(name, now)
                if state is None:
                    continue
                state.in_flight = True
                if self._delays.has_ip_gap(state.ip):
                    self._addresses[state.ip or ""].busy_with = state.name
                self.queued -= 1
                return state, state.urgent.popleft() if state.urgent else state.queue.pop()
        return None

    def wake_at(self) -> float | None:
        """When `pop` may next have something; None when only an answer can change that."""
        heads = [heap[0][0] for heap in (self._urgent, self._heap) if heap]
        return min(heads) if heads else None

    def put_back(self, state: HostState[T]) -> None:
        """The popped item needed no request after all: the host may be asked as if it had not been popped."""
        state.in_flight = False
        self._leave_address(state, None)
        self._schedule(state)

    def finished(self, state: HostState[T], now: float, answer: Answered) -> None:
        """The host's request ended: computes when it may be asked again."""
        state.in_flight = False
        self._leave_address(state, now, answer.ip)
        self._delays.note_answer(state, now, answer)
        self._schedule(state)

    def undone(self, state: HostState[T], now: float) -> None:
        """The host's request ended in a way that says nothing about the host: no fault counts, the gap does."""
        state.in_flight = False
        self._leave_address(state, now)
        state.last_end_at = now
        state.required_gap_seconds = self._delays.delay_seconds(state)
        state.next_at = max(state.next_at, now + state.required_gap_seconds)
        self._schedule(state)

    # -- figures -----------------------------------------------------------------------

    def counts(self, now: float) -> Counts:
        """Hosts with work by what they do now."""
        ready = in_flight = waiting = backing_off = 0
        for state in self._hosts.values():
            if state.in_flight:
                in_flight += 1
            elif state.remaining:
                at = state.ready_at()
                if at is not None and at <= now:
                    ready += 1
                elif state.backoff_level and state.next_at > now:
                    backing_off += 1
                else:
                    waiting += 1
        return Counts(ready, in_flight, waiting, backing_off)

    def longest_tails(self, now: float, limit: int = 5) -> list[tuple[str, int, float]]:
        """(host, items left, seconds they take at least) of the hosts that need longest."""
        tails = []
        for state in self._hosts.values():
            if state.remaining:
                seconds = max(0.0, state.next_at - now) + (state.remaining - 1) * self._delays.delay_seconds(state)
                tails.append((state.name, state.remaining, seconds))
        return heapq.nlargest(limit, tails, key=lambda tail: (tail[2], tail[1]))

    # -- inside ------------------------------------------------------------------------

    def _schedule(self, state: HostState[T]) -> None:
        at = state.ready_at()
        if at is not None:
            state.stamp += 1
            self._enter(self._urgent if state.urgent else self._heap, at, True, state.name, state.stamp)

    def _enter(
        self, heap: list[tuple[float, int, bool, str, int]], at: float, is_host: bool, name: str, stamp: int
    ) -> None:
        self._ticket += 1
        heapq.heappush(heap, (at, self._ticket, is_host, name, stamp))

    def _ready_host(self, name: str, stamp: int, now: float) -> HostState[T] | None:
        """The host of a heap entry if it may start now; sent to wait for its address if that is taken."""
        state = self._hosts[name]
        if stamp != state.stamp or not self._is_ready(state, now):
            return None
        if not self._delays.has_ip_gap(state.ip):
            return state
        address = self._addresses.setdefault(state.ip or "", _Address())
        if address.busy_with is None and address.free_at <= now and not address.waiting:
            return state
        address.waiting.append(name)
        self._arm(state.ip or "", address)
        return None

    def _waiting_host(self, ip: str, now: float) -> HostState[T] | None:
        """The first host that waited for an address and still may start."""
        address = self._addresses[ip]
        address.is_armed = False
        if address.busy_with is not None:
            return None
        while address.waiting:
            state = self._hosts[address.waiting.popleft()]
            if state.ip != ip or not self._is_ready(state, now):
                self._schedule(state)
                continue
            return state
        return None

    def _is_ready(self, state: HostState[T], now: float) -> bool:
        at = state.ready_at()
        return at is not None and at <= now

    def _arm(self, ip: str, address: _Address) -> None:
        if address.busy_with is None and address.waiting and not address.is_armed:
            address.is_armed = True
            self._enter(self._heap, address.free_at, False, ip, 0)

    def _leave_address(self, state: HostState[T], ended_at: float | None, answered_ip: str | None = None) -> None:
        """Free the address that the host was using, and remember the gap on the one that answered."""
        for ip in {state.ip, answered_ip} - {None}:
            assert ip is not None
            if not self._delays.has_ip_gap(ip):
                continue
            address = self._addresses.setdefault(ip, _Address())
            if address.busy_with == state.name:
                address.busy_with = None
            if ended_at is not None:
                address.free_at = max(address.free_at, ended_at + self._delays.ip_gap_seconds)
            self._arm(ip, address)
