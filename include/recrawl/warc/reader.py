"""Reads WARC records back, by offset or in sequence, through fastwarc."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecord

from recrawl.errors import WarcError
from recrawl.warc.decoding import StreamDecoder, content_encodings
from recrawl.warc.records import RecordPlace, parse_warc_date

_READ_BYTES = 64 * 1024
#: HTTP heads longer than this are nonsense; what is there of them is parsed.
_MAX_HEAD_BYTES = 1 << 20

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_FOLD = re.compile(rb"\r?\n[ \t]+")


@dataclass(frozen=True)
class StoredCapture:
    """A record as read back.

    Attributes:
        record_type: the WARC-Type: response, revisit, request, metadata, warcinfo, ...
        record_id: the WARC-Record-ID, with its angle brackets; empty if there is none.
        url: the WARC-Target-URI; empty for a warcinfo record.
        date: the WARC-Date.
        content_type: the Content-Type of the block, e.g. application/http or text/dns.
        status: the HTTP status; None where the block is no HTTP answer.
        http_headers: names and values in their order, bytes read as ISO 8859-1; repeated
            headers stay apart, folded ones are joined.
        body: the payload, content encodings removed; the block of a record that is not HTTP.
        cut: the body is longer than the limit that was asked for.
        malformed: its content encoding is not what its headers say; `body` is what came out.
        payload_digest: the WARC-Payload-Digest; empty if there is none.
        truncated: the WARC-Truncated, why the crawler stored less than there was; or empty.
    """

    record_type: str
    record_id: str
    url: str
    date: datetime
    content_type: str
    status: int | None
    http_headers: list[tuple[str, str]]
    body: bytes
    cut: bool
    malformed: bool
    payload_digest: str
    truncated: str


def read_capture(stream: BinaryIO, offset: int, max_bytes: int) -> StoredCapture:
    """The record that begins at `offset` of a seekable WARC stream.

    Args:
        stream: a WARC file, gzip a record or not compressed.
        offset: where the record's gzip member (or its first line) begins.
        max_bytes: the greatest length of the decoded body; more is cut, while it is decoded.

    Raises:
        WarcError: no whole record begins there.
    """
    stream.seek(offset)
    try:
        record = next(ArchiveIterator(stream, parse_http=False), None)
        if record is None or record.stream_pos != offset:
            raise WarcError(f"No WARC record begins at byte {offset:,}.")
        return _capture(record, max_bytes)
    except (OSError, ValueError) as error:
        raise WarcError(f"No WARC record can be read at byte {offset:,}: {error}.") from None


def iterate(stream: BinaryIO, max_bytes: int) -> Iterator[tuple[RecordPlace, StoredCapture]]:
    """All records from the start of a seekable stream, with their places.

    Args:
        stream: a WARC file, gzip a record or not compressed.
        max_bytes: the greatest length of a decoded body; with 0 no body is decoded.

    Raises:
        WarcError: the stream ends inside a record, or holds what is no record; all records
            before that have been given, but for the last, whose length is not known then. (An
            end within the first hundred bytes of a gzip member passes for the end of the file;
            `salvage` and `check` are exact.)
    """
    stream.seek(0)
    waiting: tuple[int, StoredCapture] | None = None
    try:
        for record in ArchiveIterator(stream, parse_http=False):
            if waiting is not None:
                yield _placed(*waiting, end=record.stream_pos)
            waiting = record.stream_pos, _capture(record, max_bytes)
    except (OSError, ValueError) as error:
        start = f"behind the record at byte {waiting[0]:,}" if waiting else "at its start"
        raise WarcError(f"The WARC file can't be read {start}: {error}.") from None
    if waiting is not None:
        yield _placed(*waiting, end=stream.seek(0, 2))


def _placed(offset: int, capture: StoredCapture, end: int) -> tuple[RecordPlace, StoredCapture]:
    return RecordPlace(offset, end - offset, capture.record_id, capture.date), capture


def _capture(record: WarcRecord, max_bytes: int) -> StoredCapture:
    headers = {name.lower(): value for name, value in record.headers}
    record_type = headers.get("warc-type", "")
    # fastwarc takes a header that the end of the file cuts off for one with an empty block.
    if not headers.get("content-length", "").isdecimal():
        raise ValueError("its header has no Content-Length")
    is_http = headers.get("content-type", "").startswith("application/http")
    status: int | None = None
    http_headers: list[tuple[str, str]] = []
    head, start = _split_block(record) if is_http else (b"", b"")
    if is_http:
        status, http_headers = parse_response_head(head)
    encodings = content_encodings([value for name, value in http_headers if name.lower() == "content-encoding"])
    decoder = StreamDecoder(encodings, max_bytes)
    body = _body(record, start, len(head), decoder) if max_bytes > 0 else b""
    return StoredCapture(
        record_type,
        headers.get("warc-record-id", ""),
        headers.get("warc-target-uri", "").strip("<>"),
        parse_warc_date(headers.get("warc-date", "")),
        headers.get("content-type", ""),
        status,
        http_headers,
        body,
        decoder.cut,
        decoder.malformed,
        headers.get("warc-payload-digest", ""),
        headers.get("warc-truncated", ""),
    )


def _split_block(record: WarcRecord) -> tuple[bytes, bytes]:
    """The HTTP head, its blank line included, and what of the body was read with it."""
    block = b""
    while piece := record.reader.read(_READ_BYTES):
        searched_bytes = max(0, len(block) - 3)
        block += piece
        if end := _HEAD_END.search(block, searched_bytes):
            return block[: end.end()], block[end.end() :]
        if len(block) > _MAX_HEAD_BYTES:
            break
    return block, b""


def parse_response_head(head: bytes) -> tuple[int | None, list[tuple[str, str]]]:
    """The status (None without a status line) and the headers, as `StoredCapture` has them."""
    start_line, *lines = _FOLD.sub(b" ", head).decode("latin-1").split("\n")
    status = _STATUS_LINE.match(start_line.encode("latin-1"))
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers.append((name.strip(), value.strip()))
    return int(status[1]) if status else None, headers


def _body(record: WarcRecord, start: bytes, head_bytes: int, decoder: StreamDecoder) -> bytes:
    pieces = []
    read_bytes = head_bytes
    piece = start or record.reader.read(_READ_BYTES)
    while piece:
        read_bytes += len(piece)
        pieces.append(decoder.feed(piece))
        if decoder.cut:
            return b"".join(pieces)
        piece = record.reader.read(_READ_BYTES)
    if read_bytes != record.content_length:
        raise ValueError(f"it has {read_bytes:,} of its {record.content_length:,} bytes")
    return b"".join(pieces)
