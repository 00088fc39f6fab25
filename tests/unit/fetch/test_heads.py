"""Response heads and Retry-After."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recrawl.fetch.heads import ResponseHeaders, retry_after_seconds

NOW = datetime(2026, 11, 30, 3, 0, 0, tzinfo=UTC)


def test_headers_are_read_without_case_folded_and_repeated() -> None:
    headers = ResponseHeaders(
        b"HTTP/1.1 200 OK\r\ncontent-TYPE: text/html\r\nX-Robots-Tag: noindex\r\nX-Robots-Tag: bot: nofollow\r\n"
        b"Long: a\r\n  b\r\nEmpty:\r\nContent-Encoding: gzip, br\r\nno colon\r\n\r\n"
    )
    assert headers.first("content-type") == "text/html"
    assert headers.joined("x-robots-tag") == "noindex\nbot: nofollow"
    assert headers.first("long") == "a b"
    assert headers.first("empty") is None
    assert headers.first("missing") is None
    assert headers.encodings() == ["gzip", "br"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("Mon, 30 Nov 2026 03:01:00 GMT", 60.0),
        ("Mon, 30 Nov 2026 02:00:00 GMT", 0.0),
        ("Monday, 30-Nov-26 03:00:30 GMT", 30.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        (None, None),
        ("9" * 400, 999_999_999_999.0),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds
