"""The pooled document stream: a body in memory while it is small, then in a temporary file."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from typing import IO

#: Bytes of a body that are held in memory.
MEMORY_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024
#: Bytes of the one body that is being stored and may be in memory for that moment.
ONE_PIECE_BYTES = 512 * 1024
#: Scratch files kept open for the next long body.
_MAX_FREE_FILES = 64


class ScratchFiles:
    """Temporary files without a name, used again and again: to make one costs more than to fill it.

    Args:
        folder: where they are made; None: the system's.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._free: list[IO[bytes]] = []
        self._is_closed = False

    def take(self) -> IO[bytes]:
        """An empty file."""
        try:
            return self._free.pop()
        except IndexError:
            return tempfile.TemporaryFile(dir=self._folder)

    def give_back(self, file: IO[bytes]) -> None:
        """The file is not needed any more."""
        if self._is_closed or len(self._free) >= _MAX_FREE_FILES:
            _close(file)
            return
        try:
            file.seek(0)
            file.truncate()
        except OSError:  # what it still held can't be written
            _close(file)
        else:
            self._free.append(file)

    def close(self) -> None:
        """Close the files that are free now, and later those that come back."""
        self._is_closed = True
        while self._free:
            self._free.pop().close()


class Body:
    """Bytes written once, then read as often as needed.

    Args:
        max_bytes: bytes kept; a write that passes it is cut and refused.
        files: where a file comes from once the body does not stay in memory; None: one of its own.

    Attributes:
        size_bytes: bytes kept.
        cut: more came than is kept.
        fault: why the file can't be written: a full disk, which says nothing about the host.
    """

    __slots__ = ("_chunks", "_file", "_files", "_max_bytes", "cut", "fault", "size_bytes")

    def __init__(self, max_bytes: int, files: ScratchFiles | None = None) -> None:
        self._max_bytes = max_bytes
        self._files = files
        self._chunks: list[bytes] = []
        self._file: IO[bytes] | None = None
        self.size_bytes = 0
        self.cut = False
        self.fault: OSError | None = None

    def write(self, chunk: bytes) -> int:
        """Append; the number of bytes taken, less than given once the cap is passed (libcurl then stops)."""
        room_bytes = self._max_bytes - self.size_bytes
        if len(chunk) > room_bytes:
            self.cut = True
            chunk = chunk[:room_bytes]
        self.size_bytes += len(chunk)
        if self._file is None:
            self._chunks.append(chunk)
        try:
            if self._file is not None:
                self._file.write(chunk)
            elif self.size_bytes > MEMORY_BYTES:
                self._file = self._files.take() if self._files else tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
                self._file.writelines(self._chunks)
                self._file.flush()
                self._chunks.clear()
        except OSError as error:
            self.fault, self.cut = error, True
        return len(chunk) if not self.cut else 0

    def in_memory(self) -> bytes | None:
        """The whole body when it is held in memory, else None."""
        if self._file is not None:
            return None
        if len(self._chunks) > 1:
            self._chunks[:] = [b"".join(self._chunks)]
        return self._chunks[0] if self._chunks else b""

    def in_one_piece(self) -> bytes | None:
        """The whole body unless it is a long one: to be used and let go of at once."""
        if self._file is None or self.size_bytes > ONE_PIECE_BYTES:
            return self.in_memory()
        self._file.seek(0)
        return self._file.read()

    def pieces(self) -> Iterator[bytes]:
        """The body from its start, piece by piece."""
        whole = self.in_memory()
        if whole is not None:
            if whole:
                yield whole
            return
        assert self._file is not None
        self._file.seek(0)
        while piece := self._file.read(_PIECE_BYTES):
            yield piece

    def stream(self) -> IO[bytes]:
        """A seekable stream at the body's start."""
        whole = self.in_memory()
        if whole is not None:
            return io.BytesIO(whole)
        assert self._file is not None
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Give memory and file back."""
        self._chunks.clear()
        if self._file is not None:
            if self._files is None:
                _close(self._file)
            else:
                self._files.give_back(self._file)
            self._file = None


def _close(file: IO[bytes]) -> None:
    # A full disk refuses what is still buffered; nobody reads it any more.
    with contextlib.suppress(OSError):
        file.close()
