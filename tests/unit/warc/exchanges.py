"""Exchanges to write in tests."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator

from recrawl.warc.records import Exchange
from recrawl.warc.writer import PartWriter

MOMENT = datetime(2026, 11, 30, 3, 0, 0, 123456, tzinfo=UTC)
WARCINFO = {"software": "recrawl/0.1", "format": "WARC File Format 1.1", "robots": "classic"}
REQUEST_HEAD = b"GET /page?a=1 HTTP/1.1\r\nHost: example.com\r\nUser-Agent: recrawl/0.1\r\n\r\n"
RESPONSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: test\r\n\r\n"


def payload_digest(body: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode("ascii")


def an_exchange(content: bytes = b"<title>Page</title>", *, stream: bool = False, **changes: Any) -> Exchange:
    """An ordinary exchange with the body `content`, other attributes as `changes` says."""
    attributes: dict[str, Any] = {
        "url": "http://example.com/page?a=1",
        "started_at": MOMENT,
        "ip": "192.0.2.1",
        "request_head": REQUEST_HEAD,
        "response_head": RESPONSE_HEAD,
        "body": BytesIO(content) if stream else content,
        "body_bytes": len(content),
        "payload_digest": payload_digest(content),
        "truncated": None,
        "revisit": None,
        "metadata": {},
    }
    return Exchange(**attributes | changes)


def write_part(path: Path, *exchanges: Exchange) -> Path:
    """A closed part with `exchanges`."""
    writer = PartWriter(path, WARCINFO, MOMENT)
    for exchange in exchanges:
        writer.write(exchange)
    writer.close()
    return path


def records_by_warcio(path: Path) -> list[tuple[dict[str, str], bytes]]:
    """Headers and raw block of each record, read by warcio."""
    with path.open("rb") as file:
        return [
            (dict(record.rec_headers.headers), record.raw_stream.read())
            for record in ArchiveIterator(file, no_record_parse=True)
        ]
