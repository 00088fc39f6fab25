"""Media types: what the header says and what the body shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.mime import sniff


@pytest.mark.parametrize(
    ("content_type", "head", "media_type"),
    [
        ("Text/HTML; charset=x", b"anything", "text/html"),
        (None, b" \n<!DOCTYPE HTML><p>", "text/html"),
        (None, b"<p>x", "text/html"),
        (None, b"<pre>x", "text/plain"),
        (None, b"<!-- c --><html >", "text/html"),
        (None, b"plain words", "text/plain"),
        (None, b"\x00\x01\x02", "application/octet-stream"),
        ("nonsense", b"GIF89a....", "image/gif"),
        ("application/octet-stream", b"%PDF-1.7", "application/pdf"),
        ("text/html", b"%PDF-1.7", "application/pdf"),
        ("text/html", b"\x89PNG\r\n\x1a\n", "image/png"),
        ("text/plain", b"BMW builds cars", "text/plain"),
        ("text/plain", b"a\x00b", "application/octet-stream"),
        ("text/plain", b"\xff\xfea\x00", "text/plain"),
        ("text/plain", b"<html>", "text/plain"),
        ("text/html", b"<?xml version='1.0'?><rss version='2.0'>", "application/rss+xml"),
        ("text/xml", b"<!-- x --><feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml"),
        ("text/xml", b"<?xml version='1.0'?><!DOCTYPE html><html>", "text/html"),
        ("image/png", b"<!DOCTYPE html><title>404</title>", "text/html"),
        ("application/json", b"{}", "application/json"),
        ("image/svg+xml", b"<svg>", "image/svg+xml"),
        (None, b"RIFF....WEBPVP8 ", "image/webp"),
        (None, b"\x1f\x8b\x08\x00", "application/gzip"),
        (None, b"", "text/plain"),
    ],
)
def test_sniff(content_type: str | None, head: bytes, media_type: str) -> None:
    assert media_type == sniff(content_type, head)


@given(st.none() | st.text(max_size=40), st.binary(max_size=200))
def test_any_body_has_a_type(content_type: str | None, head: bytes) -> None:
    media_type = sniff(content_type, head)
    assert media_type.count("/") == 1 and media_type == media_type.lower()
