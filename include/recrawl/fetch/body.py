"""The pooled document stream: a body in memory while it is small, then in a temporary file."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from typing import IO

#: Bytes of a body that are held in memory.
MEMORY_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024


class Body:
    """Bytes written once, then read as often as needed.

    Args:
        max_bytes: bytes kept; a write that passes it is cut and refused.
        spool_dir: folder of the temporary file; None: the system's.
    """

    __slots__ = ("_chunks", "_file", "_max_bytes", "_spool_dir", "cut", "size_bytes")

    def __init__(self, max_bytes: int, spool_dir: str | None = None) -> None:
        self._max_bytes = max_bytes
        self._spool_dir = spool_dir
        self._chunks: list[bytes] = []
        self._file: IO[bytes] | None = None
        self.size_bytes = 0
        self.cut = False

    def write(self, chunk: bytes) -> int:
        """Append; the number of bytes taken, less than given once the cap is passed (libcurl then stops)."""
        room_bytes = self._max_bytes - self.size_bytes
        if len(chunk) > room_bytes:
            self.cut = True
            chunk = chunk[:room_bytes]
        self.size_bytes += len(chunk)
        if self._file is not None:
            self._file.write(chunk)
        else:
            self._chunks.append(chunk)
            if self.size_bytes > MEMORY_BYTES:
                self._file = tempfile.TemporaryFile(dir=self._spool_dir)  # noqa: SIM115 - closed by close()
                self._file.writelines(self._chunks)
                self._chunks.clear()
        return len(chunk) if not self.cut else 0

    def in_memory(self) -> bytes | None:
        """The whole body when it is held in memory, else None."""
        if self._file is not None:
            return None
        if len(self._chunks) > 1:
            self._chunks[:] = [b"".join(self._chunks)]
        return self._chunks[0] if self._chunks else b""

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
            self._file.close()
            self._file = None
