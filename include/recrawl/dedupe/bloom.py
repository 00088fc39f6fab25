"""A Bloom filter for each bucket of `urls`: which link targets are certainly new.

An id that the filter has not seen is certainly new; one that it may have seen goes to the exact
join, because a false positive taken at its word would lose a page for ever. The filter is only
true of the table version and the URL rules that it was built from, so the file names both, and a
stale or damaged filter is rebuilt, never guessed around.

File: magic, SHA-256 of all that follows, length of the header (4 bytes, little-endian), header
(JSON: bucket, table and rules version, count, error rate), and the bits in pybloom_live's own form.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import pyarrow as pa
from pybloom_live import BloomFilter

from recrawl.errors import StorageError, TableError

_MAGIC = b"RCBLOOM1"
_LENGTH = struct.Struct("<I")
_REBUILD = "Delete the file: the next round builds it again from `urls`."

#: Room for new ids: a filter is built for this many times the ids that it begins with.
GROWTH = 1.5

#: False positives at full capacity.
ERROR_RATE = 0.001


class ArrowIds(Protocol):
    """A pyarrow Array or ChunkedArray of int64."""

    def to_pylist(self) -> list[int | None]:
        """The values."""


Ids = Sequence[int] | ArrowIds


@dataclass(frozen=True)
class Coverage:
    """What a filter is true of: a bucket of `urls` at a version, under a version of the URL rules."""

    bucket: int
    table_version: int
    rules_version: int


def _integers(ids: Ids) -> list[int]:
    values: list[int] = []
    for value in ids if isinstance(ids, Sequence) else ids.to_pylist():
        if value is None:
            raise ValueError("an id is NULL; ids are only made of URLs that exist")
        values.append(value)
    return values


class UrlFilter:
    """The ids of one bucket, with false positives and without false negatives."""

    def __init__(self, coverage: Coverage, bloom: BloomFilter) -> None:
        self.coverage = coverage
        self._bloom = bloom

    @classmethod
    def build(
        cls, ids: Ids, coverage: Coverage, capacity: int | None = None, error_rate: float = ERROR_RATE
    ) -> UrlFilter:
        """A filter of these ids with room for `capacity` (default: half as many more)."""
        values = _integers(ids)
        room = capacity if capacity is not None else max(1_000, int(len(values) * GROWTH))
        built = cls(coverage, BloomFilter(capacity=room, error_rate=error_rate))
        built._add(values)
        return built

    def __len__(self) -> int:
        """Distinct ids added (a false positive on adding counts as present)."""
        return int(self._bloom.count)

    def has_room(self, more: int) -> bool:
        """Whether `more` ids can be added at the promised error rate; else build a new filter."""
        return bool(self._bloom.count + more <= self._bloom.capacity)

    def add(self, ids: Ids, table_version: int) -> None:
        """Adds the ids that a fold brought, and covers the version that it made.

        Raises:
            TableError: the filter is full, or the version is not a later one.
        """
        values = _integers(ids)
        if table_version <= self.coverage.table_version:
            raise TableError(
                f"The Bloom filter of bucket {self.coverage.bucket} covers version {self.coverage.table_version}, "
                f"so version {table_version} can't be added.",
                _REBUILD,
            )
        if not self.has_room(len(values)):
            raise TableError(f"The Bloom filter of bucket {self.coverage.bucket} is full.", _REBUILD)
        self._add(values)
        self.coverage = Coverage(self.coverage.bucket, table_version, self.coverage.rules_version)

    def _add(self, values: Iterable[int]) -> None:
        for value in values:
            self._bloom.add(value)

    def maybe_seen(self, ids: Ids) -> pa.BooleanArray:
        """For each id: False is certainly new, True goes to the exact join."""
        bloom = self._bloom
        return pa.array([value in bloom for value in _integers(ids)], type=pa.bool_())

    def is_stale(self, table_version: int, rules_version: int) -> bool:
        """Whether the filter is true of another version of the table or of the URL rules.

        A filter *ahead* of the table (the table was restored) has too many ids: harmless for what
        is certainly new, but the versions to come will not be those it covers, so it is stale too.
        """
        return (self.coverage.table_version, self.coverage.rules_version) != (table_version, rules_version)

    def to_bytes(self) -> bytes:
        """The file."""
        body = io.BytesIO()
        self._bloom.tofile(body)
        header = {**asdict(self.coverage), "count": len(self), "error_rate": float(self._bloom.error_rate)}
        text = json.dumps(header, sort_keys=True).encode("ascii")
        content = _LENGTH.pack(len(text)) + text + body.getvalue()
        return _MAGIC + hashlib.sha256(content).digest() + content

    @classmethod
    def from_bytes(cls, data: bytes, bucket: int) -> UrlFilter:
        """Reads a file back.

        Raises:
            StorageError: it is damaged, cut, no filter at all, or another bucket's.
        """
        if not data.startswith(_MAGIC):
            raise StorageError("The file is no Bloom filter of this program.", _REBUILD)
        start = len(_MAGIC) + hashlib.sha256().digest_size
        content = data[start:]
        if hashlib.sha256(content).digest() != data[len(_MAGIC) : start]:
            raise StorageError("The Bloom filter's bytes differ from its checksum.", _REBUILD)
        (length,) = _LENGTH.unpack_from(content)
        header = json.loads(content[_LENGTH.size : _LENGTH.size + length])
        if header["bucket"] != bucket:
            raise StorageError(f"The Bloom filter is that of bucket {header['bucket']}, not {bucket}.", _REBUILD)
        coverage = Coverage(header["bucket"], header["table_version"], header["rules_version"])
        return cls(coverage, BloomFilter.fromfile(io.BytesIO(content[_LENGTH.size + length :])))
