"""Makes an unclosed WARC part usable: its whole gzip members are kept, the rest is cut off.

Looking backwards for the last gzip magic would be faster but wrong: bodies are often gzip
themselves, and incompressible bytes stand in a member as they are. So the file is inflated from
its start (about 200 MB of it a second), without keeping anything.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from datetime import datetime
from pathlib import Path

from isal import isal_zlib
from isal.igzip_lib import IsalError

from recrawl.errors import WarcError
from recrawl.warc.cdxj import INDEXED_TYPES
from recrawl.warc.reader import iterate
from recrawl.warc.records import PartSummary

_GZIP_WINDOW_BITS = 31
#: Slices grow within a member: what a slice holds of the next member is copied for nothing.
_FIRST_SLICE_BYTES = 8 * 1024
_LAST_SLICE_BYTES = 64 * 1024


def whole_members_length(path: Path) -> int:
    """The length in bytes of the whole gzip members that the file begins with; 0 if none is.

    A member is whole when its trailer is there and its checksum is right.

    Raises:
        WarcError: the file can't be read.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return 0
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
                return _whole_members(data)
    except OSError as error:
        raise WarcError(f"The WARC file {path} can't be read: {error.strerror}.") from None


def _whole_members(data: memoryview) -> int:
    whole_bytes = position = 0
    while position < len(data):
        decoder = isal_zlib.decompressobj(_GZIP_WINDOW_BITS)
        slice_bytes = _FIRST_SLICE_BYTES
        try:
            while position < len(data) and not decoder.eof:
                with data[position : position + slice_bytes] as piece:
                    decoder.decompress(piece)
                    position += len(piece)
                slice_bytes = min(2 * slice_bytes, _LAST_SLICE_BYTES)
        except IsalError:  # type: ignore[misc]  # isal stubs it as an instance
            return whole_bytes
        if not decoder.eof:
            return whole_bytes
        position -= len(decoder.unused_data)
        whole_bytes = position
    return whole_bytes


def cut_to_whole_members(path: Path) -> int:
    """Cut the file behind its last whole gzip member; its length in bytes after that.

    Raises:
        WarcError: the file can't be read or cut.
    """
    whole_bytes = whole_members_length(path)
    try:
        if whole_bytes != path.stat().st_size:
            os.truncate(path, whole_bytes)
    except OSError as error:
        raise WarcError(f"The WARC file {path} can't be cut: {error.strerror}.") from None
    return whole_bytes


def summary_of(path: Path) -> PartSummary:
    """What `PartWriter.close` would have told of a whole file; for salvaged parts.

    Raises:
        WarcError: the file can't be read, has no record, or ends inside one.
    """
    records = 0
    dates: list[datetime] = []
    other_dates: list[datetime] = []
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size_bytes = file.tell()
            for place, capture in iterate(file, max_bytes=0):
                records += 1
                is_capture = capture.record_type in INDEXED_TYPES and not capture.url.startswith("dns:")
                (dates if is_capture else other_dates).append(place.date)
    except OSError as error:
        raise WarcError(f"The WARC file {path} can't be read: {error.strerror}.") from None
    dates = dates or other_dates
    if not dates:
        raise WarcError(f"The WARC file {path} holds no record.")
    return PartSummary(size_bytes, records, sha256, min(dates), max(dates))
