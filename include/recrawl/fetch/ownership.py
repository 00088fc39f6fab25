"""Who works on a fetch partition: the newest attempt, and nobody else."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path

from recrawl.errors import PartitionLostError, StorageError
from recrawl.storage import Store

#: An attempt that lost its partition notices within its 10 s check and lets go of the spool.
_LOCK_WAIT_SECONDS = 45.0


class Ownership:
    """The owner file of a partition: the attempt whose token stands in it owns the partition."""

    def __init__(self, store: Store, round_id: str, partition: int, token: str) -> None:
        self._store = store
        self._name = f"control/rounds/{round_id}/owners/p{partition:05d}"
        self._partition = partition
        self._token = token.encode()

    def take(self) -> None:
        """Become the owner; an attempt that owned it before will notice."""
        self._store.write_bytes(self._name, self._token)

    def check(self) -> None:
        """Raises PartitionLostError when another attempt took the partition."""
        if self._store.read_bytes(self._name) != self._token:
            raise PartitionLostError(
                f"Fetch partition {self._partition} was taken over by a newer attempt.",
                "Nothing is lost: that attempt goes on from what was published.",
            )


class SpoolLock:
    """Keeps two attempts on one machine from writing to the same spool folder.

    The kernel frees the lock when its process dies, however it dies.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / ".lock"
        self._descriptor: int | None = None

    def acquire(self, wait_seconds: float = _LOCK_WAIT_SECONDS) -> None:
        """Take the lock. Raises StorageError when another process keeps it for `wait_seconds`."""
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    raise StorageError(
                        f"Another fetch process still writes to {self._path.parent}.", "End it, then run fetch again."
                    ) from None
                time.sleep(0.2)
            else:
                if self._is_current(descriptor):
                    self._descriptor = descriptor
                    return
                # The attempt before was done and removed the folder with its lock file.
                os.close(descriptor)
                self._path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def remove_folder(self) -> None:
        """Remove the spool folder, which holds nothing unpublished any more; keep the lock until `release`."""
        shutil.rmtree(self._path.parent, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._path.parent.parent.rmdir()  # the round's, once its last partition is done

    def release(self) -> None:
        """Let go."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
