"""The lease (rule R7): one writer, whatever processes do and die."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from recrawl.clock import ManualClock, SystemClock
from recrawl.config.model import Storage
from recrawl.errors import LeaseHeldError, LeaseLostError, StorageError
from recrawl.lease import acquire, read
from recrawl.rounds import LEASE_FILE
from recrawl.storage import Store

START = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
FORK = multiprocessing.get_context("spawn")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Storage(root=str(tmp_path)))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


def test_nobody_holds_it_at_first(store: Store) -> None:
    assert read(store) is None


def test_another_owner_is_refused_in_one_sentence(store: Store, clock: ManualClock) -> None:
    acquire(store, "ann", "crawl round 1", 120, clock)
    clock.sleep(20)
    with pytest.raises(LeaseHeldError) as refused:
        acquire(store, "bob", "an undo", 120, clock)
    for part in ("ann", "crawl round 1", "since 2026-11-30 03:00:00 UTC", "03:02:00 UTC (100 s)"):
        assert part in refused.value.message
    assert "recrawl stop" in refused.value.mend


def test_the_same_owner_takes_it_again_and_fences_the_former_process(store: Store, clock: ManualClock) -> None:
    first = acquire(store, "run 1", "seed", 120, clock)
    clock.sleep(10)
    second = acquire(store, "run 1", "frontier", 120, clock)
    assert second.state.since == START
    second.heartbeat()
    with pytest.raises(LeaseLostError, match="run 1 for frontier"):
        first.heartbeat()
    with pytest.raises(LeaseLostError):
        first.check()


def test_an_expired_lease_is_taken_over(store: Store, clock: ManualClock) -> None:
    first = acquire(store, "ann", "round 1", 120, clock)
    clock.sleep(119)
    with pytest.raises(LeaseHeldError):
        acquire(store, "bob", "round 2", 120, clock)
    clock.sleep(1)
    second = acquire(store, "bob", "round 2", 120, clock)
    assert second.state.since == clock.now()
    with pytest.raises(LeaseLostError, match="taken over by bob for round 2"):
        first.heartbeat()
    first.release()
    assert read(store) == second.state


def test_heartbeats_keep_it(store: Store, clock: ManualClock) -> None:
    lease = acquire(store, "ann", "round 1", 120, clock)
    for _ in range(5):
        clock.sleep(100)
        lease.heartbeat()
    with pytest.raises(LeaseHeldError):
        acquire(store, "bob", "round 2", 120, clock)


def test_check_renews_what_the_background_did_not(store: Store, clock: ManualClock) -> None:
    lease = acquire(store, "ann", "round 1", 120, clock)
    clock.sleep(59)
    lease.check()
    assert read(store) == lease.state
    before = lease.state.expires_at
    clock.sleep(2)
    lease.check()
    assert lease.state.expires_at > before


def test_check_finds_a_lease_that_somebody_else_took(store: Store, clock: ManualClock) -> None:
    lease = acquire(store, "ann", "round 1", 120, clock)
    clock.sleep(121)
    acquire(store, "bob", "round 2", 120, clock)
    with pytest.raises(LeaseLostError):
        lease.check()


def test_released_it_is_free(store: Store, clock: ManualClock) -> None:
    acquire(store, "ann", "round 1", 120, clock).release()
    assert read(store) is None
    acquire(store, "bob", "round 2", 120, clock)


def test_left_it_stays_the_owners(store: Store, clock: ManualClock) -> None:
    with acquire(store, "run 1", "seed", 120, clock) as lease:
        lease.leave()
    state = read(store)
    assert state is not None
    assert state.process == ""
    with pytest.raises(LeaseHeldError):
        acquire(store, "run 2", "seed", 120, clock)


def test_the_background_renews_it_and_the_end_gives_it_back(store: Store) -> None:
    clock = SystemClock()
    with acquire(store, "ann", "round 1", 0.8, clock) as lease:
        first = lease.state.expires_at
        time.sleep(1.2)
        with pytest.raises(LeaseHeldError):
            acquire(store, "bob", "round 2", 0.8, clock)
        assert lease.state.expires_at > first
    assert read(store) is None


def test_waiting_ends_when_the_holder_gives_it_back(store: Store, clock: ManualClock) -> None:
    acquire(store, "ann", "round 1", 5, clock)
    lease = acquire(store, "bob", "round 2", 5, clock, wait_seconds=60)
    assert lease.state.owner == "bob"
    with pytest.raises(LeaseHeldError):
        acquire(store, "cleo", "round 3", 5, clock, wait_seconds=1)


def test_a_damaged_file_is_named(store: Store, clock: ManualClock) -> None:
    store.write_bytes(LEASE_FILE, b"{")
    with pytest.raises(StorageError, match=r"control/lease\.json"):
        acquire(store, "ann", "round 1", 120, clock)


def test_a_killed_holder_of_this_machine_is_not_waited_for(store: Store) -> None:
    if not os.path.exists("/proc/self/ns/pid"):
        pytest.skip("processes can't be told apart without /proc")
    code = (
        "import sys, time\n"
        "from recrawl.clock import SystemClock\nfrom recrawl.config.model import Storage\n"
        "from recrawl.lease import acquire\nfrom recrawl.storage import Store\n"
        "acquire(Store(Storage(root=sys.argv[1])), 'ann', 'round 1', 600, SystemClock())\n"
        "print('held', flush=True)\ntime.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", code, store.root], stdout=subprocess.PIPE, env=environment, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LeaseHeldError):
            acquire(store, "bob", "round 2", 600, SystemClock())
        holder.kill()
        holder.wait()
    assert acquire(store, "bob", "round 2", 600, SystemClock()).state.owner == "bob"


def _contend(root: str, name: str, rounds: int, results: Connection) -> None:
    """Take the lease again and again; while held, append to a file that nobody else may touch."""
    store, clock = Store(Storage(root=root)), SystemClock()
    shared = Path(root) / "shared"
    won = 0
    while won < rounds:
        try:
            lease = acquire(store, name, "contention", 30, clock)
        except LeaseHeldError:
            time.sleep(0.001)
            continue
        # A lost update of this counter shows that two held the lease at once.
        value = int(shared.read_text() or 0)
        time.sleep(0.002)
        shared.write_text(str(value + 1))
        lease.release()
        won += 1
    results.send(won)


def test_of_many_processes_one_holds_it(store: Store) -> None:
    (Path(store.root) / "shared").write_text("0")
    pipes, processes = [], []
    for number in range(3):
        receiver, sender = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_contend, args=(store.root, f"taker {number}", 15, sender))
        process.start()
        pipes.append(receiver)
        processes.append(process)
    assert [pipe.recv() for pipe in pipes] == [15, 15, 15]
    for process in processes:
        process.join()
    assert (Path(store.root) / "shared").read_text() == "45"


def _take_over(root: str, name: str, results: Connection) -> None:
    try:
        acquire(Store(Storage(root=root)), name, "take over", 30, SystemClock())
        results.send(name)
    except LeaseHeldError:
        results.send(None)


def test_of_two_takers_of_an_expired_lease_one_wins(store: Store) -> None:
    acquire(store, "ann", "round 1", 0, SystemClock())
    pipes, processes = [], []
    for name in ("bob", "cleo"):
        receiver, sender = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_take_over, args=(store.root, name, sender))
        process.start()
        pipes.append(receiver)
        processes.append(process)
    winners = [name for pipe in pipes if (name := pipe.recv()) is not None]
    for process in processes:
        process.join()
    # The winner may have ended before the other asked; then its lease is free again.
    state = read(store)
    assert state is not None
    assert state.owner in winners
