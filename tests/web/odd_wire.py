"""Odd on the wire: time, framing, heads, bodies, content encodings; one function a path under /odd/.

README.md says what each does; a test holds the two lists together.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import brotli
import zstandard

from tests.web.registry import PAGE, Gone, close, number, odd

if TYPE_CHECKING:
    from tests.web.server import Conversation

_MIB = 1 << 20


# --- time ---


@odd
async def slow(talk: Conversation) -> None:
    await asyncio.sleep(number(talk, "seconds", 1))
    await talk.reply(200, PAGE)


@odd
async def drip(talk: Conversation) -> None:
    size_bytes, pause_seconds = int(number(talk, "bytes", 50)), number(talk, "pause", 0.1)
    await talk.reply(200, b"", length=size_bytes)
    for _ in range(size_bytes):
        await talk.send(b"x")
        await asyncio.sleep(pause_seconds)


@odd
async def stall(talk: Conversation) -> None:
    await talk.reply(200, PAGE[:100], length=len(PAGE))
    await asyncio.sleep(number(talk, "seconds", 300))
    close(talk)


@odd
async def hang(talk: Conversation) -> None:
    await asyncio.sleep(number(talk, "seconds", 300))
    close(talk)


# --- broken connections and framing ---


@odd
async def drop(talk: Conversation) -> None:
    close(talk)


@odd
async def reset(talk: Conversation) -> None:
    await talk.reply(200, PAGE[:100], length=len(PAGE))
    # A reset overtakes bytes that the client has not read yet.
    await asyncio.sleep(0.05)
    talk.reset()
    raise Gone


@odd
async def drop_in_head(talk: Conversation) -> None:
    await talk.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
    close(talk)


@odd
async def partial(talk: Conversation) -> None:
    await talk.reply(200, PAGE[:500], length=len(PAGE))
    close(talk)


@odd
async def no_length(talk: Conversation) -> None:
    await talk.reply(200, PAGE, length=None)


@odd
async def chunked(talk: Conversation) -> None:
    await _send_chunks(
        talk, b"%x\r\n%b\r\n" % (100, PAGE[:100]) + b"%X;ext=1\r\n%b\r\n" % (len(PAGE) - 100, PAGE[100:])
    )
    await talk.send(b"0\r\nX-Trailer: yes\r\n\r\n")


@odd
async def broken_chunks(talk: Conversation) -> None:
    await _send_chunks(talk, b"64\r\n%b\r\nnonsense\r\n" % PAGE[:100])
    close(talk)


@odd
async def cut_chunks(talk: Conversation) -> None:
    await _send_chunks(talk, b"64\r\n%b\r\nff\r\n%b" % (PAGE[:100], PAGE[100:150]))
    close(talk)


@odd
async def endless_chunks(talk: Conversation) -> None:
    """`bytes`: of each chunk; a `comment` of that many bytes in each chunk's head."""
    size_bytes, comment = int(number(talk, "bytes", 1)), b"x" * int(number(talk, "comment", 0))
    chunk = b"%x;%b\r\n%b\r\n" % (size_bytes, comment, b"c" * size_bytes)
    await _send_chunks(talk, b"")
    for _ in range(int(number(talk, "mb", 200))):
        await talk.send(chunk * (_MIB // len(chunk) + 1))
    close(talk)


async def _send_chunks(talk: Conversation, chunks: bytes) -> None:
    talk.status = 200
    await talk.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)


@odd
async def two_lengths(talk: Conversation) -> None:
    await talk.reply(200, PAGE, [("Content-Length", "10")])
    close(talk)


@odd
async def negative_length(talk: Conversation) -> None:
    await talk.reply(200, PAGE, [("Content-Length", "-5")], length=None)


# --- heads ---


@odd
async def http09(talk: Conversation) -> None:
    await talk.send(PAGE)
    close(talk)


@odd
async def http10(talk: Conversation) -> None:
    talk.status = 200
    await talk.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE)
    close(talk)


@odd
async def nonsense(talk: Conversation) -> None:
    await talk.send(bytes(range(256)) * 4)
    close(talk)


@odd
async def bare_lf(talk: Conversation) -> None:
    talk.status = 200
    await talk.send(b"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: %d\n\n%b" % (len(PAGE), PAGE))


@odd
async def interim(talk: Conversation) -> None:
    await talk.send(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
    await talk.reply(200, PAGE)


@odd
async def odd_headers(talk: Conversation) -> None:
    talk.status = 200
    lines = [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/html",
        b"X-Folded: one\r\n two",
        b"X-Bytes: caf\xe9 \xff",
        b"X-Empty:",
        b"Set-Cookie: a=1",
        b"Set-Cookie: b=2",
        b"Content-Length: %d" % len(PAGE),
    ]
    await talk.send(b"\r\n".join([*lines, b"", PAGE]))


@odd
async def large_headers(talk: Conversation) -> None:
    value = "x" * 1000
    await talk.reply(200, PAGE, [(f"X-{number}", value) for number in range(int(number(talk, "kb", 100)))])


@odd
async def many_headers(talk: Conversation) -> None:
    await talk.reply(200, PAGE, [(f"X-{number}", "") for number in range(int(number(talk, "count", 50_000)))])


@odd
async def long_header(talk: Conversation) -> None:
    """One line that does not end."""
    talk.status = 200
    await talk.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    for _ in range(int(number(talk, "mb", 50))):
        await talk.send(b"x" * _MIB)
    close(talk)


@odd
async def nul_bytes(talk: Conversation) -> None:
    """NUL bytes in a header's value and in the body."""
    talk.status = 200
    body = b"<p>before\0after</p>" * 10
    await talk.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Nul: a\0b\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )


@odd
async def longer_body(talk: Conversation) -> None:
    """More bytes than Content-Length says; they look like an answer to the next request."""
    await talk.reply(200, b"ten bytes.HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled", length=10)


@odd
async def huge_length(talk: Conversation) -> None:
    """Content-Length beyond any number that fits."""
    await talk.reply(200, PAGE, [("Content-Length", "9" * 30)], length=None)
    close(talk)


@odd
async def drip_headers(talk: Conversation) -> None:
    """A head, a byte at a time."""
    talk.status = 200
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * int(number(talk, "bytes", 200)):
        await talk.send(bytes([byte]))
        await asyncio.sleep(number(talk, "pause", 0.1))
    close(talk)


@odd
async def endless_headers(talk: Conversation) -> None:
    talk.status = 200
    await talk.send(b"HTTP/1.1 200 OK\r\n")
    for _ in range(int(number(talk, "mb", 50)) * 16):
        await talk.send(b"X-More: " + b"x" * 65_000 + b"\r\n")
    close(talk)


# --- bodies ---


@odd
async def empty(talk: Conversation) -> None:
    await talk.reply(200, b"")


@odd
async def no_content(talk: Conversation) -> None:
    await talk.reply(204)


@odd
async def huge(talk: Conversation) -> None:
    size_bytes = int(number(talk, "mb", 10) * _MIB)
    await talk.reply(200, b"", length=size_bytes)
    for start in range(0, size_bytes, _MIB):
        await talk.send(
            b"huge text " * 104_857 + b"......" if size_bytes - start >= _MIB else b"x" * (size_bytes - start)
        )


@odd
async def endless(talk: Conversation) -> None:
    await talk.reply(200, b"", length=None, content_type=talk.query.get("type", "text/html"))
    line = talk.query.get("line", "never the end") + "\n"
    block = (line * (65_536 // len(line) + 1)).encode()
    for _ in range(int(number(talk, "mb", 200)) * 16):
        await talk.send(block)
    close(talk)


@odd
async def type_(talk: Conversation) -> None:
    await talk.reply(200, PAGE, content_type=talk.query.get("mime", ""))


@odd
async def png(talk: Conversation) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    await talk.reply(200, base64.b64decode(pixel), content_type=talk.query.get("mime", "image/png"))


@odd
async def charset(talk: Conversation) -> None:
    """Text in `name`; `declare`: header, meta, none or wrong."""
    name, declare = talk.query.get("name", "windows-1251"), talk.query.get("declare", "header")
    text = talk.query.get("text", "Съешь ещё этих мягких французских булок, да выпей чаю. ") * 10
    said = "utf-8" if declare == "wrong" else name
    meta = f'<meta charset="{said}">' if declare in ("meta", "wrong") else ""
    body = f"<!DOCTYPE html><html><head>{meta}<title>{text[:40]}</title></head><body><p>{text}</p></body></html>"
    content_type = f"text/html; charset={said}" if declare in ("header", "wrong") else "text/html"
    await talk.reply(200, body.encode(name, "xmlcharrefreplace"), content_type=content_type)


# --- content encodings ---


def _raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush()


def _times(count: int, encode: Callable[[bytes], bytes], data: bytes) -> bytes:
    for _ in range(count):
        data = encode(data)
    return data


_ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", lambda data: gzip.compress(data, mtime=0)),
    "deflate": ("deflate", zlib.compress),
    "raw-deflate": ("deflate", _raw_deflate),
    "br": ("br", lambda data: brotli.compress(data, quality=5)),
    "zstd": ("zstd", zstandard.compress),
    "double": ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data, mtime=0), mtime=0)),
    "gzip-gzip": ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data, mtime=0), mtime=0)),
    "br-gzip": ("br, gzip", lambda data: gzip.compress(brotli.compress(data, quality=5), mtime=0)),
    "gzip-br": ("gzip, br", lambda data: brotli.compress(gzip.compress(data, mtime=0), quality=5)),
    "zstd-gzip": ("zstd, gzip", lambda data: gzip.compress(zstandard.compress(data), mtime=0)),
    "br-br-br": ("br, br, br", lambda data: _times(3, lambda part: brotli.compress(part, quality=5), data)),
    "many": (", ".join(["gzip"] * 8), lambda data: _times(8, lambda part: gzip.compress(part, mtime=0), data)),
    "plain": ("gzip", lambda data: data),
    "unknown": ("rot13", lambda data: data),
    "cut": ("gzip", lambda data: gzip.compress(data * 100, mtime=0)[:-20]),
    "broken": ("gzip", lambda data: gzip.compress(data, mtime=0)[:60] + b"\xff" * 60),
}


@odd
async def encoded(talk: Conversation) -> None:
    name, encode = _ENCODERS[talk.query.get("as", "gzip")]
    await talk.reply(200, encode(PAGE), [("Content-Encoding", name)])


@odd
async def bomb(talk: Conversation) -> None:
    name, encode = _ENCODERS[talk.query.get("as", "gzip")]
    bomb_bytes = int(number(talk, "mb", 50)) * _MIB
    await talk.reply(200, encode(bytes(bomb_bytes)), [("Content-Encoding", name)])
