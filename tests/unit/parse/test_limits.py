"""Limits of time that interrupt, and that kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from recrawl.config.load import PROJECT_FOLDER
from recrawl.parse import limits
from recrawl.parse.limits import Killed, OutOfTime, in_child, time_limit
from recrawl.parse.nesting import MAX_DEPTH, flattened

MEMORY_BYTES = 1 << 30


def test_time_limit_interrupts_and_leaves_nothing_behind() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(OutOfTime), time_limit(0.05):
        time.sleep(5)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_timer_set_before_goes_on() -> None:
    rung = threading.Event()
    before = signal.signal(signal.SIGALRM, lambda signum, frame: rung.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with time_limit(5):
            time.sleep(0.01)
        assert rung.wait(2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_without_a_limit_or_in_a_thread_the_block_just_runs() -> None:
    ran = []
    with time_limit(0):
        ran.append("no limit")

    def in_thread() -> None:
        with time_limit(0.01):
            time.sleep(0.05)
            ran.append("thread")

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert ran == ["no limit", "thread"]


def test_a_child_hands_back_its_result() -> None:
    found = in_child(lambda: ["x" * 500_000, os.getpid() != os.getppid()], 10, MEMORY_BYTES)
    assert found == ["x" * 500_000, True]


def test_a_child_that_dies_or_never_ends_has_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.1)
    assert in_child(lambda: os._exit(1), 10, MEMORY_BYTES) is Killed.DIED
    started = time.monotonic()
    assert in_child(lambda: signal.pause(), 0.2, MEMORY_BYTES) is Killed.LATE
    assert time.monotonic() - started < 5


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc to know what memory a child inherits")
def test_a_child_that_takes_too_much_memory_has_no_result() -> None:
    assert in_child(lambda: len(bytes(1 << 20)), 10, 64 << 20) == 1 << 20
    assert in_child(lambda: len(bytes(1 << 30)), 10, 64 << 20) is Killed.DIED


def test_sound_markup_is_not_touched_however_long() -> None:
    page = "<div><ul>" + "<li><b>x</b><p>y<br>" * 5_000 + "</ul></div>"
    assert flattened(page) == (page, 0)


def test_what_nests_too_deep_is_made_void_and_keeps_its_attributes() -> None:
    text, count = flattened("<div id=x>" * 2_000)
    assert count == 2_000 - MAX_DEPTH
    assert text == "<div id=x>" * MAX_DEPTH + "<wbr id=x>" * count


_STRIKES = """
import signal
from recrawl.parse import limits
limits.REPEAT_SECONDS = 0.00002
before = signal.getsignal(signal.SIGALRM)
for _ in range(200):
    try:
        with limits.time_limit(0.0005):
            while True:
                try:
                    sum(range(1_000))
                finally:
                    sum(range(100))
    except limits.OutOfTime:
        pass
assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
assert signal.getsignal(signal.SIGALRM) is before
"""


def test_a_limit_that_strikes_all_the_time_is_taken_away_whole() -> None:
    """However the strikes fall, none is left for what runs afterwards, e.g. the task."""
    # In a process of its own: here they would also fall into the test tools' own callbacks.
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_FOLDER / "include")}
    subprocess.run([sys.executable, "-c", _STRIKES], env=environment, check=True, timeout=120)
