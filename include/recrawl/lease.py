"""The lease of a storage root: at most one process writes a crawl (rule R7).

The lease is one small JSON file. Every change of it happens under a file lock, so of two takers
one wins; an object store has no such lock, there a taker writes, waits and reads back, and what
slips through is found by the next heartbeat. Each acquisition has its own token: a process
whose lease was taken over, even by a second process of the same owner, finds another token and
must stop writing.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from recrawl.clock import Clock
from recrawl.errors import LeaseHeldError, LeaseLostError, StorageError
from recrawl.rounds import LEASE_FILE
from recrawl.storage import Store

#: How long a taker on an object store waits before it reads back what it wrote.
_SETTLE_SECONDS = 2.0
_POLL_SECONDS = 2.0


@dataclass(frozen=True)
class LeaseState:
    """What the lease file says.

    Attributes:
        owner: who holds it, the same text in every process of one run.
        purpose: what for, e.g. `crawl round 20261130T030000.000000Z`.
        since: when the owner took it (kept when the owner takes it again).
        expires_at: when anybody may take it over.
        token: of one acquisition; a fence against processes that lost it.
        process: the holding process on its machine; empty when the owner left it between two
            processes, or where processes can't be told apart.
    """

    owner: str
    purpose: str
    since: datetime
    expires_at: datetime
    token: str
    process: str = ""

    def to_json(self) -> bytes:
        """The file's content."""
        values = asdict(self) | {"since": self.since.isoformat(), "expires_at": self.expires_at.isoformat()}
        return json.dumps(values, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """The state that a file holds. Raises StorageError for a file that holds none."""
        try:
            values = json.loads(data)
            for name in ("since", "expires_at"):
                values[name] = datetime.fromisoformat(values[name]).astimezone(UTC)
            return cls(**values)
        except (ValueError, TypeError, KeyError) as error:
            raise StorageError(
                f"The lease file {LEASE_FILE} can't be read ({type(error).__name__}).",
                "Delete it if no crawl is running.",
            ) from None


def read(store: Store) -> LeaseState | None:
    """Who holds the lease now, expired or not; None when nobody does. Raises StorageError."""
    data = store.read_bytes(LEASE_FILE)
    return None if data is None else LeaseState.from_json(data)


def acquire(
    store: Store, owner: str, purpose: str, lease_seconds: float, clock: Clock, wait_seconds: float = 0.0
) -> Lease:
    """Take the lease of a storage root.

    It is given at once when nobody holds it, when its holder has the same owner text, when it
    has expired, and when its holder was a process of this machine that no longer runs.

    Args:
        owner: who asks; all processes of one run give the same text.
        purpose: what for, told to those who are refused.
        lease_seconds: life of the lease after each heartbeat.
        wait_seconds: how long to wait for another owner before refusing.

    Raises:
        LeaseHeldError: another owner holds it.
        StorageError: the storage root can't be read or written.
    """
    patience_ends = clock.monotonic_seconds() + wait_seconds
    while True:
        with _locked(store):
            holder = read(store)
            now = clock.now()
            if holder is None or _may_take(holder, owner, now):
                state = LeaseState(
                    owner=owner,
                    purpose=purpose,
                    since=holder.since if holder is not None and holder.owner == owner else now,
                    expires_at=now + timedelta(seconds=lease_seconds),
                    token=secrets.token_hex(8),
                    process=_this_process(),
                )
                store.write_bytes(LEASE_FILE, state.to_json())
                holder = None
        if holder is None:
            lease = Lease(store, state, lease_seconds, clock)
            if store.is_local or lease.settled():
                return lease
            continue
        if clock.monotonic_seconds() >= patience_ends:
            raise _held(holder, now)
        clock.sleep(min(_POLL_SECONDS, max(0.05, patience_ends - clock.monotonic_seconds())))


def _may_take(holder: LeaseState, owner: str, now: datetime) -> bool:
    return holder.owner == owner or holder.expires_at <= now or _has_died(holder.process)


def _held(holder: LeaseState, now: datetime) -> LeaseHeldError:
    seconds = max(1, round((holder.expires_at - now).total_seconds()))
    return LeaseHeldError(
        f"The crawl is in use by {holder.owner} for {holder.purpose} since {holder.since:%Y-%m-%d %H:%M:%S} UTC;"
        f" its lease lasts until {holder.expires_at:%H:%M:%S} UTC ({seconds} s) unless it is renewed.",
        "Wait until it ends, or stop it (`recrawl status` shows it, `recrawl stop` drains a running fetch).",
    )


class Lease:
    """A lease that this process holds.

    As a context manager it renews itself in the background every quarter of its life and gives
    itself back at the end. Code that writes calls `check()` before each commit.
    """

    def __init__(self, store: Store, state: LeaseState, lease_seconds: float, clock: Clock) -> None:
        self._store = store
        self._state = state
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._renewed_at_seconds = clock.monotonic_seconds()
        self._lost: LeaseLostError | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> LeaseState:
        """The lease as this process last wrote it."""
        return self._state

    def heartbeat(self) -> None:
        """Renew the lease.

        Raises:
            LeaseLostError: another process took it over; nothing may be written any more.
            StorageError: the lease can't be read or written now.
        """
        with _locked(self._store):
            holder = read(self._store)
            if holder is None or holder.token != self._state.token:
                self._lost = self._loss(holder)
                raise self._lost
            self._write(replace(self._state, expires_at=self._expiry()))
        self._renewed_at_seconds = self._clock.monotonic_seconds()

    def check(self) -> None:
        """Make sure that this process may write; renews a lease that has not been renewed for half its life.

        Raises:
            LeaseLostError: as `heartbeat`.
        """
        if self._lost is not None:
            raise self._lost
        if self._clock.monotonic_seconds() - self._renewed_at_seconds > self._lease_seconds / 2:
            self.heartbeat()

    def release(self) -> None:
        """Give the lease back; does nothing when it was lost."""
        self._stop_thread()
        with _locked(self._store):
            holder = read(self._store)
            if holder is not None and holder.token == self._state.token:
                self._store.delete(LEASE_FILE)

    def leave(self) -> None:
        """End this process's part and keep the lease, renewed once, for the owner's next process.

        Raises:
            LeaseLostError: as `heartbeat`.
        """
        self._stop_thread()
        self._state = replace(self._state, process="")
        self.heartbeat()

    def settled(self) -> bool:
        """Whether, a moment after the acquisition, the lease is still this process's (object stores)."""
        self._clock.sleep(_SETTLE_SECONDS)
        holder = read(self._store)
        return holder is not None and holder.token == self._state.token

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._renew, name="recrawl-lease", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self.release()

    def _renew(self) -> None:
        while not self._stopped.wait(self._lease_seconds / 4):
            try:
                self.heartbeat()
            except LeaseLostError:
                return
            except StorageError:
                # Tried again at the next beat; `check` raises when it stays so.
                continue

    def _stop_thread(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _expiry(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self._lease_seconds)

    def _write(self, state: LeaseState) -> None:
        self._store.write_bytes(LEASE_FILE, state.to_json())
        self._state = state

    def _loss(self, holder: LeaseState | None) -> LeaseLostError:
        taker = f"{holder.owner} for {holder.purpose}" if holder else "somebody who gave it back"
        return LeaseLostError(
            f"The lease of {self._state.owner} on {self._store.root} was taken over by {taker}.",
            "Nothing more is written by this process; run the command again when the other has ended.",
        )


@contextmanager
def _locked(store: Store) -> Iterator[None]:
    """Alone among all processes that reach the root's file system; no lock on an object store."""
    if not store.is_local:
        yield
        return
    import fcntl

    path = store.local_path(LEASE_FILE).with_name(".lease.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise StorageError(f"{path} can't be written: {error.strerror}.") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@lru_cache(maxsize=1)
def _machine() -> str:
    """This machine since its last start, as far as its process numbers reach; empty where that can't be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{socket.gethostname()}/{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(process_id: int) -> str:
    """When a process started, in clock ticks since boot; empty when there is no such process."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _this_process() -> str:
    machine = _machine()
    return f"{machine} {os.getpid()} {_started(os.getpid())}" if machine else ""


def _has_died(process: str) -> bool:
    """Whether `process` certainly no longer runs: it was one of this machine and is gone."""
    parts = process.split()
    if len(parts) != 3 or parts[0] != _machine():
        return False
    return _started(int(parts[1])) != parts[2]
