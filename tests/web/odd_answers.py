"""Odd in what they say: statuses, redirects, validators, robots.txt, directives; in good HTTP."""

from __future__ import annotations

import base64
import time
from email.utils import formatdate
from typing import TYPE_CHECKING

from tests.web.odd_wire import endless
from tests.web.registry import PAGE, number, odd

if TYPE_CHECKING:
    from tests.web.server import Conversation


# --- statuses ---


@odd
async def status(talk: Conversation) -> None:
    """`code`; `retry_after` as sent, or `retry_date` seconds from now as a date."""
    headers = []
    if "retry_after" in talk.query:
        headers.append(("Retry-After", talk.query["retry_after"]))
    if "retry_date" in talk.query:
        headers.append(("Retry-After", formatdate(time.time() + number(talk, "retry_date", 1), usegmt=True)))
    await talk.reply(int(number(talk, "code", 503)), PAGE, headers)


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
    await talk.reply(int(number(talk, "code", 302)), PAGE, headers)


@odd
async def chain(talk: Conversation) -> None:
    left = int(number(talk, "n", 5))
    await talk.reply(302, b"", [("Location", f"/odd/chain?n={left - 1}" if left > 1 else "/page/1.html")])


@odd
async def loop(talk: Conversation) -> None:
    step = int(number(talk, "step", 0))
    await talk.reply(302, b"", [("Location", f"/odd/loop?step={(step + 1) % 3}")])


@odd
async def endless_redirects(talk: Conversation) -> None:
    step = int(number(talk, "step", 0))
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
