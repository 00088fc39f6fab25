"""Limits that hold for any document: a time limit that interrupts, and one that kills.

A signal interrupts Python, not a loop inside of a C library. Documents large enough for such a
loop to hurt are therefore parsed in a forked child with limits that the kernel enforces.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")

#: Seconds after which a time limit that has passed strikes again.
REPEAT_SECONDS = 0.5
#: Seconds beyond the time limit after which a child is killed.
GRACE_SECONDS = 5.0


class Killed(Enum):
    """Why a child gave no result."""

    LATE = "late"  #: its time was up
    DIED = "died"  #: it ended by itself: no memory left, or a fault in a library


class OutOfTime(BaseException):
    """The time limit has passed. No `Exception`, so that no library swallows it."""


def time_limit(seconds: float) -> AbstractContextManager[None]:
    """Raise OutOfTime in the block after `seconds`; 0 means no limit.

    Works in the main thread only, as signals do; elsewhere the block runs without a limit. A
    timer that was set before goes on afterwards.
    """
    if seconds <= 0 or threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return _TimeLimit(seconds)


class _TimeLimit:
    """See `time_limit`. The timer repeats, in case a library's bare `except:` swallows the first OutOfTime."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._armed = True
        self._started = time.monotonic()
        self._before = signal.signal(signal.SIGALRM, self._interrupt)
        self._remaining, self._interval = signal.setitimer(signal.ITIMER_REAL, self._seconds, REPEAT_SECONDS)

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        # Raised while the timer is set or taken away, it would leave it running for whoever comes next.
        if self._armed and (frame is None or frame.f_code not in _OWN_CODE):
            raise OutOfTime

    def __exit__(self, *_: object) -> None:
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)
        if self._remaining:
            left = max(0.001, self._remaining - (time.monotonic() - self._started))
            signal.setitimer(signal.ITIMER_REAL, left, self._interval)


_OWN_CODE = (_TimeLimit.__enter__.__code__, _TimeLimit.__exit__.__code__, _TimeLimit._interrupt.__code__)


def in_child(function: Callable[[], Result], seconds: float, memory_bytes: int) -> Result | Killed:
    """What `function` returns, computed in a forked child, or why there is no result.

    Args:
        function: must not raise; its result must be picklable.
        seconds: time limit, on the clock and of CPU; 0 means none. The child gets some grace, so
            that a limit inside of `function` can act first.
        memory_bytes: memory that the child may add to what it inherits.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Threads of native libraries do not live on in the child, which needs none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _child(function, writer, seconds, memory_bytes)
    os.close(writer)
    try:
        data = _read_all(reader, seconds + GRACE_SECONDS if seconds > 0 else None)
    finally:
        os.close(reader)
        # Once its answer is read, or its time is up, there is nothing to wait for.
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if isinstance(data, Killed):
        return data
    result: Result = pickle.loads(data)
    return result


def _child(function: Callable[[], Result], writer: int, seconds: float, memory_bytes: int) -> None:
    """Run in the child; never returns."""
    try:
        if seconds > 0:
            soft = int(time.process_time() + seconds + GRACE_SECONDS) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + 1))
        _limit_memory(memory_bytes)
        data = pickle.dumps(function(), pickle.HIGHEST_PROTOCOL)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(len(data).to_bytes(8, "big"))
            pipe.write(data)
    finally:
        # No clean-up of the parent's: its buffers and handlers are not ours.
        os._exit(0)


def _limit_memory(memory_bytes: int) -> None:
    try:
        with open("/proc/self/statm", "rb") as file:
            inherited = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (inherited + memory_bytes, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        # No such file, or a stricter limit is in force: the time limit remains.
        return


def _read_all(reader: int, seconds: float | None) -> bytes | Killed:
    """What a child wrote, if it wrote all of it within `seconds`."""
    deadline = None if seconds is None else time.monotonic() + seconds
    data = bytearray()
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([reader], [], [], left)[0]:
            return Killed.LATE
        piece = os.read(reader, 1 << 20)
        if not piece:
            break
        data += piece
    size = int.from_bytes(data[:8], "big")
    return bytes(data[8:]) if len(data) == size + 8 and size else Killed.DIED
