"""Audio and video by their headers, where the optional package is there."""

from __future__ import annotations

import struct
from importlib.util import find_spec

import pytest

from recrawl.config.model import Parse
from recrawl.parse import handlers
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.tables.vocabulary import ParseOutcome


def wave(seconds: int, rate: int = 8_000) -> bytes:
    """A silent WAVE file of one channel and 8 bits, with a title and an artist."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    information = chunk(b"LIST", b"INFO" + chunk(b"INAM", b"Silence \0") + chunk(b"IART", b"Ann\0"))
    form = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, rate, rate, 1, 8))
    return chunk(b"RIFF", b"WAVE" + form + information + chunk(b"data", b"\x80" * rate * seconds))


def parsed(body: bytes, content_type: str) -> ParsedPage:
    return parse_capture(Capture("http://e.test/a", content_type, body, None, 0, "recrawl", True), Parse())


def test_without_the_package_there_is_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "find_spec", lambda name: None if name == "tinytag" else find_spec(name))
    handlers.registry.cache_clear()
    try:
        page = parsed(wave(1), "audio/wav")
    finally:
        handlers.registry.cache_clear()
    assert (page.handler, page.parse_outcome) == ("none", ParseOutcome.UNSUPPORTED)


def test_duration_and_tags_are_stated() -> None:
    page = parsed(wave(3), "application/octet-stream")
    assert (page.handler, page.parse_outcome, page.title, page.author) == ("media", ParseOutcome.OK, "Silence", "Ann")
    assert page.metadata["format"] == "wave"
    assert page.metadata["duration_seconds"] == "3.0"
    assert page.metadata["sample_rate_hertz"] == "8000"


@pytest.mark.parametrize("body", [b"\x1aE\xdf\xa3" + bytes(40), b"OggS\0" + bytes(8), b"ID3\x04\0\0\x7f\x7f\x7f\x7f\0"])
def test_what_has_no_sound_header_states_its_size(body: bytes) -> None:
    page = parsed(body, "video/mp4")
    assert page.handler == "media"
    assert page.metadata["bytes"] == str(len(body))
    assert "duration_seconds" not in page.metadata
