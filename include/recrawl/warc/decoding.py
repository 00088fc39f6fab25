"""Removes content encodings (RFC 9110, 8.4.1) from a stream, whatever it holds.

A server can send a megabyte that unpacks to terabytes, or bytes that are not what its headers
say. So each decoder makes at most so much output a call, nothing here raises for bad input, and
what could be decoded is kept. Like browsers, this does not look at the checksum at the end of a
gzip or zlib stream, and takes a body that is not gzip at all for unencoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

import brotli
import zstandard
from isal import isal_zlib
from isal.igzip_lib import IsalError

#: More encodings than this on one body are taken for an attack; the body stays as it is.
MAX_ENCODINGS = 3

_RAW_WINDOW_BITS = -15
_GZIP_WINDOW_BITS = 31
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_TRAILER_BYTES = 8
#: A gzip header longer than this (its file name and comment have no limit) is malformed.
_MAX_GZIP_HEADER_BYTES = 64 * 1024

#: RFC 9659: windows above 8 MiB need not be accepted.
_ZSTD_MAX_WINDOW_BYTES = 8 << 20

#: Input and output of one decoder call: what is lost where malformed data begins.
_SLICE_BYTES = 8 * 1024
_STEP_BYTES = 8 * 1024
#: zstd can't be told to stop; 4 bytes of it make 128 KiB at most, so a call makes 16 MiB at worst.
_ZSTD_SLICE_BYTES = 512


def content_encodings(values: Sequence[str]) -> list[str]:
    """The encodings in the order in which they were applied, from the values of Content-Encoding."""
    names = [name.strip().lower() for value in values for name in value.split(",")]
    return [name.removeprefix("x-") for name in names if name not in ("", "identity", "none")]


def decode_whole(encodings: Sequence[str], data: bytes, max_bytes: int) -> bytes | None:
    """What a whole, sound body in one gzip member decodes to, in one step.

    None for everything else, also where it passes `max_bytes`: then `StreamDecoder` looks closely.

    By zlib: isal takes a quarter less for what nginx or Apache compressed (30 against 40 us for 40 KB), but
    half more for streams of many short blocks, as Go's servers send them (305 against 215 us).
    """
    if tuple(encodings) != ("gzip",):
        return None
    decoder = zlib.decompressobj(_GZIP_WINDOW_BITS)
    try:
        decoded = decoder.decompress(data, max_bytes + 1)
    except zlib.error:
        return None
    return decoded if decoder.eof and not decoder.unused_data and len(decoded) <= max_bytes else None


class _Stage(Protocol):
    """One decoder; `malformed` once its input is not what its name says."""

    malformed: bool

    def feed(self, data: bytes, max_bytes: int) -> bytes:
        """Decode `data`, stopping soon after `max_bytes` of output; never raises for bad input."""


class _Deflate:
    """zlib, or the raw deflate that some servers call by the same name (RFC 9110, 8.4.1.2)."""

    def __init__(self) -> None:
        self.malformed = False
        self._start = b""
        self._decoder: isal_zlib.Decompress | None = None

    def feed(self, data: bytes, max_bytes: int) -> bytes:
        if self._decoder is None:
            data = self._start + data
            if len(data) < 2:
                self._start = data
                return b""
            # RFC 1950, 2.2: method 8, and the first two bytes are a multiple of 31.
            is_zlib = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
            data = data[2:] if is_zlib else data
            self._decoder = isal_zlib.decompressobj(_RAW_WINDOW_BITS)
        output, _ = _inflate(self._decoder, data, max_bytes, self)
        return output


class _Gzip:
    """gzip members (RFC 1952); other bytes behind the last member are padding and are ignored."""

    def __init__(self) -> None:
        self.malformed = False
        self._held = b""
        self._decoder: isal_zlib.Decompress | None = None
        self._trailer_left_bytes = 0
        self._members = 0
        self._is_plain = False
        self._is_over = False

    def feed(self, data: bytes, max_bytes: int) -> bytes:
        output: list[bytes] = []
        room_bytes = max_bytes
        while data and room_bytes >= 0 and not self._is_over:
            if self._is_plain:
                output.append(data)
                break
            if self._decoder is not None:
                piece, data = _inflate(self._decoder, data, room_bytes, self)
                output.append(piece)
                room_bytes -= len(piece)
                if self.malformed:
                    break
                if self._decoder.eof:
                    self._decoder = None
                    self._trailer_left_bytes = _GZIP_TRAILER_BYTES
            elif self._trailer_left_bytes:
                skipped_bytes = min(self._trailer_left_bytes, len(data))
                self._trailer_left_bytes -= skipped_bytes
                data = data[skipped_bytes:]
            else:
                data = self._open_member(self._held + data)
        return b"".join(output)

    def _open_member(self, data: bytes) -> bytes:
        """Skip the header of a member; the bytes behind it, or none while it is not whole."""
        self._held = b""
        if not data.startswith(_GZIP_MAGIC[: len(data)]):
            self._is_over = self._members > 0
            self._is_plain = self.malformed = self._members == 0
            return data
        header_bytes = _gzip_header_bytes(data)
        if header_bytes is None:
            self._held = data
            self.malformed = self._is_over = len(data) > _MAX_GZIP_HEADER_BYTES
            return b""
        self._members += 1
        self._decoder = isal_zlib.decompressobj(_RAW_WINDOW_BITS)
        return data[header_bytes:]


class _Brotli:
    """Brotli (RFC 7932)."""

    def __init__(self) -> None:
        self.malformed = False
        self._decoder = brotli.Decompressor()

    def feed(self, data: bytes, max_bytes: int) -> bytes:
        output: list[bytes] = []
        room_bytes = max_bytes
        for start in range(0, len(data), _SLICE_BYTES):
            piece = data[start : start + _SLICE_BYTES]
            while room_bytes >= 0 and not self.malformed and not self._decoder.is_finished():
                try:
                    decoded = self._decoder.process(piece, output_buffer_limit=_STEP_BYTES)
                except brotli.error:
                    self.malformed = True
                    break
                output.append(decoded)
                room_bytes -= len(decoded)
                piece = b""
                # It can accept more input and still owe output: only an empty step is the last.
                if not decoded and self._decoder.can_accept_more_data():
                    break
        return b"".join(output)


class _Zstd:
    """Zstandard frames (RFC 8878)."""

    def __init__(self) -> None:
        self.malformed = False
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)
        self._decoder = decompressor.decompressobj(read_across_frames=True)

    def feed(self, data: bytes, max_bytes: int) -> bytes:
        output: list[bytes] = []
        room_bytes = max_bytes
        for start in range(0, len(data), _ZSTD_SLICE_BYTES):
            if room_bytes < 0 or self.malformed:
                break
            try:
                piece = self._decoder.decompress(data[start : start + _ZSTD_SLICE_BYTES])
            except zstandard.ZstdError:
                self.malformed = True
                break
            output.append(piece)
            room_bytes -= len(piece)
        return b"".join(output)


_STAGES: dict[str, Callable[[], _Stage]] = {
    "gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}


class StreamDecoder:
    """Undoes content encodings, piece by piece.

    Args:
        encodings: names in the order in which they were applied (`content_encodings`).
        max_bytes: the greatest decoded length; also that of each stage between.

    Attributes:
        cut: output was dropped because it passed `max_bytes`.
        malformed: some input was not what `encodings` says, or an encoding is not known; the
            output is what could be decoded, or the input itself where nothing could be.
    """

    def __init__(self, encodings: Sequence[str], max_bytes: int) -> None:
        self.cut = False
        self._max_bytes = max_bytes
        known = len(encodings) <= MAX_ENCODINGS and all(name in _STAGES for name in encodings)
        self._is_unknown = not known
        self._stages = [_STAGES[name]() for name in reversed(encodings)] if known else []
        # The last is the decoder's own output: also without any stage it has its limit.
        self._left_bytes = [max_bytes] * max(1, len(self._stages))

    @property
    def malformed(self) -> bool:
        return self._is_unknown or any(stage.malformed for stage in self._stages)

    def feed(self, chunk: bytes) -> bytes:
        """The decoded bytes that `chunk` adds; none once the output is cut."""
        if self.cut:
            return b""
        if not self._stages:
            return self._within(chunk, 0)
        for index, stage in enumerate(self._stages):
            chunk = self._within(stage.feed(chunk, self._left_bytes[index]), index)
        return chunk

    def _within(self, data: bytes, index: int) -> bytes:
        left_bytes = self._left_bytes[index]
        if len(data) > left_bytes:
            self.cut = True
            data = data[:left_bytes]
        self._left_bytes[index] = left_bytes - len(data)
        return data


def _inflate(decoder: isal_zlib.Decompress, data: bytes, max_bytes: int, stage: _Stage) -> tuple[bytes, bytes]:
    """The output (a little more than `max_bytes` at most) and the input behind the stream's end."""
    output: list[bytes] = []
    room_bytes = max_bytes
    for start in range(0, len(data), _SLICE_BYTES):
        tail = data[start : start + _SLICE_BYTES]
        # isal may have taken all input and still owe output: only a step that is not full is the last.
        is_owing = True
        while is_owing and room_bytes >= 0 and not stage.malformed and not decoder.eof:
            try:
                piece = decoder.decompress(tail, _STEP_BYTES)
            except IsalError:  # type: ignore[misc]  # isal stubs it as an instance
                stage.malformed = True
                break
            output.append(piece)
            room_bytes -= len(piece)
            tail = decoder.unconsumed_tail
            is_owing = bool(tail) or len(piece) == _STEP_BYTES
        if decoder.eof:
            return b"".join(output), decoder.unused_data + data[start + _SLICE_BYTES :]
        if room_bytes < 0 or stage.malformed:
            break
    return b"".join(output), b""


def _gzip_header_bytes(data: bytes) -> int | None:
    """The length of the gzip header that `data` begins with (RFC 1952, 2.3); None if it is not all there."""
    if len(data) < 10:
        return None
    flags, end = data[3], 10
    if flags & 0x04:
        if len(data) < end + 2:
            return None
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (0x08, 0x10):
        if flags & flag:
            end = data.find(b"\0", end) + 1
            if end == 0:
                return None
    if flags & 0x02:
        end += 2
    return end if end <= len(data) else None
