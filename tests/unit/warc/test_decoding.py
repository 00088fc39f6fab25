"""Content encodings come off whatever the pieces, the bombs and the lies."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from recrawl.warc.decoding import StreamDecoder, content_encodings, decode_whole

TEXT = b"".join(b"line %d of a page, with some words\n" % number for number in range(2_000))


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush()


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "brotli": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.compress),
}
each_encoder = pytest.mark.parametrize(("name", "encode"), ENCODERS.values(), ids=ENCODERS)


def decoded(encodings: list[str], data: bytes, max_bytes: int = 1 << 20, piece_bytes: int = 1 << 30) -> bytes:
    decoder = StreamDecoder(encodings, max_bytes)
    output = b"".join(decoder.feed(data[at : at + piece_bytes]) for at in range(0, len(data), piece_bytes))
    assert not decoder.malformed
    assert not decoder.cut
    return output


@each_encoder
def test_each_encoding_in_pieces_of_any_size(name: str, encode: Callable[[bytes], bytes]) -> None:
    for data in (b"", b"x", TEXT, TEXT * 10):
        encoded = encode(data)
        for piece_bytes in (1, 7, 8192, 1 << 30):
            assert decoded([name], encoded, piece_bytes=piece_bytes) == data


@each_encoder
def test_output_is_cut_at_the_limit_and_only_then(name: str, encode: Callable[[bytes], bytes]) -> None:
    for limit in (1, 8191, 8192, 8193, len(TEXT) - 1, len(TEXT)):
        decoder = StreamDecoder([name], limit)
        assert decoder.feed(encode(TEXT)) == TEXT[:limit]
        assert decoder.cut == (limit < len(TEXT))
        assert decoder.feed(b"more") == b""


@each_encoder
def test_bombs_take_little_memory(name: str, encode: Callable[[bytes], bytes]) -> None:
    bomb = encode(bytes(64 << 20))
    tracemalloc.start()
    decoder = StreamDecoder([name], 1 << 20)
    output = decoder.feed(bomb)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert output == bytes(1 << 20)
    assert decoder.cut
    assert peak_bytes < 24 << 20


def test_a_bomb_inside_a_bomb_is_cut_between() -> None:
    decoder = StreamDecoder(["gzip", "gzip"], 1 << 16)
    decoder.feed(gzip.compress(gzip.compress(bytes(256 << 20), 1) + bytes(64 << 20)))
    assert decoder.cut


@each_encoder
def test_broken_data_gives_what_came_before(name: str, encode: Callable[[bytes], bytes]) -> None:
    encoded = bytearray(encode(TEXT))
    middle = len(encoded) // 2
    encoded[middle : middle + 40] = b"\xff" * 40
    decoder = StreamDecoder([name], 1 << 20)
    output = decoder.feed(bytes(encoded)) + decoder.feed(b"more")
    # A flipped literal is no error to formats without a checksum: only the start is sure.
    start = output[: len(output) // 4]
    assert decoder.malformed or len(output) >= len(TEXT) // 2
    assert TEXT.startswith(start)


@each_encoder
def test_a_stream_that_ends_early_gives_what_is_there(name: str, encode: Callable[[bytes], bytes]) -> None:
    noise = bytes(value * value % 251 for value in range(600_000))
    encoded = encode(noise + TEXT * 20)
    decoder = StreamDecoder([name], 1 << 22)
    output = decoder.feed(encoded[: len(encoded) - 20])
    assert (noise + TEXT * 20).startswith(output)
    assert not decoder.malformed


def test_a_wrong_checksum_costs_nothing() -> None:
    for name, encoded in (("gzip", gzip.compress(TEXT)), ("deflate", zlib.compress(TEXT))):
        decoder = StreamDecoder([name], 1 << 20)
        assert decoder.feed(encoded[:-8] + b"\0" * 8)[: len(TEXT) - 100] == TEXT[:-100]


def test_gzip_members_follow_each_other_and_padding_is_ignored() -> None:
    members = gzip.compress(b"one ") + gzip.compress(b"two")
    for piece_bytes in (1, 5, 1 << 30):
        assert decoded(["gzip"], members, piece_bytes=piece_bytes) == b"one two"
        assert decoded(["gzip"], members + b"\0\0\0 junk", piece_bytes=piece_bytes) == b"one two"


def test_gzip_headers_with_all_fields() -> None:
    header = b"\x1f\x8b\x08\x1e\0\0\0\0\0\xff" + b"\x03\0abc" + b"name\0" + b"comment\0" + b"\x12\x34"
    member = header + raw_deflate(TEXT) + bytes(8)
    for piece_bytes in (1, 1 << 30):
        assert decoded(["gzip"], member, piece_bytes=piece_bytes) == TEXT


@pytest.mark.parametrize("piece_bytes", [1, 1 << 30])
def test_a_body_that_is_not_gzip_at_all_is_kept(piece_bytes: int) -> None:
    body = b"<html>plain in spite of the header"
    decoder = StreamDecoder(["gzip"], 100)
    pieces = [decoder.feed(body[at : at + piece_bytes]) for at in range(0, len(body), piece_bytes)]
    assert b"".join(pieces) == body
    assert decoder.malformed


def test_encodings_are_undone_in_reverse_order() -> None:
    assert decoded(["gzip", "br"], brotli.compress(gzip.compress(TEXT))) == TEXT


@pytest.mark.parametrize("encodings", [["compress"], ["gzip", "aes128gcm"], ["gzip"] * 4])
def test_unknown_encodings_leave_the_body_alone(encodings: list[str]) -> None:
    decoder = StreamDecoder(encodings, 3)
    assert decoder.feed(b"body") == b"bod"
    assert decoder.malformed
    assert decoder.cut


def test_the_header_is_read_as_a_list() -> None:
    assert content_encodings(["x-gzip, BR", " identity ", "", "zstd"]) == ["gzip", "br", "zstd"]
    assert content_encodings([]) == []


@given(st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd"]), max_size=3), st.lists(st.binary(max_size=64)))
def test_nothing_raises(encodings: list[str], pieces: list[bytes]) -> None:
    decoder = StreamDecoder(encodings, 1000)
    output = b"".join(decoder.feed(piece) for piece in pieces)
    assert len(output) <= 1000


@given(st.sampled_from(sorted(ENCODERS)), st.binary(max_size=3000), st.data())
def test_cut_and_corrupted_streams_never_raise(encoder: str, content: bytes, data: st.DataObject) -> None:
    name, encode = ENCODERS[encoder]
    encoded = bytearray(encode(content * 3))
    for _ in range(data.draw(st.integers(0, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    output = StreamDecoder([name], 1 << 20).feed(bytes(encoded))
    assert len(output) <= 1 << 20


@given(st.binary(max_size=2_000), st.integers(0, 2_000))
def test_a_whole_gzip_body_decodes_in_one_step(content: bytes, max_bytes: int) -> None:
    expected = content if len(content) <= max_bytes else None
    assert decode_whole(["gzip"], gzip.compress(content), max_bytes) == expected


@given(st.binary(min_size=1, max_size=300), st.data())
def test_one_step_leaves_everything_odd_to_the_stream_decoder(content: bytes, data: st.DataObject) -> None:
    whole = bytearray(gzip.compress(content))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    decoded = decode_whole(["gzip"], bytes(whole), 10_000)
    assert decoded in (None, StreamDecoder(["gzip"], 10_000).feed(bytes(whole)))
    for encodings in ([], ["br"], ["gzip", "gzip"]):
        assert decode_whole(encodings, gzip.compress(content), 10_000) is None
    for odd in (gzip.compress(content)[:-1], gzip.compress(content) * 2, gzip.compress(content) + b"padding"):
        assert decode_whole(["gzip"], odd, 10_000) is None
