"""When a host may be asked again: the back-queue selector, as pure code.

Every host has a FIFO (its back queue); a heap orders hosts by the time at which they may next be
asked. At most one request a host, and one an IP address, is in flight; a gap runs from the end
of an answer to the start of the next request. Time (seconds of a monotonic clock) and randomness
are arguments, so that a simulation and a crawl run the same code.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Generic, NamedTuple, Self, TypeVar

from recrawl.config.model import Fetch

T = TypeVar("T")

#: The first gap after a fault that asks for back-off.
FIRST_BACKOFF_SECONDS = 60.0
#: Without a fault for this long a host's back-off is forgotten; each answer before takes one step back.
FORGIVEN_AFTER_SECONDS = 600.0
#: The least gap to a host that is not in an allowed private range, whatever configuration says.
MIN_PUBLIC_DELAY_SECONDS = 1.0
_JITTER = (0.75, 1.25)


@dataclass(frozen=True)
class PolitenessSettings:
    """The numbers of politeness; see the fields of the same name in `recrawl.config.model.Fetch`."""

    min_delay_seconds: float
    max_delay_seconds: float
    latency_factor: float
    ip_gap_seconds: float
    max_backoff_seconds: float
    max_errors_in_a_row: int

    @classmethod
    def of(cls, fetch: Fetch) -> Self:
        """The settings that a configuration asks for."""
        return cls(
            fetch.min_delay_seconds, fetch.max_delay_seconds, fetch.latency_factor, fetch.ip_gap_seconds,
            fetch.max_backoff_seconds, fetch.max_errors_in_a_row,
        )  # fmt: skip


class Answered(NamedTuple):
    """What politeness needs to know of a finished request.

    Attributes:
        latency_seconds: how long it took; None when nothing was answered.
        is_fault: counts for the errors in a row.
        backs_off: asks for back-off: 429, 503 and failures of the connection.
        retry_after_seconds: what Retry-After asked for.
        ip: the address asked.
    """

    latency_seconds: float | None
    is_fault: bool = False
    backs_off: bool = False
    retry_after_seconds: float | None = None
    ip: str | None = None


class Counts(NamedTuple):
    """Hosts by what they do, for the progress line."""

    ready: int
    in_flight: int
    waiting: int
    backing_off: int


@dataclass(slots=True)
class HostState(Generic[T]):
    """One host. Times are monotonic seconds; `queue` holds (not before, item)."""

    name: str
    queue: deque[tuple[float, T]] = field(default_factory=deque)
    urgent: deque[T] = field(default_factory=deque)
    next_at: float = 0.0
    is_held: bool = False
    in_flight: bool = False
    ip: str | None = None
    crawl_delay_seconds: float | None = None
    adaptive_delay_seconds: float | None = None
    required_gap_seconds: float = 0.0
    backoff_level: int = 0
    last_fault_at: float | None = None
    faults_in_a_row: int = 0
    is_given_up: bool = False
    blocked_until: float | None = None
    last_end_at: float | None = None
    stamp: int = 0

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
            return max(self.next_at, self.queue[0][0])
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
        settings: gaps, factors, limits.
        rng: for the jitter of back-off.
        may_go_unclamped: whether an address is one for which gaps below
            `MIN_PUBLIC_DELAY_SECONDS` are accepted (an allowed private range).
    """

    def __init__(
        self, settings: PolitenessSettings, rng: Random, may_go_unclamped: Callable[[str | None], bool]
    ) -> None:
        self._settings = settings
        self._rng = rng
        self._may_go_unclamped = may_go_unclamped
        self._hosts: dict[str, HostState[T]] = {}
        self._addresses: dict[str, _Address] = {}
        # (time, tie, kind host or address, name, stamp); stale entries are recognised by their stamp.
        self._heap: list[tuple[float, int, bool, str, int]] = []
        self._ticket = 0
        self.queued = 0

    # -- hosts and items ---------------------------------------------------------------

    def host(self, name: str) -> HostState[T]:
        """The state of a host, made on first use."""
        state = self._hosts.get(name)
        if state is None:
            state = self._hosts[name] = HostState(name)
        return state

    def hosts(self) -> Iterator[HostState[T]]:
        """All hosts."""
        return iter(self._hosts.values())

    def push(self, name: str, item: T, not_before: float = 0.0) -> None:
        """Append an item to a host's back queue."""
        self.host(name).queue.append((not_before, item))
        self._queued(name)

    def push_front(self, name: str, item: T) -> None:
        """Put an item at the head of a host's back queue (a redirect hop, an item put back)."""
        self.host(name).queue.appendleft((0.0, item))
        self._queued(name)

    def push_urgent(self, name: str, item: T) -> None:
        """An item that goes before the back queue and also while the host is held (robots.txt)."""
        self.host(name).urgent.append(item)
        self._queued(name)

    def hold(self, name: str) -> None:
        """Keep the back queue of a host shut; urgent items still go."""
        self.host(name).is_held = True

    def release(self, name: str) -> None:
        """Open a held back queue again."""
        self.host(name).is_held = False
        self._schedule(self.host(name))

    def drop(self, name: str) -> list[T]:
        """Take all items off a host."""
        state = self.host(name)
        items = [*state.urgent, *(item for _, item in state.queue)]
        state.urgent.clear()
        state.queue.clear()
        self.queued -= len(items)
        return items

    def not_before(self, name: str, at: float) -> None:
        """Let the host wait until `at` at least: an access of an earlier round, a block."""
        state = self.host(name)
        state.next_at = max(state.next_at, at)
        self._schedule(state)

    def continue_from(self, name: str, last_end_at: float) -> None:
        """The host's last answer ended at `last_end_at`, in an earlier attempt or round."""
        state = self.host(name)
        state.last_end_at = max(last_end_at, state.last_end_at or last_end_at)
        state.required_gap_seconds = self.delay_seconds(state)
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
        while self._heap and self._heap[0][0] <= now:
            _, _, is_host, name, stamp = heapq.heappop(self._heap)
            state = self._ready_host(name, stamp, now) if is_host else self._waiting_host(name, now)
            if state is None:
                continue
            state.in_flight = True
            if self._has_ip_gap(state.ip):
                self._addresses[state.ip or ""].busy_with = state.name
            self.queued -= 1
            return state, state.urgent.popleft() if state.urgent else state.queue.popleft()[1]
        return None

    def wake_at(self) -> float | None:
        """When `pop` may next have something; None when only an answer can change that."""
        return self._heap[0][0] if self._heap else None

    def put_back(self, state: HostState[T]) -> None:
        """The popped item needed no request after all: the host may be asked as if it had not been popped."""
        state.in_flight = False
        self._leave_address(state, None)
        self._schedule(state)

    def finished(self, state: HostState[T], now: float, answer: Answered) -> None:
        """The host's request ended: computes when it may be asked again."""
        state.in_flight = False
        state.last_end_at = now
        self._leave_address(state, now, answer.ip)
        if answer.ip:
            state.ip = answer.ip
        self._note_fault(state, now, answer)
        state.required_gap_seconds = self._gap(state, answer)
        state.next_at = max(state.next_at, now + state.required_gap_seconds)
        if state.faults_in_a_row >= self._settings.max_errors_in_a_row and not state.is_given_up:
            state.is_given_up = True
            # The host has had its chances in this round; the next may come after a further step.
            state.blocked_until = max(state.next_at, now + self._backoff(max(1, state.backoff_level)))
        self._schedule(state)

    def delay_seconds(self, state: HostState[T]) -> float:
        """The gap of a host in good standing: max(Crawl-delay, what its latency asks for)."""
        least = self._least_delay(state.ip)
        if state.adaptive_delay_seconds is None:
            adaptive = least
        else:
            adaptive = min(max(state.adaptive_delay_seconds, least), max(self._settings.max_delay_seconds, least))
        return max(state.crawl_delay_seconds or 0.0, adaptive)

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
                seconds = max(0.0, state.next_at - now) + (state.remaining - 1) * self.delay_seconds(state)
                tails.append((state.name, state.remaining, seconds))
        return heapq.nlargest(limit, tails, key=lambda tail: (tail[2], tail[1]))

    # -- inside ------------------------------------------------------------------------

    def _queued(self, name: str) -> None:
        self.queued += 1
        self._schedule(self._hosts[name])

    def _schedule(self, state: HostState[T]) -> None:
        at = state.ready_at()
        if at is not None:
            state.stamp += 1
            self._enter(at, True, state.name, state.stamp)

    def _enter(self, at: float, is_host: bool, name: str, stamp: int) -> None:
        self._ticket += 1
        heapq.heappush(self._heap, (at, self._ticket, is_host, name, stamp))

    def _ready_host(self, name: str, stamp: int, now: float) -> HostState[T] | None:
        """The host of a heap entry if it may start now; sent to wait for its address if that is taken."""
        state = self._hosts[name]
        if stamp != state.stamp or not self._is_ready(state, now):
            return None
        if not self._has_ip_gap(state.ip):
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
            self._enter(address.free_at, False, ip, 0)

    def _leave_address(self, state: HostState[T], ended_at: float | None, answered_ip: str | None = None) -> None:
        """Free the address that the host was using, and remember the gap on the one that answered."""
        for ip in {state.ip, answered_ip} - {None}:
            assert ip is not None
            if not self._has_ip_gap(ip):
                continue
            address = self._addresses.setdefault(ip, _Address())
            if address.busy_with == state.name:
                address.busy_with = None
            if ended_at is not None:
                address.free_at = max(address.free_at, ended_at + self._settings.ip_gap_seconds)
            self._arm(ip, address)

    def _has_ip_gap(self, ip: str | None) -> bool:
        return ip is not None and self._settings.ip_gap_seconds > 0 and self._least_delay(ip) > 0

    def _least_delay(self, ip: str | None) -> float:
        least = self._settings.min_delay_seconds
        return least if least >= MIN_PUBLIC_DELAY_SECONDS or self._may_go_unclamped(ip) else MIN_PUBLIC_DELAY_SECONDS

    def _note_fault(self, state: HostState[T], now: float, answer: Answered) -> None:
        if state.last_fault_at is not None and now - state.last_fault_at > FORGIVEN_AFTER_SECONDS:
            state.backoff_level = 0
        if answer.is_fault or answer.backs_off:
            state.last_fault_at = now
        if answer.backs_off:
            state.backoff_level += 1
        elif not answer.is_fault:
            state.backoff_level = max(0, state.backoff_level - 1)
        state.faults_in_a_row = state.faults_in_a_row + 1 if answer.is_fault else 0

    def _gap(self, state: HostState[T], answer: Answered) -> float:
        least = self._least_delay(state.ip)
        if answer.latency_seconds is not None:
            wanted = self._settings.latency_factor * answer.latency_seconds if least > 0 else 0.0
            state.adaptive_delay_seconds = min(max(wanted, least), max(self._settings.max_delay_seconds, least))
        gap = self.delay_seconds(state)
        if answer.backs_off:
            gap = max(gap, self._backoff(state.backoff_level))
        if answer.retry_after_seconds is not None:
            gap = max(gap, min(answer.retry_after_seconds, self._settings.max_backoff_seconds))
        return gap

    def _backoff(self, level: int) -> float:
        doubled = FIRST_BACKOFF_SECONDS * 2.0 ** min(level - 1, 40)
        most = self._settings.max_backoff_seconds
        return min(most, min(doubled, most) * self._rng.uniform(*_JITTER))
