"""Writes captures as WARC 1.1: records by warcio, one gzip member a record, compressed by isal."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from isal import isal_zlib
from warcio.limitreader import LimitReader
from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.utils import Digester
from warcio.warcwriter import BaseWARCWriter

from recrawl.errors import WarcError
from recrawl.warc.cdxj import IndexEntry, index_entry
from recrawl.warc.records import (
    PROFILE_PREFIX,
    Exchange,
    Lookup,
    PartSummary,
    RecordPlace,
    stored_request_head,
    stored_response_head,
    warc_date,
)

#: isal's best level: as small as zlib's 4 or so, several times as fast.
GZIP_LEVEL = 3
_GZIP_WINDOW_BITS = 31

#: Media type of resolved names (RFC 4027).
DNS_TYPE = "text/dns"

_READ_BYTES = 64 * 1024
_FILE_BUFFER_BYTES = 256 * 1024

_NOT_IN_HEADERS = re.compile(r"[\x00-\x20]")

_Put = Callable[[bytes], None]


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
        self._warc = _RecordWriter(self._put)
        info = {name: _one_line(value) for name, value in warcinfo.items()}
        record = self._warc.create_warcinfo_record(_encodable(path.name), info)
        record.rec_headers.replace_header("WARC-Date", warc_date(created_at))
        self._warcinfo_id = record.rec_headers.get_header("WARC-Record-ID")
        self._write_record(record)

    @property
    def bytes_written(self) -> int:
        """The length of the file so far, buffered bytes included."""
        return self._bytes_written

    def write(self, exchange: Exchange) -> RecordPlace:
        """Write the response, resource or revisit record, the request record and, if asked, metadata.

        Returns:
            The place of the first of them.

        Raises:
            WarcError: the exchange can't be stored as WARC (no HTTP status line, a naive time, a
                body that is not `body_bytes` long); the file is as before then.
        """
        head, protocol = _stored_head(exchange)
        shared = self._shared(exchange.url, exchange.started_at)
        if exchange.ip:
            shared["WARC-IP-Address"] = exchange.ip
        if protocol:
            shared["WARC-Protocol"] = protocol

        place = self._write_placed(self._response(exchange, head, shared), exchange.started_at)
        shared["WARC-Concurrent-To"] = place.record_id
        if exchange.request_head:
            request_head = _HeadAsStored(stored_request_head(exchange.request_head))
            self._write_record(self._warc.record("request", shared, request_head))
        if exchange.metadata:
            lines = [f"{name}: {_one_line(value)}\r\n" for name, value in exchange.metadata.items()]
            block = "".join(lines).encode("utf-8", "replace")
            self._write_record(self._warc.record("metadata", shared, None, BytesIO(block), len(block)))
        self._first_date = min(self._first_date or exchange.started_at, exchange.started_at)
        self._last_date = max(self._last_date or exchange.started_at, exchange.started_at)
        entry = index_entry(
            exchange.url, place, head, exchange.payload_digest, is_revisit=exchange.revisit is not None,
            content_type="" if head else exchange.content_type,
        )  # fmt: skip
        self.entries.append(entry)
        return place

    def write_lookup(self, lookup: Lookup) -> None:
        """Write a resource record for each type of address that a name resolved to (WARC 1.1, 6.4.4).

        Raises:
            WarcError: the time is naive, or the name is none.
        """
        for uri, block in lookup.answers():
            fields = self._shared(uri, lookup.looked_up_at) | {"Content-Type": DNS_TYPE}
            # The payload of a resource is its block.
            digest = _block_digest(b"", BytesIO(block), len(block))
            fields |= {"WARC-Payload-Digest": digest, "WARC-Block-Digest": digest}
            record = self._warc.record("resource", fields, None, BytesIO(block), len(block))
            place = self._write_placed(record, lookup.looked_up_at)
            self.entries.append(index_entry(uri, place, b"", digest, is_revisit=False, content_type=DNS_TYPE))

    def _shared(self, uri: str, moment: datetime) -> dict[str, str]:
        return {
            "WARC-Date": warc_date(moment),
            "WARC-Target-URI": _header_value(uri),
            "WARC-Warcinfo-ID": self._warcinfo_id,
        }

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

    def _response(self, exchange: Exchange, head: bytes, shared: Mapping[str, str]) -> ArcWarcRecord:
        body_bytes = 0 if exchange.revisit else exchange.body_bytes
        body = b"" if exchange.revisit else exchange.body
        if isinstance(body, bytes):
            _check_length(body_bytes, len(body))
            body = BytesIO(body)
        fields = {**shared, **_response_fields(exchange)}
        fields["WARC-Block-Digest"] = _block_digest(head, body, body_bytes)
        record_type = "revisit" if exchange.revisit else "response" if head else "resource"
        stored_head = _HeadAsStored(head) if head else None
        return self._warc.record(record_type, fields, stored_head, LimitReader(body, body_bytes), body_bytes)

    def _write_placed(self, record: ArcWarcRecord, moment: datetime) -> RecordPlace:
        offset = self._bytes_written
        self._write_record(record)
        record_id = record.rec_headers.get_header("WARC-Record-ID")
        return RecordPlace(offset, self._bytes_written - offset, record_id, moment)

    def _write_record(self, record: ArcWarcRecord) -> None:
        self._warc.write_record(record)
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


class _RecordWriter(BaseWARCWriter):  # type: ignore[misc]  # warcio has no annotations
    """warcio's writer of WARC 1.1, which hands each record as one gzip member of isal's to `put`."""

    def __init__(self, put: _Put) -> None:
        super().__init__(gzip=False, warc_version=self.WARC_1_1)
        self._put_data = put

    def record(
        self,
        record_type: str,
        fields: Mapping[str, str],
        head: _HeadAsStored | None,
        body: BinaryIO | LimitReader | None = None,
        body_bytes: int = 0,
    ) -> ArcWarcRecord:
        """A record with a new id; `fields` says its date and URL.

        Built here, because warcio's own builder looks through all fields again and again.
        """
        content_type = fields.get("Content-Type") or self.WARC_RECORDS[record_type]
        lines = [("WARC-Type", record_type), ("WARC-Record-ID", self.parser.make_warc_id()), *fields.items()]
        headers = StatusAndHeaders("", lines, protocol=self.warc_version)
        stream = BytesIO() if body is None else body
        record = ArcWarcRecord("warc", record_type, headers, stream, head, content_type, body_bytes)
        record.payload_length = body_bytes
        return record

    def write_record(self, record: ArcWarcRecord, params: object = None) -> None:
        self._write_warc_record(_GzipMember(self._put_data), record)

    def ensure_digest(self, record: ArcWarcRecord, block: bool = True, payload: bool = True) -> None:
        """Digest the block if that is not done; what the payload's digest is, only the caller knows."""
        super().ensure_digest(record, block=block, payload=False)


class _GzipMember:
    """What warcio writes one record to; it flushes once, at the record's end."""

    def __init__(self, put: _Put) -> None:
        self._put = put
        self._compressor: Any = isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW_BITS)

    def write(self, data: bytes) -> None:
        compressed = self._compressor.compress(data)
        if compressed:
            self._put(compressed)

    def flush(self) -> None:
        self._put(self._compressor.flush())


class _HeadAsStored:
    """An HTTP head for warcio to write byte by byte; as its StatusAndHeaders it would be encoded anew."""

    def __init__(self, head: bytes) -> None:
        self.headers_buff = head

    def compute_headers_buffer(self, header_filter: object = None) -> None:
        """Called before each writing; the bytes are there."""


def _stored_head(exchange: Exchange) -> tuple[bytes, str | None]:
    if not exchange.response_head:
        return b"", None
    head, protocol = stored_response_head(exchange.response_head, None if exchange.revisit else exchange.body_bytes)
    # Without TLS it has a name of its own.
    return head, "h2c" if protocol == "h2" and exchange.url.startswith("http:") else protocol


def _response_fields(exchange: Exchange) -> dict[str, str]:
    revisit = exchange.revisit
    fields = {}
    if revisit:
        fields["WARC-Profile"] = PROFILE_PREFIX + revisit.profile
        if revisit.refers_to_record_id:
            fields["WARC-Refers-To"] = revisit.refers_to_record_id
        if revisit.refers_to_uri:
            fields["WARC-Refers-To-Target-URI"] = _header_value(revisit.refers_to_uri)
        if revisit.refers_to_date:
            fields["WARC-Refers-To-Date"] = warc_date(revisit.refers_to_date)
        if revisit.profile == "identical-payload-digest":
            # WARC 1.1, 6.7.2: leaving out the payload is a truncation, whatever the server sent.
            fields["WARC-Truncated"] = "length"
    elif exchange.truncated:
        fields["WARC-Truncated"] = exchange.truncated.value
    if exchange.payload_digest:
        fields["WARC-Payload-Digest"] = exchange.payload_digest
    if not exchange.response_head:
        fields["Content-Type"] = _one_line(exchange.content_type) or "application/octet-stream"
    return fields


def _one_line(text: str) -> str:
    return _encodable(" ".join(text.split()))


def _encodable(text: str) -> str:
    # warcio encodes strictly, and a lone surrogate has no UTF-8.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _header_value(text: str) -> str:
    if _NOT_IN_HEADERS.search(text):
        raise WarcError(f"{text!r} is no URL: it holds a space or a control character.")
    return _encodable(text)


def _block_digest(head: bytes, body: BinaryIO, body_bytes: int) -> str:
    """The digest stands before the block, so a body is read twice; sha1 costs little beside gzip.

    warcio could do it, but would find a body too short only after the record's head is written.
    """
    digest = Digester("sha1")
    digest.update(head)
    start = body.tell()
    limited = LimitReader(body, body_bytes)
    while piece := limited.read(_READ_BYTES):
        digest.update(piece)
    body.seek(start)
    _check_length(body_bytes, limited.tell())
    return str(digest)


def _check_length(said_bytes: int, found_bytes: int) -> None:
    if found_bytes != said_bytes:
        raise WarcError(f"A body was said to have {said_bytes:,} bytes but has {found_bytes:,}.")
