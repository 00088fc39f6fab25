"""Heads are stored as they came, but for what would contradict the stored body."""

from __future__ import annotations

from pathlib import Path

import pytest

from recrawl.warc.check import check_warc
from recrawl.warc.records import stored_response_head
from tests.unit.warc.exchanges import an_exchange, records_by_warcio, write_part


@pytest.mark.parametrize(
    ("received", "stored", "protocol"),
    [
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding : chunked\r\nX-Transfer-Encoding: no\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding : chunked\r\nX-Transfer-Encoding: no\r\n\r\n",
            None,
        ),
        (b"HTTP/2 404 \r\nserver: x\r\n\r\n", b"HTTP/1.1 404 \r\nserver: x\r\n\r\n", "h2c"),
        (b"HTTP/3 200\r\n\r\n", b"HTTP/1.1 200 \r\n\r\n", "h3"),
        (b"HTTP/1.0 200 OK\nA: 1\n\n", b"HTTP/1.0 200 OK\nA: 1\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nA: 1", b"HTTP/1.1 200 OK\r\nA: 1\r\n\r\n", None),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\nB: 2\r\n\r\n", b"HTTP/1.1 200 OK\r\nB: 2\r\n\r\n", None),
    ],
)
def test_heads_agree_with_the_stored_body(tmp_path: Path, received: bytes, stored: bytes, protocol: str | None) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(b"body", response_head=received))
    headers, block = records_by_warcio(path)[1]
    assert block == stored + b"body"
    assert headers.get("WARC-Protocol") == protocol
    assert check_warc(path) == []


@pytest.mark.parametrize(
    ("received", "stored"),
    [
        (b"Content-Length: 4\r\n", b"Content-Length: 4\r\n"),
        (b"content-length:4 \r\n", b"content-length:4 \r\n"),
        (b"Content-Length: 5\r\n", b"X-Crawler-Content-Length: 5\r\n"),
        (b"CONTENT-LENGTH : 99999999999999999999\r\n", b"X-Crawler-Content-Length : 99999999999999999999\r\n"),
        (b"Content-Length: \r\nA: 1\r\n", b"X-Crawler-Content-Length: \r\nA: 1\r\n"),
        (b"Content-Length: 4\r\nContent-Length: 5\r\n", b"Content-Length: 4\r\nX-Crawler-Content-Length: 5\r\n"),
        (b"Content-Length: 7\nA: 1\n", b"X-Crawler-Content-Length: 7\nA: 1\n"),
        (b"X-Content-Length: 5\r\n", b"X-Content-Length: 5\r\n"),
    ],
)
def test_a_length_that_is_not_that_of_the_stored_body_is_renamed(received: bytes, stored: bytes) -> None:
    start = b"HTTP/1.1 200 OK\r\n"
    assert stored_response_head(start + received + b"\r\n", 4)[0].rstrip(b"\n\r") == start + stored.rstrip(b"\n\r")
    assert stored_response_head(start + received + b"\r\n")[0].startswith(start + received.rstrip(b"\n\r"))


def test_heads_that_are_not_ascii_are_stored_byte_by_byte(tmp_path: Path) -> None:
    response_head = b"HTTP/1.1 200 OK\r\nX-Latin: caf\xe9\r\nX-Utf: caf\xc3\xa9\r\nno colon\r\n folded\r\n\r\n"
    request_head = b"GET /caf\xe9 HTTP/1.1\r\nX-Utf: caf\xc3\xa9\r\n\r\n"
    path = write_part(tmp_path / "a.warc.gz", an_exchange(response_head=response_head, request_head=request_head))
    _, response, request = records_by_warcio(path)
    assert response[1] == response_head + b"<title>Page</title>"
    assert request[1] == request_head


def test_a_request_of_http_2_is_written_as_http_1(tmp_path: Path) -> None:
    head = b"GET /a HTTP/2\r\nHost: example.com\r\n\r\n"
    path = write_part(tmp_path / "a.warc.gz", an_exchange(request_head=head))
    assert records_by_warcio(path)[2][1] == b"GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n"


@pytest.mark.parametrize(
    ("url", "head", "protocol"),
    [
        ("https://example.com/", b"HTTP/2 200\r\n\r\n", "h2"),
        ("http://example.com/", b"HTTP/2 200\r\n\r\n", "h2c"),
        ("https://example.com/", b"HTTP/3 200\r\n\r\n", "h3"),
        ("https://example.com/", b"HTTP/1.1 200 OK\r\n\r\n", None),
    ],
)
def test_the_protocol_is_named_where_the_head_does_not_show_it(
    tmp_path: Path, url: str, head: bytes, protocol: str | None
) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(url=url, response_head=head, metadata={"a": "b"}))
    for headers, _ in records_by_warcio(path)[1:]:
        assert headers.get("WARC-Protocol") == protocol
    assert check_warc(path) == []
