"""A scratch file of one task: what does not have to stay in memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO, NamedTuple


class Place(NamedTuple):
    """Where a piece of a scratch file lies, in bytes."""

    offset: int
    length: int


class SpillFile:
    """Pieces of bytes, appended once and read back at will; the file has no name and dies with the task.

    Args:
        folder: where it is made, on first use; None: the system's temporary folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._size_bytes = 0

    def append(self, data: bytes) -> Place:
        """Keep a piece."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - closed by close()
        place = Place(self._size_bytes, len(data))
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._size_bytes += len(data)
        return place

    def read(self, place: Place) -> bytes:
        """A piece that was kept."""
        if self._file is None:
            return b""
        return os.pread(self._file.fileno(), place.length, place.offset)

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()
            self._file = None
