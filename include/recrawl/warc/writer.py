"""Writes captures as WARC 1.1: one gzip member a record, compressed by isal."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from recrawl.errors import WarcError
from recrawl.warc.cdxj import IndexEntry, index_entry
from recrawl.warc.records import (
    PROFILE_PREFIX,
    Exchange,
    PartSummary,
    RecordPlace,
    stored_request_head,
    stored_response_head,
    warc_date,
)

#: isal's best level: as small as zlib's 4 or so, several times as fast.
GZIP_LEVEL = 3
_GZIP_WINDOW_BITS = 31

#: Bodies up to this length are compressed in one piece; longer ones are streamed.
STREAM_OVER_BYTES = 64 * 1024

_FILE_BUFFER_BYTES = 256 * 1024

_NOT_IN_HEADERS = re.compile(r"[\x00-\x20]")

_Fields = list[tuple[str, str]]


class PartWriter:
    """One WARC file in the making, warcinfo first.

    Args:
        path: the local file, made by this call; its name becomes WARC-Filename.
        warcinfo: the fields of the warcinfo record (software, format, robots, ...).
        created_at: WARC-Date of the warcinfo record; aware.

    Raises:
        WarcError: the file exists already or can't be written; `write`, `flush` and `close`
            raise it too. After a failed `write` the file may end in part of a record, which
            `salvage.cut_to_whole_members` removes.

    Attributes:
        entries: what a CDXJ index says of the captures written, in their order.
    """

    def __init__(self, path: Path, warcinfo: Mapping[str, str], created_at: datetime) -> None:
        self._path = path
        self._sha256 = hashlib.sha256()
        self._bytes_written = 0
        self._records = 0
        self.entries: list[IndexEntry] = []
        self._created_at = created_at
        self._first_date: datetime | None = None
        self._last_date: datetime | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("xb", buffering=_FILE_BUFFER_BYTES)
        except OSError as error:
            raise self._unwritable(error) from None
        self._warcinfo_id = _new_record_id()
        block = _warc_fields(warcinfo)
        fields = [
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", self._warcinfo_id),
            ("WARC-Date", warc_date(created_at)),
            ("WARC-Filename", path.name),
            ("WARC-Block-Digest", _sha1(block)),
            ("Content-Type", "application/warc-fields"),
        ]
        self._append(fields, block)

    @property
    def bytes_written(self) -> int:
        """The length of the file so far, buffered bytes included."""
        return self._bytes_written

    def write(self, exchange: Exchange) -> RecordPlace:
        """Write the response or revisit record, the request record and, if asked, metadata.

        Returns:
            The place of the response or revisit record.

        Raises:
            WarcError: the exchange can't be stored as WARC (no HTTP status line, a naive time, a
                body that is not `body_bytes` long); the file is as before then.
        """
        date = warc_date(exchange.started_at)
        head, protocol = stored_response_head(exchange.response_head)
        request_head = stored_request_head(exchange.request_head)
        record_id = _new_record_id()
        shared = [("WARC-Date", date), ("WARC-Target-URI", _header_value(exchange.url))]
        shared.append(("WARC-Warcinfo-ID", self._warcinfo_id))
        if exchange.ip:
            shared.append(("WARC-IP-Address", exchange.ip))
        if protocol:
            shared.append(("WARC-Protocol", protocol))

        body, body_bytes = (b"", 0) if exchange.revisit else (exchange.body, exchange.body_bytes)
        if not isinstance(body, bytes) and body_bytes <= STREAM_OVER_BYTES:
            body = body.read(body_bytes)
        block_digest = _block_digest(head, body, body_bytes)
        fields = _response_fields(exchange, record_id, block_digest, shared)
        offset = self._bytes_written
        if isinstance(body, bytes) and body_bytes <= STREAM_OVER_BYTES:
            self._append(fields, head + body)
        else:
            self._append_stream(fields, len(head) + body_bytes, _pieces(head, body, body_bytes))
        length = self._bytes_written - offset

        self._append_related("request", "application/http;msgtype=request", request_head, record_id, shared)
        if exchange.metadata:
            block = _warc_fields(exchange.metadata)
            self._append_related("metadata", "application/warc-fields", block, record_id, shared)
        self._first_date = min(self._first_date or exchange.started_at, exchange.started_at)
        self._last_date = max(self._last_date or exchange.started_at, exchange.started_at)
        place = RecordPlace(offset, length, record_id, exchange.started_at)
        is_revisit = exchange.revisit is not None
        self.entries.append(index_entry(exchange.url, place, head, exchange.payload_digest, is_revisit=is_revisit))
        return place

    def flush(self) -> None:
        """Hand all whole records to the operating system, so that they survive this process."""
        try:
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def close(self) -> PartSummary:
        """Finish the file and wait until it is on the disk."""
        try:
            if not self._file.closed:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
        except OSError as error:
            raise self._unwritable(error) from None
        return PartSummary(
            self._bytes_written,
            self._records,
            self._sha256.hexdigest(),
            self._first_date or self._created_at,
            self._last_date or self._created_at,
        )

    def _append_related(
        self, record_type: str, content_type: str, block: bytes, concurrent_to: str, shared: _Fields
    ) -> None:
        fields = [
            ("WARC-Type", record_type),
            ("WARC-Record-ID", _new_record_id()),
            *shared,
            ("WARC-Concurrent-To", concurrent_to),
            ("WARC-Block-Digest", _sha1(block)),
            ("Content-Type", content_type),
        ]
        self._append(fields, block)

    def _append(self, fields: _Fields, block: bytes) -> None:
        record = b"%b%b\r\n\r\n" % (_record_head(fields, len(block)), block)
        self._put(isal_zlib.compress(record, GZIP_LEVEL, _GZIP_WINDOW_BITS))
        self._records += 1

    def _append_stream(self, fields: _Fields, block_bytes: int, pieces: Iterable[bytes]) -> None:
        compressor = isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW_BITS)
        self._put(compressor.compress(_record_head(fields, block_bytes)))
        for piece in pieces:
            self._put(compressor.compress(piece))
        self._put(compressor.compress(b"\r\n\r\n") + compressor.flush())
        self._records += 1

    def _put(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._unwritable(error) from None
        self._sha256.update(data)
        self._bytes_written += len(data)

    def _unwritable(self, error: OSError) -> WarcError:
        return WarcError(f"The WARC file {self._path} can't be written: {error.strerror}.")


def _response_fields(exchange: Exchange, record_id: str, block_digest: str, shared: _Fields) -> _Fields:
    revisit = exchange.revisit
    fields = [("WARC-Type", "revisit" if revisit else "response"), ("WARC-Record-ID", record_id), *shared]
    if revisit:
        fields.append(("WARC-Profile", PROFILE_PREFIX + revisit.profile))
        if revisit.refers_to_record_id:
            fields.append(("WARC-Refers-To", revisit.refers_to_record_id))
        if revisit.refers_to_uri:
            fields.append(("WARC-Refers-To-Target-URI", _header_value(revisit.refers_to_uri)))
        if revisit.refers_to_date:
            fields.append(("WARC-Refers-To-Date", warc_date(revisit.refers_to_date)))
    elif exchange.truncated:
        fields.append(("WARC-Truncated", exchange.truncated.value))
    if exchange.payload_digest:
        fields.append(("WARC-Payload-Digest", exchange.payload_digest))
    fields.append(("WARC-Block-Digest", block_digest))
    fields.append(("Content-Type", "application/http;msgtype=response"))
    return fields


def _record_head(fields: _Fields, block_bytes: int) -> bytes:
    lines = [f"{name}: {value}" for name, value in fields]
    return ("WARC/1.1\r\n" + "\r\n".join(lines) + f"\r\nContent-Length: {block_bytes}\r\n\r\n").encode(
        "utf-8", "replace"
    )


def _warc_fields(fields: Mapping[str, str]) -> bytes:
    lines = [f"{name}: {' '.join(value.split())}\r\n" for name, value in fields.items()]
    return "".join(lines).encode("utf-8", "replace")


def _header_value(url: str) -> str:
    if _NOT_IN_HEADERS.search(url):
        raise WarcError(f"{url!r} is no URL: it holds a space or a control character.")
    return url


def _new_record_id() -> str:
    return f"<urn:uuid:{uuid.uuid4()}>"


def _sha1(data: bytes) -> str:
    return _digest_text(hashlib.sha1(data, usedforsecurity=False).digest())


def _digest_text(digest: bytes) -> str:
    return "sha1:" + base64.b32encode(digest).decode("ascii")


def _block_digest(head: bytes, body: BinaryIO | bytes, body_bytes: int) -> str:
    """The digest stands before the block, so a stream is read twice; sha1 costs little beside gzip."""
    digest = hashlib.sha1(head, usedforsecurity=False)
    found_bytes = 0
    if isinstance(body, bytes):
        digest.update(body)
        found_bytes = len(body)
    else:
        start = body.tell()
        while found_bytes < body_bytes and (piece := body.read(min(STREAM_OVER_BYTES, body_bytes - found_bytes))):
            digest.update(piece)
            found_bytes += len(piece)
        body.seek(start)
    if found_bytes != body_bytes:
        raise WarcError(f"A body was said to have {body_bytes:,} bytes but has {found_bytes:,}.")
    return _digest_text(digest.digest())


def _pieces(head: bytes, body: BinaryIO | bytes, body_bytes: int) -> Iterator[bytes]:
    yield head
    if isinstance(body, bytes):
        yield body
        return
    left_bytes = body_bytes
    while left_bytes and (piece := body.read(min(STREAM_OVER_BYTES, left_bytes))):
        left_bytes -= len(piece)
        yield piece
