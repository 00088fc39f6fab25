"""Serves the sample sites on one loopback port, told apart by the Host header."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Self

from recrawl.errors import EnvironmentFaultError
from recrawl.sampleweb.pages import etag_of, page_of
from recrawl.sampleweb.texts import SITES

ADDRESS = "127.0.0.1"
_SITES = {site.host: site for site in SITES}
_SEED_PATHS = ("/", "/sitemap.xml", "/news", "/about", "/articles/0", "/articles/1", "/old/2", "/private/diary")
_SEED_FILE_HEAD = "# The sample web: a URL a line; scope=host: no other site is visited for its sake."
_DAY_SECONDS = 86_400
_IDLE_SECONDS = 15


class SampleWeb:
    """The sample web, as a context manager.

    Args:
        port: the port; 0 for any that is free.
        edition: what the changing pages change with; None: the number of the day.

    Raises:
        EnvironmentFaultError: the port is taken.
    """

    def __init__(self, port: int = 0, edition: int | None = None, address: str = ADDRESS) -> None:
        self.address = address
        self.edition = int(time.time()) // _DAY_SECONDS if edition is None else edition
        try:
            self._server = _Server(address, port, self)
        except OSError as error:
            raise EnvironmentFaultError(
                f"The sample web can't listen on {address}:{port}: {error.strerror}.", "Choose another port, or 0."
            ) from None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="sample-web", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def seeds(self) -> list[str]:
        """The seed lines: what a person would name of each site, so that a first round has something to show."""
        return [f"http://{host}:{self.port}{path} scope=host" for host in _SITES for path in _SEED_PATHS]

    def hosts(self) -> dict[str, str]:
        """The address of each host name."""
        return dict.fromkeys(_SITES, self.address)

    def write_seeds(self, path: Path) -> None:
        """Write a seed file, a URL a line."""
        lines = [_SEED_FILE_HEAD, *self.seeds()]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def write_hosts(self, path: Path) -> None:
        """Write the host names in the form of /etc/hosts, for `dns.hosts_file`."""
        path.write_text("".join(f"{address} {host}\n" for host, address in self.hosts().items()), encoding="utf-8")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, address: str, port: int, web: SampleWeb) -> None:
        self.web = web
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's would ask the DNS for this machine's name.
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave early are no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "SampleWeb"
    sys_version = ""
    timeout = _IDLE_SECONDS
    # Head and body leave as one segment, at once.
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    server: _Server

    def do_GET(self) -> None:
        authority = self.headers.get("Host", "").lower()
        site = _SITES.get(authority.partition(":")[0])
        if site is None:
            self.send_error(421)
            return
        page = page_of(
            site, self.path.partition("?")[0], f"http://{site.host}:{self.server.web.port}", self.server.web.edition
        )
        status, body = page.status, page.body
        etag = etag_of(body)
        if status == 200 and self.headers.get("If-None-Match") == etag:
            status, body = 304, b""
        self.send_response(status)
        if page.location:
            self.send_header("Location", page.location)
        if status in (200, 304):
            self.send_header("ETag", etag)
        if status != 304:
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: standard output belongs to the command that started the web."""
