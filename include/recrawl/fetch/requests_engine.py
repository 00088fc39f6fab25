"""The second HTTP engine: requests with a pool of threads, for what needs its adapters."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPException
from http.client import HTTPResponse as PlainResponse
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from recrawl.clock import Clock
from recrawl.fetch.body import Body, ScratchFiles
from recrawl.fetch.curl_engine import certificate_file
from recrawl.fetch.engine import EngineAnswer, EngineRequest, EngineSettings
from recrawl.fetch.guard import AddressPolicy
from recrawl.tables.vocabulary import Outcome, TruncatedReason

#: Threads cost memory and the interpreter's lock; more of them fetch no faster.
_MAX_THREADS = 64
_RECEIVE_BYTES = 64 * 1024
_WATCH_SECONDS = 0.25
_MAX_LINE_BYTES = 65_537


class _RefusedError(OSError):
    """The guard refused every address of a name."""


class _HeadTooLongError(HTTPException):
    """The response head passed its cap."""


class _Transfer:
    """One request on its thread: what the connection below has to know and to tell."""

    def __init__(self, request: EngineRequest, started_seconds: float) -> None:
        self.request = request
        self.started_seconds = started_seconds
        self.socket: socket.socket | None = None
        self.ip: str | None = None
        self.head: list[bytes] = []
        self.head_bytes = 0
        self.dns_seconds: float | None = None
        self.connect_seconds: float | None = None
        self.is_overdue = False


class _Current(threading.local):
    transfer: _Transfer | None = None
    policy: AddressPolicy
    clock: Clock
    max_header_bytes: int


_current = _Current()


class _HeadTee:
    """Stands in for the response stream while the head is read, and keeps its bytes."""

    def __init__(self, stream: Any, transfer: _Transfer) -> None:
        self._stream = stream
        self._transfer = transfer

    def readline(self, limit: int = -1) -> bytes:
        line: bytes = self._stream.readline(limit)
        transfer = self._transfer
        transfer.head_bytes += len(line)
        if transfer.head_bytes > _current.max_header_bytes:
            raise _HeadTooLongError("head")
        if line.startswith(b"HTTP/"):
            transfer.head = []  # an interim head came before
        transfer.head.append(line)
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _RecordingResponse(PlainResponse):
    """An http.client response that keeps its head as received."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        transfer = _current.transfer
        assert transfer is not None
        transfer.socket = sock
        with contextlib.suppress(OSError):
            transfer.ip = sock.getpeername()[0]

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if status <= 101 or status >= 200:  # http.client passes over 100 itself, not over 103
                return version, status, reason
            while self.fp.readline(_MAX_LINE_BYTES) not in (b"\r\n", b"\n", b""):
                pass

    def begin(self) -> None:
        assert _current.transfer is not None
        stream = self.fp
        self.fp = _HeadTee(stream, _current.transfer)  # type: ignore[assignment]
        try:
            super().begin()
        finally:
            if isinstance(self.fp, _HeadTee):
                self.fp = stream


def _guarded_connection(host: str, port: int, timeout_seconds: float) -> socket.socket:
    """Resolve (unless that is done), ask the guard for each address, connect to the first that answers."""
    transfer = _current.transfer
    assert transfer is not None
    addresses = transfer.request.addresses
    begin = _current.clock.monotonic_seconds()
    if not addresses or _current.policy.is_proxied:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    transfer.dns_seconds = _current.clock.monotonic_seconds() - begin
    problem: OSError = _RefusedError(f"{host} has no address.")
    for address in addresses:
        if transfer.is_overdue:
            raise TimeoutError("The transfer was cut.")
        refusal = _current.policy.connect_refusal(address)
        if refusal is not None:
            problem = _RefusedError(refusal)
            continue
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.settimeout(timeout_seconds)
        transfer.socket = connection  # from here on the connecting can be cut, too
        try:
            connection.connect((address, port))
        except OSError as error:
            connection.close()
            problem = error
            continue
        transfer.connect_seconds = _current.clock.monotonic_seconds() - begin
        return connection
    raise problem


class _Guarded:
    """The connecting half of a urllib3 connection, with the guard in it."""

    def _new_conn(self) -> socket.socket:
        connection: Any = self
        return _guarded_connection(connection._dns_host, connection.port, connection.timeout)


class _GuardedHTTPConnection(_Guarded, HTTPConnection):
    response_class = _RecordingResponse


class _GuardedHTTPSConnection(_Guarded, HTTPSConnection):
    response_class = _RecordingResponse


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _GuardedHTTPConnection


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _GuardedHTTPSConnection


class _GuardedAdapter(HTTPAdapter):
    """An adapter whose connections ask the guard; kept, one a host."""

    def _guard(self, manager: Any) -> Any:
        manager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
        return manager

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self._guard(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return self._guard(super().proxy_manager_for(proxy, **options))


class RequestsEngine:
    """http and https by requests; see `recrawl.fetch.engine.Engine`."""

    def __init__(self, settings: EngineSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.capacity = min(settings.max_connections, _MAX_THREADS)
        self._threads = ThreadPoolExecutor(self.capacity, thread_name_prefix="fetch")
        self._answers: queue.SimpleQueue[EngineAnswer] = queue.SimpleQueue()
        self._transfers: set[_Transfer] = set()
        self._watched_at = clock.monotonic_seconds()
        self._session = self._make_session()
        self._files = ScratchFiles(settings.spool_dir)
        #: Hosts whose certificate is not valid, and why; only where that is accepted.
        self._invalid: dict[str, str] = {}
        self.in_flight = 0

    def submit(self, request: EngineRequest) -> None:
        self.in_flight += 1
        transfer = _Transfer(request, self._clock.monotonic_seconds())
        self._transfers.add(transfer)
        self._threads.submit(self._run, transfer)

    def poll(self, timeout_seconds: float) -> list[EngineAnswer]:
        answers: list[EngineAnswer] = []
        deadline = self._clock.monotonic_seconds() + timeout_seconds
        while not answers:
            left_seconds = deadline - self._clock.monotonic_seconds()
            with contextlib.suppress(queue.Empty):
                answers.append(self._answers.get(timeout=max(0.0, min(left_seconds, _WATCH_SECONDS))))
                while True:
                    answers.append(self._answers.get_nowait())
            self._cut_overdue()
            if left_seconds <= 0:
                break
        self.in_flight -= len(answers)
        return answers

    def close(self) -> None:
        for transfer in list(self._transfers):
            transfer.is_overdue = True
            _shut(transfer)
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._session.close()
        with contextlib.suppress(queue.Empty):
            while True:
                self._answers.get_nowait().body.close()
        self._files.close()

    def _make_session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        adapter = _GuardedAdapter(pool_connections=self._settings.max_connections, pool_maxsize=1)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        if self._settings.proxy:
            session.proxies = {"http": self._settings.proxy, "https": self._settings.proxy}
        if not self._settings.verify_tls:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        return session

    def _cut_overdue(self) -> None:
        """Shut transfers that pass the total time: a drip keeps every single read within its own."""
        now = self._clock.monotonic_seconds()
        if now - self._watched_at < _WATCH_SECONDS:
            return
        self._watched_at = now
        for transfer in list(self._transfers):
            if now - transfer.started_seconds > self._settings.total_timeout_seconds and not transfer.is_overdue:
                transfer.is_overdue = True
                _shut(transfer)

    def _run(self, transfer: _Transfer) -> None:
        _current.transfer, _current.policy = transfer, self._settings.policy
        _current.clock, _current.max_header_bytes = self._clock, self._settings.max_header_bytes
        now = self._clock.now()
        body = Body(transfer.request.max_bytes, self._files)
        answer = EngineAnswer(transfer.request, now, now, body)
        transfer.started_seconds = self._clock.monotonic_seconds()
        try:
            self._exchange(transfer, answer)
        except Exception as error:  # whatever a library below raises is the outcome of this one request
            _explain(answer, transfer, error)
        self._transfers.discard(transfer)
        _current.transfer = None
        self._finish(transfer, answer)
        self._answers.put(answer)

    def _finish(self, transfer: _Transfer, answer: EngineAnswer) -> None:
        if transfer.is_overdue and (answer.truncated is not None or answer.failure is not None or not answer.status):
            answer.failure = Outcome.TIMEOUT
            answer.truncated = TruncatedReason.TIME if answer.status else None
            answer.detail = f"Not finished after {self._settings.total_timeout_seconds:g} s."
        answer.ended_at = self._clock.now()
        answer.total_seconds = self._clock.monotonic_seconds() - transfer.started_seconds
        answer.dns_seconds, answer.connect_seconds = transfer.dns_seconds, transfer.connect_seconds
        answer.ip = transfer.ip
        answer.request_head = self._settings.request_head(transfer.request)
        answer.response_head = b"".join(transfer.head) if answer.status else b""

    def _send(self, prepared: requests.PreparedRequest, host: str, answer: EngineAnswer) -> requests.Response:
        """The response, its body unread; an invalid certificate is told of and accepted where that may be."""
        settings = self._settings
        # The adapter itself: a session would keep cookies and prepare the next hop of a redirect.
        send = partial(
            self._session.get_adapter(prepared.url or "").send, prepared, stream=True,
            timeout=(settings.connect_timeout_seconds, settings.read_timeout_seconds), proxies=self._session.proxies,
        )  # fmt: skip
        if host not in self._invalid:
            try:
                return send(verify=certificate_file())
            except requests.exceptions.SSLError as error:
                if settings.verify_tls:
                    raise
                self._invalid[host] = str(error)[:500]
        answer.tls_problem = self._invalid[host]
        return send(verify=False)

    def _exchange(self, transfer: _Transfer, answer: EngineAnswer) -> None:
        settings, request = self._settings, transfer.request
        prepared = requests.Request("GET", request.url.partition("#")[0]).prepare()
        prepared.url = request.url.partition("#")[0]  # as given: requests would escape it once more
        # As http.client writes them: Host first, then ours in our order.
        prepared.headers.clear()
        prepared.headers.update([("Host", request.host), *settings.sent_headers(request)])
        response = self._send(prepared, request.host, answer)
        if not transfer.head or transfer.head[-1] not in (b"\r\n", b"\n"):
            response.close()
            raise ConnectionResetError("The connection was closed inside the response head.")
        answer.status = response.status_code
        answer.first_byte_seconds = self._clock.monotonic_seconds() - transfer.started_seconds
        try:
            # read1 hands over what there is, so that a connection that breaks loses nothing received.
            while chunk := response.raw.read1(_RECEIVE_BYTES, decode_content=False):
                answer.body.write(chunk)
                if answer.body.cut:
                    answer.truncated = TruncatedReason.LENGTH
                    break
        finally:
            if answer.truncated is None and response.raw.closed:
                response.raw.release_conn()
            else:
                response.close()


def _shut(transfer: _Transfer) -> None:
    if transfer.socket is not None:
        with contextlib.suppress(OSError):
            transfer.socket.shutdown(socket.SHUT_RDWR)


def _causes(error: BaseException) -> list[BaseException]:
    """An exception with all that it wraps, outermost first."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        current = waiting.pop(0)
        if current in found:
            continue
        found.append(current)
        inner = [*current.args, getattr(current, "reason", None), current.__cause__, current.__context__]
        waiting += [item for item in inner if isinstance(item, BaseException)]
    return found


def _explain(answer: EngineAnswer, transfer: _Transfer, error: Exception) -> None:
    """Turn an exception of requests or below into an outcome or a reason for truncation."""
    causes = _causes(error)

    def among(*kinds: type[BaseException]) -> BaseException | None:
        return next((cause for cause in causes if isinstance(cause, kinds)), None)

    answer.detail = str(error)[:500]
    timed_out = among(TimeoutError, urllib3.exceptions.TimeoutError, requests.Timeout) is not None
    if answer.status is not None:  # the head was whole: the body broke off
        if timed_out:
            answer.failure, answer.truncated = Outcome.TIMEOUT, TruncatedReason.TIME
        else:
            answer.truncated = TruncatedReason.DISCONNECT
    elif refused := among(_RefusedError):
        answer.failure, answer.detail = Outcome.ADDRESS_REFUSED, str(refused)
    elif among(socket.gaierror, urllib3.exceptions.NameResolutionError):
        answer.failure = Outcome.DNS_ERROR
    elif timed_out:
        answer.failure = Outcome.TIMEOUT
    elif among(requests.exceptions.SSLError, urllib3.exceptions.SSLError):
        answer.failure = Outcome.TLS_ERROR
    elif among(requests.exceptions.InvalidURL, requests.exceptions.MissingSchema, UnicodeError):
        answer.failure = Outcome.INVALID_URL
    elif among(_HeadTooLongError):
        answer.failure = Outcome.PROTOCOL_ERROR
        answer.detail = f"The response headers passed {_current.max_header_bytes:,} bytes."
    elif among(ConnectionError, urllib3.exceptions.NewConnectionError) or not transfer.head_bytes:
        answer.failure = Outcome.CONNECT_ERROR
    else:
        answer.failure = Outcome.PROTOCOL_ERROR
