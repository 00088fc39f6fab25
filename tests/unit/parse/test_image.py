"""Images: format and size from the header."""

from __future__ import annotations

import struct
import zlib

import pytest

from recrawl.config.model import Parse
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.tables.vocabulary import ParseOutcome

_HEADER = struct.pack(">IIBBBBB", 640, 480, 8, 2, 0, 0, 0)
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + _HEADER + struct.pack(">I", zlib.crc32(b"IHDR" + _HEADER))
GIF = b"GIF89a" + struct.pack("<HH", 320, 200) + b"\x00\x00\x00"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(9) + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 30, 40) + bytes(10)
BMP = b"BM" + bytes(12) + struct.pack("<III", 40, 17, 19) + bytes(28)
ICON = b"\x00\x00\x01\x00\x01\x00\x10\x00" + bytes(14)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' width='12' height='34'></svg>"


def parsed(body: bytes, content_type: str | None) -> ParsedPage:
    return parse_capture(Capture("http://e.example/i", content_type, body, None, 0, "recrawl", True), Parse())


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (PNG, "image/png", ("png", 640, 480)),
        (PNG, "text/html", ("png", 640, 480)),
        (GIF, None, ("gif", 320, 200)),
        (JPEG, "image/jpeg", ("jpeg", 40, 30)),
        (BMP, "image/bmp", ("bmp", 17, 19)),
        (ICON, "image/x-icon", ("x-icon", 16, 256)),
        (SVG, "image/svg+xml", ("svg+xml", 12, 34)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_size_and_format(body: bytes, content_type: str | None, expected: tuple[str, int, int]) -> None:
    page = parsed(body, content_type)
    assert (page.handler, page.parse_outcome) == ("image", ParseOutcome.OK)
    media_format, width, height = expected
    assert page.metadata == {
        "format": media_format, "bytes": str(len(body)), "width_pixels": str(width), "height_pixels": str(height),
    }  # fmt: skip


@pytest.mark.parametrize("body", [PNG[:12], GIF[:7], JPEG[:8], b"\x00\x00\x01\x00", b"RIFF\x00\x00\x00\x00WEBPVP8 "])
def test_a_cut_header_states_no_size(body: bytes) -> None:
    page = parsed(body, "image/png")
    assert page.parse_outcome is ParseOutcome.PARTIAL
    assert "width_pixels" not in page.metadata
