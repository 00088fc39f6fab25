"""The server: one event loop in a thread, raw sockets' worth of freedom to answer badly."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl

from tests.web.audit import Audit
from tests.web.behaviours import BEHAVIOURS, Gone
from tests.web.log import Hit
from tests.web.site import Answer, Site

DEFAULT_HOSTS = ("alpha.test", "beta.test", "gamma.test")
_MAX_HEAD_BYTES = 1 << 20
_REASONS = {200: "OK", 204: "No Content", 301: "Moved Permanently", 302: "Found", 304: "Not Modified", 404: "Not Found"}


class Conversation:
    """One request and the means to answer it, well or badly.

    Attributes:
        method, path, headers: of the request; header names in lower case.
        query: the parameters of the path.
        status: the status sent; 0 until there is one.
        keep: whether the connection may serve another request.
    """

    def __init__(self, writer: asyncio.StreamWriter, head: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.path, *_ = [*lines[0].split(" "), "", ""]
        pairs = [line.partition(":") for line in lines[1:] if line]
        self.headers = tuple((name.strip().lower(), value.strip()) for name, _, value in pairs)
        self.query = dict(parse_qsl(self.path.partition("?")[2]))
        self.authority = (self.header("host") or "").lower()
        name, bracket, _ = self.authority.partition("]")
        self.host = name + bracket if bracket else name.partition(":")[0]
        self.status = 0
        self.sent_bytes = 0
        self.keep = self.header("connection", "").lower() != "close"
        self._writer = writer

    def header(self, name: str, default: str = "") -> str:
        """The first value of a request header, or `default`."""
        return next((value for key, value in self.headers if key == name), default)

    async def send(self, data: bytes) -> None:
        """Send bytes as they are. Raises ConnectionError when the client has left."""
        if self._writer.is_closing():
            raise ConnectionResetError
        self._writer.write(data)
        self.sent_bytes += len(data)
        await self._writer.drain()

    async def reply(
        self,
        status: int = 200,
        body: bytes = b"",
        headers: Sequence[tuple[str, str]] = (),
        *,
        content_type: str = "text/html; charset=utf-8",
        length: int | None = -1,
    ) -> None:
        """Send a whole answer.

        Args:
            length: the Content-Length to claim; -1: the true one; None: none, and the
                connection is closed behind the body.
        """
        given = {name.lower() for name, _ in headers}
        lines = [f"{name}: {value}" for name, value in headers]
        if content_type and "content-type" not in given:
            lines.append(f"Content-Type: {content_type}")
        if length is not None and status not in (204, 304):
            lines.append(f"Content-Length: {len(body) if length < 0 else length}")
        if length is None:
            self.keep = False
        self.status = status
        head = "\r\n".join([f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", *lines, "", ""]).encode("latin-1")
        await self.send(head if self.method == "HEAD" or status in (204, 304) else head + body)

    def reset(self) -> None:
        """Break the connection at once: a reset (RST) instead of an orderly end."""
        self.keep = False
        linger_no_seconds = struct.pack("ii", 1, 0)
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_no_seconds)
        self._writer.transport.abort()


class MisbehavingWeb:
    """A web of virtual hosts on loopback; a context manager.

    Args:
        hosts: names to begin with; `site` makes more.
        pages: ordinary pages that each of them has.
        own_addresses: give each host an address of its own (127.0.1.1, 127.0.1.2, ...).
        port: the port; 0 for any that is free.
    """

    def __init__(
        self,
        hosts: Sequence[str] = DEFAULT_HOSTS,
        *,
        pages: int = 20,
        own_addresses: bool = False,
        port: int = 0,
    ) -> None:
        self.port = port
        self._own_addresses = own_addresses
        self._sites: dict[str, Site] = {}
        self._changed: dict[tuple[str, str], Answer | str] = {}
        self._hits: list[Hit] = []
        self._cleared_seconds = 0.0
        self._connections = 0
        self._listeners: dict[str, asyncio.Server] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._transports: weakref.WeakSet[asyncio.WriteTransport] = weakref.WeakSet()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="misbehaving-web", daemon=True)
        self._is_running = False
        for host in hosts:
            self.site(host, pages=pages)

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_running = True
        for address in {"127.0.0.1", *(site.address for site in self._sites.values())}:
            self._run(self._listen(address))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def log(self) -> list[Hit]:
        """All requests so far, in the order in which they ended."""
        # A request that was open when the log was cleared ends, and is noted, after that.
        return [hit for hit in self._hits if hit.started_seconds >= self._cleared_seconds]

    def clear_log(self) -> None:
        """Forget the requests so far; between rounds."""
        self._cleared_seconds = time.monotonic()
        self._hits.clear()

    def hits(self, host: str, path: str | None = None) -> list[Hit]:
        """The requests to a host, or to one path of it."""
        return [hit for hit in self.log if hit.host == host and path in (None, hit.path)]

    def audit(self) -> Audit:
        """How polite the requests so far were."""
        return Audit(self.log, {host: site.robots_text for host, site in self._sites.items()}, self.port)

    def url(self, host: str, path: str = "/") -> str:
        """The address of `path` on `host`."""
        return f"http://{host}:{self.port}{path}"

    def hosts_file(self, path: Path) -> Path:
        """Write the names and addresses of all sites in the form of /etc/hosts; nobody ever reads half a file."""
        half = path.with_name(f"{path.name}.{os.getpid()}.half")
        half.write_text("".join(f"{site.address} {site.host}\n" for site in self._sites.values()))
        return half.replace(path)

    def site(self, host: str, **settings: Any) -> Site:
        """The site `host`, made if it is new, with the attributes of `Site` set as `settings` says."""
        site = self._sites.get(host)
        if site is None:
            site = Site(host)
            if self._own_addresses:
                number = len(self._sites) + 1
                site.address = f"127.0.{1 + number // 250}.{number % 250}"
            self._sites[host] = site
        for name, value in settings.items():
            if name not in Site.__dataclass_fields__:
                raise TypeError(f"a site has no {name}")
            setattr(site, name, value)
        if self._is_running and site.address not in self._listeners:
            self._run(self._listen(site.address))
        return site

    def change(
        self,
        host: str,
        path: str,
        body: bytes | None = None,
        *,
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (("Content-Type", "text/html; charset=utf-8"),),
        behaviour: str = "",
    ) -> None:
        """Let `path` of `host` answer otherwise from now on.

        Args:
            body: the new body; without it, and without another status or behaviour, the
                ordinary page gets a new version: other text, ETag and Last-Modified.
            status: the new status.
            headers: the new headers.
            behaviour: a path of `behaviours` that answers instead.
        """
        if behaviour:
            self._changed[host, path] = behaviour
        elif body is None and status == 200:
            self._changed.pop((host, path), None)
            versions = self.site(host).versions
            versions[path] = versions.get(path, 0) + 1
        else:
            self._changed[host, path] = Answer(status, list(headers), body or b"")

    def go_down(self) -> None:
        """Break every connection and listen no more, as if the network were gone."""
        self._run(self._stop())
        self._listeners.clear()

    def come_back(self) -> None:
        """Listen again, on the same port."""
        for address in {"127.0.0.1", *(site.address for site in self._sites.values())}:
            self._run(self._listen(address))

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=20)

    async def _listen(self, address: str) -> None:
        server = await asyncio.start_server(
            self._serve, address, self.port, limit=_MAX_HEAD_BYTES, backlog=1024, reuse_address=True
        )
        self.port = server.sockets[0].getsockname()[1]
        self._listeners[address] = server

    async def _stop(self) -> None:
        for server in self._listeners.values():
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Closed, but with bytes that their clients never took: these would outlive the loop.
        for transport in self._transports:
            transport.abort()
        await asyncio.sleep(0)
        for server in self._listeners.values():
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        connection = self._connections
        # `drain` then waits for the kernel, so that an answer's end is its end.
        writer.transport.set_write_buffer_limits(high=0)
        self._transports.add(writer.transport)
        try:
            keep = True
            while keep:
                head = await reader.readuntil(b"\r\n\r\n")
                keep = await self._converse(connection, Conversation(writer, head), writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            # The client left, or sent no request, or the web stops: nobody is there to be told.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _converse(self, connection: int, talk: Conversation, writer: asyncio.StreamWriter) -> bool:
        started_seconds = time.monotonic()
        left = True
        try:
            await self._answer(talk)
            left = False
        except Gone:
            left = False
            talk.keep = False
        finally:
            address = (writer.get_extra_info("sockname") or ("",))[0]
            times = (started_seconds, time.monotonic())
            self._hits.append(
                Hit(
                    *(talk.host, address, connection, talk.method, talk.path, talk.headers, talk.status, *times),
                    body_bytes=talk.sent_bytes,
                    left=left,
                )
            )
        return talk.keep

    async def _answer(self, talk: Conversation) -> None:
        site = self._sites.get(talk.host)
        if site is None:
            await talk.reply(421, b"no such host")
            return
        if site.delay_seconds:
            await asyncio.sleep(site.delay_seconds)
        changed = self._changed.get((talk.host, talk.path))
        behaviour = changed if isinstance(changed, str) else talk.path
        if talk.path == "/robots.txt" and site.robots_behaviour and changed is None:
            behaviour = site.robots_behaviour
        name, _, query = behaviour.partition("?")
        if name in BEHAVIOURS:
            talk.query = dict(parse_qsl(query))
            await BEHAVIOURS[name](talk)
            return
        answer = changed if isinstance(changed, Answer) else site.answer(talk.path, self.port)
        await _reply_conditionally(talk, answer)


async def _reply_conditionally(talk: Conversation, answer: Answer) -> None:
    validators = {name.lower(): value for name, value in answer.headers}
    etag, modified = validators.get("etag"), validators.get("last-modified")
    asked_etag = talk.header("if-none-match")
    # If-None-Match decides alone where it is there (RFC 9110, 13.2.2).
    fresh = asked_etag == etag if asked_etag else modified and talk.header("if-modified-since") == modified
    if answer.status == 200 and fresh and (etag or modified):
        await talk.reply(
            304, b"", [pair for pair in answer.headers if pair[0] in ("ETag", "Last-Modified")], content_type=""
        )
        return
    await talk.reply(answer.status, answer.body, answer.headers)
