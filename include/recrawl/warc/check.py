"""Checks WARC files by their letter (ISO 28500:2017), without the code that reads them elsewhere.

Other validators each miss something: jwarc accepts one gzip member for a whole file, `warcio
check` a truncated end and bad dates, and neither misses a WARC-Record-ID.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from recrawl.errors import WarcError
from recrawl.warc.records import parse_warc_date

_GZIP_WINDOW_BITS = 31
_READ_BYTES = 64 * 1024
_MAX_HEADER_BYTES = 1 << 20
_RECORD_END = b"\r\n\r\n"
_RECORD_ID = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^<>\s]+>")
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NEEDS_URI = frozenset({"response", "resource", "request", "revisit", "conversion", "continuation"})
_HASHES = {"sha1": "sha1", "sha256": "sha256", "md5": "md5"}
_TRUNCATED_REASONS = frozenset({"length", "time", "disconnect", "unspecified"})

#: Header fields (in lower case) and the types of records that must not have them (WARC 1.1, 5).
_FORBIDDEN = {
    "warc-target-uri": frozenset({"warcinfo"}),
    "warc-ip-address": frozenset({"warcinfo", "conversion", "continuation"}),
    "warc-concurrent-to": frozenset({"warcinfo", "conversion", "continuation"}),
    "warc-refers-to": frozenset({"warcinfo", "response", "resource", "request", "continuation"}),
    "warc-warcinfo-id": frozenset({"warcinfo"}),
    "warc-filename": frozenset(
        {"response", "resource", "request", "metadata", "revisit", "conversion", "continuation"}
    ),
}


class InspectedRecord(NamedTuple):
    """A record as its own header tells.

    Attributes:
        offset, length: where its gzip member begins, and its compressed length, in bytes.
        date: WARC-Date as written.
        payload_digest: WARC-Payload-Digest, or empty.
    """

    offset: int
    length: int
    record_type: str
    record_id: str
    url: str
    date: str
    payload_digest: str


@dataclass(frozen=True)
class Inspection:
    """All that one reading of a WARC file tells.

    Attributes:
        problems: what is wrong, each with the offset of its record; empty is a pass.
        records: those before the first place that can't be read.
        bytes: the length of the file.
        sha256: of the file, hexadecimal.
    """

    problems: tuple[str, ...]
    records: tuple[InspectedRecord, ...]
    bytes: int
    sha256: str


def check_warc(path: Path) -> list[str]:
    """All that is wrong with a local gzipped WARC file; see `inspect_warc`.

    Raises:
        WarcError: the file can't be opened or read.
    """
    try:
        with path.open("rb") as file:
            return list(inspect_warc(file).problems)
    except OSError as error:
        raise WarcError(f"The WARC file {path} can't be read: {error.strerror}.") from None


def inspect_warc(stream: BinaryIO) -> Inspection:
    """Read a gzipped WARC file once, from where the stream stands to its end.

    Checked: one gzip member a record, nothing behind the last; version line and header form;
    WARC-Record-ID there and unique, WARC-Type, WARC-Date, WARC-Target-URI where one must be; fields
    that a type of record must not have; Content-Length; block and payload digests; WARC-Profile and
    digest of revisits; that records named by WARC-Warcinfo-ID and WARC-Concurrent-To are in the
    file; warcinfo first.

    Raises:
        OSError: the stream can't be read.
    """
    problems: list[str] = []
    records: list[InspectedRecord] = []
    seen_ids: set[str] = set()
    named_ids: list[tuple[int, str, str]] = []
    file = _HashedStream(stream)
    for offset, member in _members(file, problems):
        record = _RecordCheck(member.pieces())
        problems += [f"byte {offset:,}: {problem}" for problem in record.problems()]
        headers = record.headers
        if offset == 0 and headers.get("warc-type") != "warcinfo":
            problems.append("byte 0: the first record is no warcinfo")
        record_id = headers.get("warc-record-id", "")
        if record_id in seen_ids:
            problems.append(f"byte {offset:,}: WARC-Record-ID {record_id} is not unique")
        seen_ids.add(record_id)
        for name in ("WARC-Warcinfo-ID", "WARC-Concurrent-To"):
            if named := headers.get(name.lower()):
                named_ids.append((offset, name, named))
        if not member.problem:
            fields = ("warc-type", "warc-record-id", "warc-target-uri", "warc-date", "warc-payload-digest")
            records.append(
                InspectedRecord(offset, member.compressed_bytes, *(headers.get(name, "") for name in fields))
            )
    if not records and not problems:
        problems.append("byte 0: there is no record")
    for offset, name, named in named_ids:
        if named not in seen_ids:
            problems.append(f"byte {offset:,}: {name} names {named}, which is not in the file")
    while file.read(_READ_BYTES):
        # What can't be understood counts for length and SHA-256 all the same.
        continue
    return Inspection(tuple(problems), tuple(records), file.bytes_read, file.sha256.hexdigest())


class _HashedStream:
    """A stream that counts and digests what is read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.bytes_read = 0
        self.sha256 = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.bytes_read += len(data)
        self.sha256.update(data)
        return data


def _members(file: _HashedStream, problems: list[str]) -> Iterator[tuple[int, _Member]]:
    """Each gzip member with its offset; its content is to be taken before the next."""
    rest = file.read(_READ_BYTES)
    offset = 0
    while rest:
        member = _Member(file, rest)
        yield offset, member
        if member.problem:
            problems.append(f"byte {offset:,}: {member.problem}")
            return
        offset += member.compressed_bytes
        rest = member.rest or file.read(_READ_BYTES)


class _Member:
    """One gzip member, inflated by zlib (the writer uses isal: the two check each other)."""

    def __init__(self, file: _HashedStream, start: bytes) -> None:
        self._file = file
        self._start = start
        self.rest = b""
        self.compressed_bytes = 0
        self.problem = ""

    def pieces(self) -> Iterator[bytes]:
        decoder = zlib.decompressobj(_GZIP_WINDOW_BITS)
        data = self._start
        while data:
            self.compressed_bytes += len(data)
            while data and not decoder.eof:
                try:
                    piece = decoder.decompress(data, _READ_BYTES)
                except zlib.error as error:
                    self.problem = f"no gzip member: {error}"
                    return
                data = decoder.unconsumed_tail
                yield piece
            if decoder.eof:
                self.rest = decoder.unused_data
                self.compressed_bytes -= len(self.rest)
                return
            data = self._file.read(_READ_BYTES)
        self.problem = "the file ends inside a gzip member"


class _RecordCheck:
    """One record: its headers, and what is wrong with it."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._problems: list[str] = []
        self.headers: dict[str, str] = {}

    def problems(self) -> list[str]:
        start = self._read_header()
        if start is not None:
            self._check_header()
            self._check_block(start)
        for _ in self._pieces:
            # Whatever is left: the next member begins behind it.
            continue
        return self._problems

    def _read_header(self) -> bytes | None:
        data = b""
        for piece in self._pieces:
            data += piece
            end = data.find(_RECORD_END)
            if end >= 0 or len(data) > _MAX_HEADER_BYTES:
                break
        else:
            end = data.find(_RECORD_END)
        if end < 0:
            self._problems.append("the record's header has no end")
            return None
        lines = data[:end].decode("utf-8", "replace").split("\r\n")
        if lines[0] not in ("WARC/1.1", "WARC/1.0"):
            self._problems.append(f"the version line is {lines[0][:40]!r}")
            return None
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not _FIELD_NAME.fullmatch(name):
                self._problems.append(f"{line[:40]!r} is no header line")
            elif name.lower() in self.headers and name.lower() not in ("warc-concurrent-to", "warc-protocol"):
                self._problems.append(f"{name} is there twice")
            else:
                self.headers[name.lower()] = value.strip()
        return data[end + len(_RECORD_END) :]

    def _check_header(self) -> None:
        headers = self.headers
        for name in ("WARC-Record-ID", "WARC-Type", "WARC-Date", "Content-Length"):
            if name.lower() not in headers:
                self._problems.append(f"{name} is missing")
        record_type = headers.get("warc-type", "")
        record_id = headers.get("warc-record-id")
        if record_id is not None and not _RECORD_ID.fullmatch(record_id):
            self._problems.append(f"WARC-Record-ID {record_id!r} is no URI in angle brackets")
        for name in ("WARC-Date", "WARC-Refers-To-Date"):
            if (text := headers.get(name.lower())) is not None:
                try:
                    parse_warc_date(text)
                except ValueError:
                    self._problems.append(f"{name} {text!r} is no date")
        if record_type in _NEEDS_URI and "warc-target-uri" not in headers:
            self._problems.append("WARC-Target-URI is missing")
        if record_type == "revisit" and "warc-profile" not in headers:
            self._problems.append("WARC-Profile is missing")
        is_same_digest = headers.get("warc-profile", "").endswith("/identical-payload-digest")
        if is_same_digest and "warc-payload-digest" not in headers:
            self._problems.append("WARC-Payload-Digest is missing")
        self._problems += [
            f"a {record_type} record has {name}"
            for name, types in _FORBIDDEN.items()
            if name in headers and record_type in types
        ]
        if (reason := headers.get("warc-truncated")) is not None and reason not in _TRUNCATED_REASONS:
            self._problems.append(f"WARC-Truncated {reason!r} is no reason")

    def _check_block(self, start: bytes) -> None:
        length = self.headers.get("content-length", "")
        if not length.isascii() or not length.isdigit():
            self._problems.append(f"Content-Length {length!r} is no number")
            return
        block = _BlockDigests(self.headers, int(length))
        block.feed(start)
        for piece in self._pieces:
            block.feed(piece)
        self._problems += block.problems()


class _BlockDigests:
    """Length, end and digests of a block that comes in pieces."""

    def __init__(self, headers: dict[str, str], block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._seen_bytes = 0
        self._end = b""
        self._block = _hash_of(headers.get("warc-block-digest", ""))
        self._payload = None
        # A revisit's payload digest is that of a payload that stands elsewhere.
        if headers.get("warc-type") != "revisit":
            self._payload = _hash_of(headers.get("warc-payload-digest", ""))
        is_http = headers.get("content-type", "").startswith("application/http")
        self._head: bytes | None = b"" if is_http else None

    def feed(self, data: bytes) -> None:
        left_bytes = max(0, self._block_bytes - self._seen_bytes)
        self._seen_bytes += len(data)
        block, end = data[:left_bytes], data[left_bytes:]
        self._end = (self._end + end)[: len(_RECORD_END) + 1]
        if self._block:
            self._block.update(block)
        if self._payload:
            self._payload.update(self._behind_head(block))

    def _behind_head(self, block: bytes) -> bytes:
        if self._head is None:
            return block
        self._head += block
        end = re.search(rb"\r?\n\r?\n", self._head)
        if end is None:
            return b""
        body, self._head = self._head[end.end() :], None
        return body

    def problems(self) -> list[str]:
        if self._end != _RECORD_END:
            found_bytes = self._seen_bytes - len(_RECORD_END)
            return [f"Content-Length is {self._block_bytes:,}, but the record does not end there ({found_bytes:,})"]
        return [
            f"the {name} digest is {digest.expected}, but that of the bytes is {digest.found()}"
            for name, digest in (("block", self._block), ("payload", self._payload))
            if digest and digest.found() != digest.expected
        ]


class _Digest:
    """A labelled digest to be compared: `algorithm:value` in base 32 or base 16."""

    def __init__(self, algorithm: str, expected: str) -> None:
        self.expected = expected
        self._algorithm = algorithm
        self._hash = hashlib.new(algorithm, usedforsecurity=False)

    def update(self, data: bytes) -> None:
        self._hash.update(data)

    def found(self) -> str:
        label, _, value = self.expected.partition(":")
        if len(value) == 2 * self._hash.digest_size:
            return f"{label}:{self._hash.hexdigest()}"
        return f"{label}:{base64.b32encode(self._hash.digest()).decode('ascii')}"


def _hash_of(labelled: str) -> _Digest | None:
    algorithm = _HASHES.get(labelled.partition(":")[0].lower())
    return _Digest(algorithm, labelled) if algorithm else None
