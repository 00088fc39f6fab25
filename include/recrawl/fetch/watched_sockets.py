"""The sockets that libcurl wants to hear of, watched by epoll, or by poll where there is none."""

from __future__ import annotations

import math
import select
from typing import Any

import pycurl

_READ = select.POLLIN
_WRITE = select.POLLOUT
#: What libcurl waits for (its CURL_POLL words) in the words of the system.
_MASKS = {pycurl.POLL_IN: _READ, pycurl.POLL_OUT: _WRITE, pycurl.POLL_INOUT: _READ | _WRITE}
#: Sockets told of at once: their bodies are in memory, and in the processor's cache, at the same time.
MAX_READY = 64
_FAULTS = select.POLLERR | select.POLLHUP


class WatchedSockets:
    """Descriptors and what libcurl waits for on them.

    Directly on the system's object: the selectors module in between costs more for a request than
    the system calls.
    """

    def __init__(self) -> None:
        self._is_epoll = hasattr(select, "epoll")
        self._poll: Any = select.epoll() if self._is_epoll else select.poll()
        self._watched: dict[int, int] = {}

    def watch(self, descriptor: int, what: int) -> None:
        """Wait for `what` (pycurl's POLL_ words; 0: for nothing more) on a descriptor."""
        if not what:
            if self._watched.pop(descriptor, None) is not None:
                self._poll.unregister(descriptor)
            return
        before = self._watched.get(descriptor)
        if before == what:
            return
        self._watched[descriptor] = what
        if before is None:
            self._poll.register(descriptor, _MASKS[what])
        else:
            self._poll.modify(descriptor, _MASKS[what])

    def ready(self, timeout_seconds: float) -> list[tuple[int, int]]:
        """(descriptor, pycurl's CSELECT_ bits) of some that are ready, in turn; waits for the first."""
        if self._is_epoll:
            found = self._poll.poll(timeout_seconds, MAX_READY)
        else:
            # Rounded up, so that a timer that is nearly due is not asked for in circles.
            found = self._poll.poll(math.ceil(timeout_seconds * 1000))
        return [(descriptor, _bits(events)) for descriptor, events in found]

    def close(self) -> None:
        """Watch nothing more."""
        self._watched.clear()
        if self._is_epoll:
            self._poll.close()


def _bits(events: int) -> int:
    if events & _FAULTS:
        return int(pycurl.CSELECT_IN | pycurl.CSELECT_OUT | pycurl.CSELECT_ERR)
    return (pycurl.CSELECT_IN if events & _READ else 0) | (pycurl.CSELECT_OUT if events & _WRITE else 0)
