"""Politeness, simulated: no gap is violated, no URL lost, the order within a host kept."""

from __future__ import annotations

import heapq
from collections import defaultdict
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.fetch.delays import FIRST_BACKOFF_SECONDS, MIN_PUBLIC_DELAY_SECONDS, Answered, PolitenessSettings
from recrawl.fetch.politeness import HostState, Politeness

POLITE = PolitenessSettings(
    min_delay_seconds=2.0, max_delay_seconds=30.0, latency_factor=5.0, ip_gap_seconds=0.5,
    max_backoff_seconds=86_400.0, max_errors_in_a_row=5,
)  # fmt: skip


def selector(settings: PolitenessSettings = POLITE, unclamped: bool = False) -> Politeness[str]:
    return Politeness(settings, Random(3), lambda ip: unclamped and ip is not None)


def take(politeness: Politeness[str], now: float) -> HostState[str]:
    popped = politeness.pop(now)
    assert popped is not None
    return popped[0]


@settings(max_examples=150, deadline=None)
@given(
    queues=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    ips=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    delays=st.lists(st.sampled_from([None, 0.0, 1.0, 45.0]), min_size=6, max_size=6),
    kinds=st.lists(st.sampled_from(["ok", "slow", "fault", "busy"]), min_size=1, max_size=20),
    slots=st.integers(1, 4),
)
def test_a_simulated_crawl_keeps_every_promise(
    queues: list[int], ips: list[int], delays: list[float | None], kinds: list[str], slots: int
) -> None:
    politeness = selector()
    for index, count in enumerate(queues):
        host = f"h{index}"
        politeness.host(host).ip = f"192.0.2.{ips[index]}"
        politeness.set_crawl_delay(host, delays[index])
        for rank in range(count):
            politeness.push(host, [(0.0, f"{host}/{rank}")])
    now, turn = 0.0, 0
    seen: dict[str, list[str]] = defaultdict(list)
    host_free: dict[str, float] = {}
    ip_free: dict[str, float] = {}
    ip_busy: set[str] = set()
    running: list[tuple[float, int, HostState[str], str]] = []
    while politeness.queued or running:
        while len(running) < slots and (popped := politeness.pop(now)) is not None:
            state, item = popped
            ip = state.ip or ""
            assert now >= host_free.get(state.name, 0.0) - 1e-9
            assert now >= ip_free.get(ip, 0.0) - 1e-9
            assert ip not in ip_busy
            ip_busy.add(ip)
            seen[state.name].append(item)
            kind = kinds[turn % len(kinds)]
            turn += 1
            heapq.heappush(running, (now + (4.0 if kind == "slow" else 0.1), turn, state, kind))
        wake_at = politeness.wake_at()
        assert running or wake_at is not None, "work is queued but nothing will ever start"
        if running and (wake_at is None or len(running) >= slots or running[0][0] <= wake_at):
            now, _, state, kind = heapq.heappop(running)
            latency = 4.0 if kind == "slow" else 0.1
            is_busy = kind == "busy"
            answer = Answered(latency, is_busy or kind == "fault", is_busy, 7.0 if is_busy else None, state.ip)
            politeness.finished(state, now, answer)
            ip_busy.discard(state.ip or "")
            crawl_delay = state.crawl_delay_seconds or 0.0
            least = max(crawl_delay, min(max(5 * latency, 2.0), 30.0))
            if kind == "busy":
                least = max(least, 0.75 * FIRST_BACKOFF_SECONDS)
            host_free[state.name] = now + least
            ip_free[state.ip or ""] = now + 0.5
        else:
            assert wake_at is not None
            now = max(now, wake_at)
    assert {host: [f"{host}/{rank}" for rank in range(count)] for host, count in enumerate_hosts(queues)} == {
        host: seen.get(host, []) for host, _ in enumerate_hosts(queues)
    }


def enumerate_hosts(queues: list[int]) -> list[tuple[str, int]]:
    return [(f"h{index}", count) for index, count in enumerate(queues)]


@pytest.mark.parametrize(
    ("latency", "crawl_delay", "gap"),
    [(0.1, None, 2.0), (1.0, None, 5.0), (60.0, None, 30.0), (1.0, 3.0, 5.0), (1.0, 90.0, 90.0), (None, None, 2.0)],
)
def test_the_gap(latency: float | None, crawl_delay: float | None, gap: float) -> None:
    politeness = selector()
    politeness.set_crawl_delay("a", crawl_delay)
    politeness.push("a", [(0.0, "1")])
    politeness.push("a", [(0.0, "2")])
    state = take(politeness, 0.0)
    politeness.finished(state, 10.0, Answered(latency))
    assert politeness.pop(10.0 + gap - 0.001) is None
    assert take(politeness, 10.0 + gap).name == "a"


def test_backoff_doubles_with_jitter_up_to_the_cap_and_is_forgiven() -> None:
    politeness = selector()
    state = politeness.host("a")
    now = 0.0
    for level in range(14):
        politeness.finished(state, now, Answered(None, is_fault=level % 2 == 0, backs_off=True))
        doubled = min(FIRST_BACKOFF_SECONDS * 2**level, 86_400.0)
        assert 0.75 * doubled <= state.required_gap_seconds <= min(1.25 * doubled, 86_400.0)
        now += 1.0
    politeness.finished(state, now, Answered(0.1))
    assert state.backoff_level == 13
    politeness.finished(state, now + 601.0, Answered(0.1))
    assert state.backoff_level == 0
    assert state.required_gap_seconds == 2.0


@pytest.mark.parametrize(("asked", "gap"), [(5.0, 45.0), (400.0, 400.0), (1e9, 86_400.0)])
def test_retry_after_is_honoured(asked: float, gap: float) -> None:
    politeness = selector()
    state = politeness.host("a")
    politeness.finished(state, 0.0, Answered(0.1, is_fault=True, backs_off=True, retry_after_seconds=asked))
    assert state.required_gap_seconds >= gap
    assert asked < 400.0 or state.required_gap_seconds == gap


def test_five_faults_in_a_row_give_a_host_up() -> None:
    politeness = selector()
    state = politeness.host("a")
    for _ in range(4):
        politeness.finished(state, 0.0, Answered(0.1, is_fault=True))
    politeness.finished(state, 0.0, Answered(0.1))
    given_up = []
    for _ in range(5):
        politeness.finished(state, 0.0, Answered(0.1, is_fault=True))
        given_up.append(state.is_given_up)
    assert given_up == [False, False, False, False, True]
    assert state.blocked_until is not None and state.blocked_until >= 0.75 * FIRST_BACKOFF_SECONDS


def test_no_delay_means_no_waiting_where_that_is_allowed_and_a_second_elsewhere() -> None:
    off = PolitenessSettings(0.0, 30.0, 5.0, 0.5, 86_400.0, 5)
    private, public = selector(off, unclamped=True), selector(off)
    for politeness in (private, public):
        politeness.push("a", [(0.0, "1")])
        politeness.push("a", [(0.0, "2")])
        politeness.finished(take(politeness, 0.0), 1.0, Answered(0.1, ip="192.0.2.1"))
    assert take(private, 1.0).name == "a"
    assert public.pop(1.0 + MIN_PUBLIC_DELAY_SECONDS - 0.001) is None
    assert take(public, 1.0 + MIN_PUBLIC_DELAY_SECONDS).name == "a"


def test_a_crawl_delay_counts_from_the_answer_that_brought_it() -> None:
    politeness = selector()
    politeness.push("a", [(0.0, "1")])
    politeness.push_urgent("a", "robots")
    popped = politeness.pop(0.0)
    assert popped is not None and popped[1] == "robots"
    politeness.finished(popped[0], 1.0, Answered(0.1))
    politeness.set_crawl_delay("a", 20.0)
    assert politeness.pop(20.9) is None
    assert politeness.pop(21.0) is not None


def test_a_held_host_starts_only_what_is_urgent() -> None:
    politeness = selector()
    politeness.push("a", [(0.0, "page")])
    politeness.hold("a")
    assert politeness.pop(0.0) is None
    politeness.push_urgent("a", "robots")
    popped = politeness.pop(0.0)
    assert popped is not None and popped[1] == "robots"
    politeness.finished(popped[0], 0.0, Answered(0.1))
    assert politeness.pop(100.0) is None
    politeness.release("a")
    assert politeness.pop(100.0) is not None


def test_an_item_put_back_costs_no_gap() -> None:
    politeness = selector()
    politeness.push("a", [(0.0, "denied")])
    politeness.push("a", [(0.0, "page")])
    politeness.put_back(take(politeness, 0.0))
    popped = politeness.pop(0.0)
    assert popped is not None and popped[1] == "page"


def test_a_request_undone_counts_for_the_gap_alone() -> None:
    politeness = selector()
    politeness.push("a", [(0.0, "page")])
    state = take(politeness, 0.0)
    politeness.undone(state, 5.0)
    politeness.push_front("a", "page")
    assert (state.faults_in_a_row, state.backoff_level, state.is_given_up) == (0, 0, False)
    assert politeness.pop(6.9) is None
    assert take(politeness, 7.0).name == "a"


def test_dropped_items_come_back_and_are_not_counted() -> None:
    politeness = selector()
    for item in ("1", "2"):
        politeness.push("a", [(0.0, item)])
    politeness.push_urgent("a", "robots")
    assert politeness.queued == 3
    assert list(politeness.drop("a")) == ["robots", "1", "2"]
    assert politeness.queued == 0
    assert politeness.pop(100.0) is None


def test_figures() -> None:
    politeness = selector()
    for host, count in (("a", 3), ("b", 1), ("c", 2)):
        for rank in range(count):
            politeness.push(host, [(0.0, f"{host}{rank}")])
    politeness.finished(take(politeness, 0.0), 0.0, Answered(0.1))
    take(politeness, 0.0)
    politeness.finished(politeness.host("c"), 0.0, Answered(None, is_fault=True, backs_off=True))
    assert politeness.counts(0.0) == (0, 1, 1, 1)
    assert politeness.longest_tails(0.0, 1)[0][0] == "c"
