"""The small protocol that HTTP engines are modules behind.

An engine makes one request for each submission: no redirects, no cookies, no content decoding,
no retries of its own. It asks the address guard with the address it is about to connect to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Protocol

from recrawl.config.model import Configuration
from recrawl.fetch.body import Body
from recrawl.fetch.guard import AddressPolicy
from recrawl.tables.vocabulary import Outcome, TruncatedReason

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, br, zstd, deflate"

#: What stands in the stored request for a header that is sent but must never be stored.
WITHHELD = "(withheld)"


@dataclass(slots=True)
class EngineRequest:
    """One request.

    Attributes:
        url: as it is requested; http, https or ftp.
        host: its authority.
        max_bytes: cap of the body as sent.
        headers: conditional and other headers of this request; stored in WARC.
        secret_headers: headers that are sent and stored as `WITHHELD`.
        username, password: for FTP; HTTP credentials come as a secret header.
        addresses: where to connect, already resolved; empty: the engine resolves the name.
        work: what the caller needs to know when the answer comes.
    """

    url: str
    host: str
    max_bytes: int
    headers: tuple[tuple[str, str], ...] = ()
    secret_headers: tuple[tuple[str, str], ...] = ()
    username: str = ""
    password: str = ""
    addresses: tuple[str, ...] = ()
    work: object = None


@dataclass(slots=True)
class EngineAnswer:
    """How one request ended.

    Attributes:
        request: what was submitted.
        failure: the outcome when the network or the protocol failed, else None. A body that
            broke off after a whole head is no failure: it is `truncated`.
        detail: what went wrong, for people; empty when nothing did.
        may_pass: the failure was one of name servers, which may answer when asked again.
        status: the HTTP status; None without one (FTP too).
        request_head: the request as sent, secrets withheld; empty for FTP. What went as HTTP/2, which has
            no text, is told in the form of HTTP/1.1.
        response_head: the last response head as received; empty for FTP. Its status line says HTTP/2
            where that was spoken.
        body: the entity without transfer coding, content encoding kept.
        truncated: why the body is not whole.
        tls_problem: what is wrong with the server's certificate, where configuration lets that pass; else empty.
        ip: the address that was connected to.
        started_at, ended_at: UTC.
        dns_seconds, connect_seconds, first_byte_seconds, total_seconds: from the start; dns and
            connect are None on a kept connection.
    """

    request: EngineRequest
    started_at: datetime
    ended_at: datetime
    body: Body
    failure: Outcome | None = None
    detail: str = ""
    may_pass: bool = False
    status: int | None = None
    request_head: bytes = b""
    response_head: bytes = b""
    truncated: TruncatedReason | None = None
    tls_problem: str = ""
    ip: str | None = None
    dns_seconds: float | None = None
    connect_seconds: float | None = None
    first_byte_seconds: float | None = None
    total_seconds: float = 0.0


@dataclass(frozen=True)
class EngineSettings:
    """What an engine needs to know for its life.

    Attributes:
        verify_tls: whether invalid certificates are refused; else they are told of, and accepted.
        http_version: "1.1", or "2" to offer HTTP/2 over TLS.
        spool_dir: folder for bodies that do not stay in memory; None: the system's.
    """

    user_agent: str
    policy: AddressPolicy
    connect_timeout_seconds: float
    read_timeout_seconds: float
    total_timeout_seconds: float
    max_header_bytes: int
    max_connections: int
    verify_tls: bool
    proxy: str = ""
    http_version: str = "1.1"
    dns_ttl_seconds: float = 3_600
    spool_dir: str | None = None
    common_headers: Mapping[str, str] = field(
        default_factory=lambda: {"Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
    )

    @classmethod
    def of(cls, configuration: Configuration, spool_dir: str | None = None) -> EngineSettings:
        """The settings that a configuration asks for."""
        fetch = configuration.fetch
        return cls(
            user_agent=configuration.agent.user_agent,
            policy=AddressPolicy.of(configuration),
            connect_timeout_seconds=fetch.connect_timeout_seconds,
            read_timeout_seconds=fetch.read_timeout_seconds,
            total_timeout_seconds=fetch.total_timeout_seconds,
            max_header_bytes=fetch.max_header_bytes,
            max_connections=fetch.max_connections,
            verify_tls=fetch.verify_tls,
            proxy=fetch.proxy,
            http_version=fetch.http_version,
            dns_ttl_seconds=configuration.dns.ttl_seconds,
            spool_dir=spool_dir,
        )

    def sent_headers(self, request: EngineRequest) -> list[tuple[str, str]]:
        """All headers but Host, in the order in which they are sent."""
        headers = [("User-Agent", self.user_agent), *self.common_headers.items()]
        replaced = {name.lower() for name, _ in (*request.headers, *request.secret_headers)}
        headers = [pair for pair in headers if pair[0].lower() not in replaced]
        return [*headers, *request.headers, *request.secret_headers]

    def sent_lines(self, request: EngineRequest) -> list[bytes]:
        """`sent_headers` as lines, without their ends."""
        if not request.headers and not request.secret_headers:
            return self._usual_lines
        return [f"{name}: {value}".encode("latin-1", "replace") for name, value in self.sent_headers(request)]

    @cached_property
    def _usual_lines(self) -> list[bytes]:
        """Of a request without headers of its own, which most are."""
        headers = [("User-Agent", self.user_agent), *self.common_headers.items()]
        return [f"{name}: {value}".encode("latin-1", "replace") for name, value in headers]

    def request_head(self, request: EngineRequest) -> bytes:
        """The request head that goes over the wire, with secrets withheld."""
        target = request.url if self.proxy and request.url.startswith("http:") else request_target(request.url)
        if request.secret_headers:
            request = replace(request, secret_headers=tuple((name, WITHHELD) for name, _ in request.secret_headers))
        start = f"GET {target} HTTP/1.1\r\nHost: {request.host}".encode("latin-1", "replace")
        return b"\r\n".join([start, *self.sent_lines(request), b"", b""])


class Engine(Protocol):
    """An HTTP engine."""

    @property
    def in_flight(self) -> int:
        """Requests submitted and not yet answered."""

    @property
    def capacity(self) -> int:
        """Requests that may be in flight at once."""

    def submit(self, request: EngineRequest) -> None:
        """Start a request. Its answer comes from `poll`."""

    def poll(self, timeout_seconds: float) -> list[EngineAnswer]:
        """Work and wait up to `timeout_seconds` for answers; returns at once when there are any."""

    def close(self) -> None:
        """Drop what is in flight, close every connection."""


def request_target(url: str) -> str:
    """Path and query of an absolute URL (RFC 9112, section 3.2.1)."""
    start = url.index("://") + 3
    slash = url.find("/", start)
    if slash < 0:
        return "/"
    return url[slash:].partition("#")[0]
