"""Writes captures as WARC 1.1, one gzip member a record, compressed by isal.

Records are put together here rather than by warcio: three of them a page, each looked through line by
line several times, cost more than fetching the page. warcio reads them back: in the tests, and in
`recrawl verify`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from isal import isal_zlib

from recrawl.errors import WarcError
from recrawl.warc.cdxj import IndexEntry, index_entry
from recrawl.warc.digests import labelled_sha1
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

_UUID_FIXED_BITS = 0xF << 76 | 0x3 << 62
_UUID_VERSION_4 = 0x4 << 76 | 0x2 << 62

_NOT_IN_HEADERS = re.compile(r"[\x00-\x20]")

#: Content-Type by WARC-Type (WARC 1.1, section 5.6), where the record does not say its own.
_CONTENT_TYPES = {
    "warcinfo": "application/warc-fields",
    "response": "application/http; msgtype=response",
    "revisit": "application/http; msgtype=response",
    "request": "application/http; msgtype=request",
    "metadata": "application/warc-fields",
}


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
        fields = {"WARC-Date": warc_date(created_at), "WARC-Filename": _encodable(path.name)}
        self._warcinfo_id = self._write_record("warcinfo", fields, _fields_block(warcinfo))

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

        place = self._write_answer(exchange, head, shared)
        shared["WARC-Concurrent-To"] = place.record_id
        if exchange.request_head:
            self._write_record("request", shared, stored_request_head(exchange.request_head))
        if exchange.metadata:
            self._write_record("metadata", shared, _fields_block(exchange.metadata))
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
            # The payload of a resource is its block.
            digest = labelled_sha1(hashlib.sha1(block, usedforsecurity=False))
            fields = self._shared(uri, lookup.looked_up_at)
            fields |= {"WARC-Payload-Digest": digest, "Content-Type": DNS_TYPE}
            offset = self._bytes_written
            record_id = self._write_record("resource", fields, block)
            place = RecordPlace(offset, self._bytes_written - offset, record_id, lookup.looked_up_at)
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

    def abandon(self) -> None:
        """Close the file as it is; `salvage` makes it whole. Raises WarcError when buffered bytes can't be written."""
        try:
            self._file.close()
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

    def _write_answer(self, exchange: Exchange, head: bytes, shared: Mapping[str, str]) -> RecordPlace:
        """The response, resource or revisit record."""
        record_type = "revisit" if exchange.revisit else "response" if head else "resource"
        fields = {**shared, **_response_fields(exchange)}
        offset = self._bytes_written
        if exchange.revisit:
            record_id = self._write_record(record_type, fields, head)
        elif isinstance(exchange.body, bytes):
            _check_length(exchange.body_bytes, len(exchange.body))
            record_id = self._write_record(record_type, fields, head, exchange.body)
        else:
            record_id = self._write_streamed(record_type, fields, head, exchange.body, exchange.body_bytes)
        return RecordPlace(offset, self._bytes_written - offset, record_id, exchange.started_at)

    def _write_record(self, record_type: str, fields: Mapping[str, str], block: bytes, rest: bytes = b"") -> str:
        """Write a record whose block is at hand; its id."""
        digest = hashlib.sha1(block, usedforsecurity=False)
        digest.update(rest)
        record_id = _record_id()
        header = _record_header(record_type, record_id, fields, labelled_sha1(digest), len(block) + len(rest))
        data = b"".join((header, block, rest, b"\r\n\r\n"))
        self._put(isal_zlib.compress(data, GZIP_LEVEL, _GZIP_WINDOW_BITS))
        self._records += 1
        return record_id

    def _write_streamed(
        self, record_type: str, fields: Mapping[str, str], head: bytes, body: BinaryIO, body_bytes: int
    ) -> str:
        """Write a record whose body comes piece by piece; its id.

        The digest stands before the block, so the body is read twice; sha1 costs little beside gzip.
        """
        start = body.tell()
        digest = hashlib.sha1(head, usedforsecurity=False)
        found_bytes = 0
        while piece := body.read(min(_READ_BYTES, body_bytes - found_bytes)):
            digest.update(piece)
            found_bytes += len(piece)
        _check_length(body_bytes, found_bytes)
        record_id = _record_id()
        compressor: Any = isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW_BITS)
        header = _record_header(record_type, record_id, fields, labelled_sha1(digest), len(head) + body_bytes)
        self._put(compressor.compress(header + head))
        body.seek(start)
        left_bytes = body_bytes
        while piece := body.read(min(_READ_BYTES, left_bytes)):
            self._put(compressor.compress(piece))
            left_bytes -= len(piece)
        self._put(compressor.compress(b"\r\n\r\n") + compressor.flush())
        self._records += 1
        return record_id

    def _put(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._unwritable(error) from None
        self._sha256.update(data)
        self._bytes_written += len(data)

    def _unwritable(self, error: OSError) -> WarcError:
        return WarcError(f"The WARC file {self._path} can't be written: {error.strerror}.")


def _record_id() -> str:
    """A random UUID (RFC 9562, section 5.4) as a WARC-Record-ID; uuid.uuid4 takes twice as long."""
    number = int.from_bytes(os.urandom(16), "big") & ~_UUID_FIXED_BITS | _UUID_VERSION_4
    text = f"{number:032x}"
    return f"<urn:uuid:{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}>"


def _record_header(
    record_type: str, record_id: str, fields: Mapping[str, str], block_digest: str, block_bytes: int
) -> bytes:
    """The header of a record, its blank line included (WARC 1.1, section 4); `fields` may say a Content-Type."""
    lines = [f"WARC/1.1\r\nWARC-Type: {record_type}\r\nWARC-Record-ID: {record_id}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in fields.items()]
    if "Content-Type" not in fields:
        lines.append(f"Content-Type: {_CONTENT_TYPES[record_type]}\r\n")
    lines.append(f"WARC-Block-Digest: {block_digest}\r\nContent-Length: {block_bytes}\r\n\r\n")
    return "".join(lines).encode()


def _fields_block(fields: Mapping[str, str]) -> bytes:
    """A block of application/warc-fields."""
    return "".join([f"{name}: {_one_line(value)}\r\n" for name, value in fields.items()]).encode("utf-8", "replace")


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
    # A lone surrogate has no UTF-8.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _header_value(text: str) -> str:
    if _NOT_IN_HEADERS.search(text):
        raise WarcError(f"{text!r} is no URL: it holds a space or a control character.")
    return _encodable(text)


def _check_length(said_bytes: int, found_bytes: int) -> None:
    if found_bytes != said_bytes:
        raise WarcError(f"A body was said to have {said_bytes:,} bytes but has {found_bytes:,}.")
