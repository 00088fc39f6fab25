"""How to answer badly: one small function a path under /odd/, parameters in the query.

README.md says what each does; a test holds the two lists together.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import time
import zlib
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import TYPE_CHECKING

import brotli
import zstandard

if TYPE_CHECKING:
    from tests.web.server import Conversation

Behaviour = Callable[["Conversation"], Awaitable[None]]

PAGE = (
    b"<!DOCTYPE html><html><head><title>An odd page</title></head><body><p>"
    + b"words and more " * 60
    + b"</p></body></html>"
)
_MIB = 1 << 20

BEHAVIOURS: dict[str, Behaviour] = {}


class Gone(Exception):
    """The behaviour has closed the connection on purpose; the log does not call that leaving."""


def odd(function: Behaviour) -> Behaviour:
    """Serve `/odd/<name of the function, - for _>` by it."""
    BEHAVIOURS["/odd/" + function.__name__.removesuffix("_").replace("_", "-")] = function
    return function


def _number(talk: Conversation, name: str, default: float) -> float:
    return float(talk.query.get(name, default))


def _close(talk: Conversation) -> None:
    talk.keep = False
    raise Gone


# --- time ---


@odd
async def slow(talk: Conversation) -> None:
    await asyncio.sleep(_number(talk, "seconds", 1))
    await talk.reply(200, PAGE)


@odd
async def drip(talk: Conversation) -> None:
    size_bytes, pause_seconds = int(_number(talk, "bytes", 50)), _number(talk, "pause", 0.1)
    await talk.reply(200, b"", length=size_bytes)
    for _ in range(size_bytes):
        await talk.send(b"x")
        await asyncio.sleep(pause_seconds)


@odd
async def stall(talk: Conversation) -> None:
    await talk.reply(200, PAGE[:100], length=len(PAGE))
    await asyncio.sleep(_number(talk, "seconds", 300))
    _close(talk)


@odd
async def hang(talk: Conversation) -> None:
    await asyncio.sleep(_number(talk, "seconds", 300))
    _close(talk)


# --- broken connections and framing ---


@odd
async def drop(talk: Conversation) -> None:
    _close(talk)


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
    _close(talk)


@odd
async def partial(talk: Conversation) -> None:
    await talk.reply(200, PAGE[:500], length=len(PAGE))
    _close(talk)


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
    _close(talk)


@odd
async def cut_chunks(talk: Conversation) -> None:
    await _send_chunks(talk, b"64\r\n%b\r\nff\r\n%b" % (PAGE[:100], PAGE[100:150]))
    _close(talk)


async def _send_chunks(talk: Conversation, chunks: bytes) -> None:
    talk.status = 200
    await talk.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)


@odd
async def two_lengths(talk: Conversation) -> None:
    await talk.reply(200, PAGE, [("Content-Length", "10")])
    _close(talk)


@odd
async def negative_length(talk: Conversation) -> None:
    await talk.reply(200, PAGE, [("Content-Length", "-5")], length=None)


# --- heads ---


@odd
async def http09(talk: Conversation) -> None:
    await talk.send(PAGE)
    _close(talk)


@odd
async def http10(talk: Conversation) -> None:
    talk.status = 200
    await talk.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE)
    _close(talk)


@odd
async def nonsense(talk: Conversation) -> None:
    await talk.send(bytes(range(256)) * 4)
    _close(talk)


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
    await talk.reply(200, PAGE, [(f"X-{number}", value) for number in range(int(_number(talk, "kb", 100)))])


@odd
async def endless_headers(talk: Conversation) -> None:
    talk.status = 200
    await talk.send(b"HTTP/1.1 200 OK\r\n")
    for _ in range(int(_number(talk, "mb", 50)) * 16):
        await talk.send(b"X-More: " + b"x" * 65_000 + b"\r\n")
    _close(talk)


# --- bodies ---


@odd
async def empty(talk: Conversation) -> None:
    await talk.reply(200, b"")


@odd
async def no_content(talk: Conversation) -> None:
    await talk.reply(204)


@odd
async def huge(talk: Conversation) -> None:
    size_bytes = int(_number(talk, "mb", 10) * _MIB)
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
    for _ in range(int(_number(talk, "mb", 200)) * 16):
        await talk.send(block)
    _close(talk)


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


_ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", lambda data: gzip.compress(data, mtime=0)),
    "deflate": ("deflate", zlib.compress),
    "raw-deflate": ("deflate", _raw_deflate),
    "br": ("br", lambda data: brotli.compress(data, quality=5)),
    "zstd": ("zstd", zstandard.compress),
    "double": ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data, mtime=0), mtime=0)),
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
    bomb_bytes = int(_number(talk, "mb", 50)) * _MIB
    await talk.reply(200, encode(bytes(bomb_bytes)), [("Content-Encoding", name)])


# --- statuses ---


@odd
async def status(talk: Conversation) -> None:
    """`code`; `retry_after` as sent, or `retry_date` seconds from now as a date."""
    headers = []
    if "retry_after" in talk.query:
        headers.append(("Retry-After", talk.query["retry_after"]))
    if "retry_date" in talk.query:
        headers.append(("Retry-After", formatdate(time.time() + _number(talk, "retry_date", 1), usegmt=True)))
    await talk.reply(int(_number(talk, "code", 503)), PAGE, headers)


@odd
async def auth(talk: Conversation) -> None:
    """401 unless user `user` with password `secret`."""
    if talk.header("authorization") == "Basic " + base64.b64encode(b"user:secret").decode():
        await talk.reply(200, PAGE)
    else:
        await talk.reply(401, b"", [("WWW-Authenticate", 'Basic realm="odd"')])


# --- redirects ---


@odd
async def redirect(talk: Conversation) -> None:
    """`code` and `to`: the Location as it is; without `to` there is none."""
    headers = [("Location", talk.query["to"])] if "to" in talk.query else []
    await talk.reply(int(_number(talk, "code", 302)), PAGE, headers)


@odd
async def chain(talk: Conversation) -> None:
    left = int(_number(talk, "n", 5))
    await talk.reply(302, b"", [("Location", f"/odd/chain?n={left - 1}" if left > 1 else "/page/1.html")])


@odd
async def loop(talk: Conversation) -> None:
    step = int(_number(talk, "step", 0))
    await talk.reply(302, b"", [("Location", f"/odd/loop?step={(step + 1) % 3}")])


@odd
async def endless_redirects(talk: Conversation) -> None:
    step = int(_number(talk, "step", 0))
    await talk.reply(302, b"", [("Location", f"/odd/endless-redirects?step={step + 1}")])


@odd
async def redirect_crlf(talk: Conversation) -> None:
    await talk.reply(302, b"", [("Location", "/page/1.html%0d%0aX-Injected:%201")])


@odd
async def redirect_bytes(talk: Conversation) -> None:
    talk.status = 302
    await talk.send(b"HTTP/1.1 302 Found\r\nLocation: /page/\xff\xfe \x01.html\r\nContent-Length: 0\r\n\r\n")


@odd
async def cookie_wall(talk: Conversation) -> None:
    if "seen=1" in talk.header("cookie"):
        await talk.reply(200, PAGE)
    else:
        await talk.reply(302, b"", [("Set-Cookie", "seen=1; Path=/"), ("Location", "/odd/cookie-wall")])


# --- conditional requests ---


@odd
async def etag(talk: Conversation) -> None:
    tag = f'"{talk.query.get("tag", "one")}"'
    known = talk.header("if-none-match") == tag
    await talk.reply(304 if known else 200, PAGE, [("ETag", tag)])


@odd
async def last_modified(talk: Conversation) -> None:
    moment = "Thu, 01 Jan 2026 00:00:00 GMT"
    known = talk.header("if-modified-since") == moment
    await talk.reply(304 if known else 200, PAGE, [("Last-Modified", moment)])


@odd
async def always_304(talk: Conversation) -> None:
    await talk.reply(304)


@odd
async def always_new(talk: Conversation) -> None:
    """Another body and ETag each time."""
    now = str(time.monotonic_ns())
    await talk.reply(200, PAGE + f"<!-- {now} -->".encode(), [("ETag", f'"{now}"')])


# --- robots.txt that is odd (as `Site.robots_behaviour`) ---


@odd
async def robots_html(talk: Conversation) -> None:
    await talk.reply(200, b"<html><body>User-agent: *<br>Disallow: /</body></html>")


@odd
async def robots_bom(talk: Conversation) -> None:
    await talk.reply(200, b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /private/\r\n", content_type="text/plain")


@odd
async def robots_endless(talk: Conversation) -> None:
    talk.query = {"type": "text/plain", "line": "Disallow: /private/", "mb": talk.query.get("mb", "200")}
    await talk.send(b"")
    await endless(talk)


# --- pages that say something to crawlers ---


@odd
async def directives(talk: Conversation) -> None:
    """`meta` and `header`: the values of meta robots and X-Robots-Tag."""
    meta = f'<meta name="robots" content="{talk.query["meta"]}">' if "meta" in talk.query else ""
    headers = [("X-Robots-Tag", talk.query["header"])] if "header" in talk.query else []
    links = '<a href="/page/1.html">followed</a> <a rel="nofollow" href="/page/2.html">not</a>'
    await talk.reply(
        200, f"<html><head>{meta}<title>Directives</title></head><body>{links}</body></html>".encode(), headers
    )


@odd
async def meta_refresh(talk: Conversation) -> None:
    await talk.reply(200, b'<html><head><meta http-equiv="refresh" content="0; url=/page/1.html"></head></html>')
