"""Is it the hosts or is it us? Tells a lost uplink from hosts that fail.

A failure of the network is doubted until something says whose it was: another host that answers
after it, while most hosts of the last minute do, or the control address, which is tried.
"""

from __future__ import annotations

import socket
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum

from recrawl.fetch.engine import EngineAnswer
from recrawl.tables.vocabulary import Outcome, TruncatedReason

#: Hosts tried within this time are counted.
WINDOW_SECONDS = 60.0
#: How long a connection to the control address may take.
PROBE_TIMEOUT_SECONDS = 3.0
#: Between two tries of the control address.
PROBE_SECONDS = 2.0

_FAILURES = frozenset({Outcome.CONNECT_ERROR, Outcome.DNS_ERROR, Outcome.TIMEOUT})


class Fault(Enum):
    """Whose fault the doubted failures are."""

    UNKNOWN = "unknown"
    HOSTS = "hosts"
    OURS = "ours"


def is_network_failure(answer: EngineAnswer) -> bool:
    """Whether a lost uplink could have been the reason."""
    return answer.failure in _FAILURES or answer.truncated in (TruncatedReason.TIME, TruncatedReason.DISCONNECT)


class Uplink:
    """The uplink of one fetch task.

    Args:
        control_address: `fetch.control_address`; empty: failures are never doubted.
    """

    def __init__(self, control_address: str) -> None:
        name, _, port = control_address.rpartition(":")
        self._control = (name.strip("[]"), int(port)) if control_address else None
        self._tried: OrderedDict[str, tuple[float, bool]] = OrderedDict()
        self._threads: ThreadPoolExecutor | None = None
        self._probe: Future[bool] | None = None
        self._probed_at = float("-inf")

    @property
    def is_watched(self) -> bool:
        """Whether there is a control address to ask."""
        return self._control is not None

    def note(self, host: str, now: float, failed: bool) -> None:
        """A request to a host ended."""
        self._tried[host] = now, failed
        self._tried.move_to_end(host)
        while self._tried and next(iter(self._tried.values()))[0] < now - WINDOW_SECONDS:
            self._tried.popitem(last=False)

    def most_fail(self) -> bool:
        """Whether more than half of the hosts tried in the last minute failed on the network."""
        failed = sum(was_failure for _, was_failure in self._tried.values())
        return 2 * failed > len(self._tried)

    def judge(self, now: float) -> Fault:
        """What the control address says: HOSTS when it can be reached. Never waits; call until it knows."""
        if self._probe is not None and self._probe.done():
            reached, self._probe = self._probe.result(), None
            return Fault.HOSTS if reached else Fault.OURS
        if self._probe is None and now - self._probed_at >= PROBE_SECONDS:
            self._probed_at = now
            self._threads = self._threads or ThreadPoolExecutor(1, thread_name_prefix="uplink")
            self._probe = self._threads.submit(self._reaches_control)
        return Fault.UNKNOWN

    def forget(self) -> None:
        """Begin anew: what failed during an outage says nothing about hosts."""
        self._tried.clear()

    def close(self) -> None:
        """End the thread that tries the control address."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    def _reaches_control(self) -> bool:
        assert self._control is not None
        try:
            with socket.create_connection(self._control, PROBE_TIMEOUT_SECONDS):
                return True
        except OSError:
            return False
