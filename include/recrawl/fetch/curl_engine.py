"""The default HTTP engine: libcurl's multi interface, driven by one selector."""

from __future__ import annotations

import resource
import socket
import ssl
from collections.abc import Callable
from datetime import datetime
from typing import Any

import certifi
import pycurl

from recrawl.clock import Clock
from recrawl.fetch.body import Body, ScratchFiles
from recrawl.fetch.engine import EngineAnswer, EngineRequest, EngineSettings
from recrawl.fetch.watched_sockets import WatchedSockets
from recrawl.tables.vocabulary import Outcome, TruncatedReason

#: File descriptors left for everything but connections.
_RESERVED_DESCRIPTORS = 256
_RECEIVE_BYTES = 64 * 1024
#: CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl does not name.
_SUPPRESS_CONNECT_HEADERS = 265

#: HTTP/2 only where TLS negotiates it (ALPN, RFC 9113, section 3.2); cleartext stays HTTP/1.1.
_HTTP_VERSIONS = {"1.1": pycurl.CURL_HTTP_VERSION_1_1, "2": pycurl.CURL_HTTP_VERSION_2TLS}

_TLS_ERRORS = frozenset(
    {
        pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CERTPROBLEM,
        pycurl.E_SSL_CIPHER, pycurl.E_SSL_CACERT_BADFILE, pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_PINNEDPUBKEYNOTMATCH, pycurl.E_SSL_INVALIDCERTSTATUS, pycurl.E_USE_SSL_FAILED,
    }
)  # fmt: skip
_FAILURES: dict[int, Outcome] = {
    pycurl.E_COULDNT_RESOLVE_HOST: Outcome.DNS_ERROR,
    pycurl.E_COULDNT_RESOLVE_PROXY: Outcome.CONNECT_ERROR,
    pycurl.E_OPERATION_TIMEDOUT: Outcome.TIMEOUT,
    pycurl.E_URL_MALFORMAT: Outcome.INVALID_URL,
    pycurl.E_UNSUPPORTED_PROTOCOL: Outcome.PROTOCOL_ERROR,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: Outcome.PROTOCOL_ERROR,
    pycurl.E_FTP_WEIRD_PASS_REPLY: Outcome.PROTOCOL_ERROR,
    pycurl.E_FTP_WEIRD_PASV_REPLY: Outcome.PROTOCOL_ERROR,
    pycurl.E_FTP_WEIRD_227_FORMAT: Outcome.PROTOCOL_ERROR,
    pycurl.E_FTP_CANT_GET_HOST: Outcome.PROTOCOL_ERROR,
    pycurl.E_FTP_COULDNT_RETR_FILE: Outcome.NOT_FOUND,
    pycurl.E_REMOTE_FILE_NOT_FOUND: Outcome.NOT_FOUND,
    pycurl.E_REMOTE_ACCESS_DENIED: Outcome.FORBIDDEN,
    pycurl.E_LOGIN_DENIED: Outcome.FORBIDDEN,
    pycurl.E_WRITE_ERROR: Outcome.PROTOCOL_ERROR,
    pycurl.E_HTTP2: Outcome.PROTOCOL_ERROR,
    92: Outcome.PROTOCOL_ERROR,  # CURLE_HTTP2_STREAM, which pycurl does not name
    100: Outcome.PROTOCOL_ERROR,  # CURLE_TOO_LARGE, neither
} | dict.fromkeys(_TLS_ERRORS, Outcome.TLS_ERROR)


def raised_connection_limit(max_connections: int) -> int:
    """How many connections may be open; raises this process's descriptor limit as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max_connections + _RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return max_connections
    return max(1, min(max_connections, soft - _RESERVED_DESCRIPTORS))


def certificate_file() -> str:
    """The system's certificate authorities where it has a file of them, else Mozilla's by certifi."""
    return ssl.get_default_verify_paths().cafile or certifi.where()


class _Handed:
    """A socket on its way to libcurl, which keeps a duplicate of its descriptor: ours closes at once."""

    __slots__ = ("_socket",)

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


class _Slot:
    """One easy handle, used again and again, and the state of its current request."""

    __slots__ = ("_max_header_bytes", "body", "handle", "head_complete", "header_bytes", "lines", "refusal", "request",
                 "started_at")  # fmt: skip

    def __init__(self, max_header_bytes: int) -> None:
        self._max_header_bytes = max_header_bytes
        self.handle: Any = pycurl.Curl()
        self.request: EngineRequest
        self.body: Body
        self.started_at: datetime

    def begin(self, request: EngineRequest, body: Body, started_at: datetime) -> None:
        self.request, self.body, self.started_at = request, body, started_at
        self.lines: list[bytes] = []
        self.header_bytes = 0
        self.head_complete = False
        self.refusal = ""

    def on_header(self, line: bytes) -> int | None:
        self.header_bytes += len(line)
        if self.header_bytes > self._max_header_bytes:
            return 0
        if line.startswith(b"HTTP/") and (self.head_complete or not self.lines):
            # A further head follows an interim one (RFC 9110, section 15.2); the last counts.
            self.lines = [line]
            self.head_complete = False
        elif not self.head_complete:  # what follows a complete head is a trailer
            self.lines.append(line)
            self.head_complete = line in (b"\r\n", b"\n")
        return None


class CurlEngine:
    """http, https and ftp by libcurl; see `recrawl.fetch.engine.Engine`."""

    def __init__(self, settings: EngineSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.capacity = raised_connection_limit(settings.max_connections)
        self._sockets = WatchedSockets()
        self._timer_at: float | None = None
        self._files = ScratchFiles(settings.spool_dir)
        self._active: dict[Any, _Slot] = {}
        self._free: list[_Slot] = []
        #: Hosts whose certificate is not valid, and why; only where that is accepted.
        self._invalid: dict[str, str] = {}
        self._multi: Any = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, self.capacity)

    @property
    def in_flight(self) -> int:
        return len(self._active)

    def submit(self, request: EngineRequest) -> None:
        slot = self._free.pop() if self._free else self._new_slot()
        slot.begin(request, Body(request.max_bytes, self._files), self._clock.now())
        handle = slot.handle
        handle.setopt(pycurl.URL, request.url.partition("#")[0])
        handle.setopt(pycurl.WRITEFUNCTION, slot.body.write)
        handle.setopt(pycurl.HTTPHEADER, self._settings.sent_lines(request))
        if request.addresses:
            handle.setopt(pycurl.RESOLVE, [_resolve_line(request)])
        else:
            handle.setopt(pycurl.RESOLVE, [])
        if request.url.startswith("ftp:"):
            handle.setopt(pycurl.USERPWD, f"{request.username or 'anonymous'}:{request.password or 'anonymous@'}")
        else:
            handle.unsetopt(pycurl.USERPWD)
        if not self._settings.verify_tls:
            self._verify(handle, request.host not in self._invalid)
        self._active[handle] = slot
        self._multi.add_handle(handle)

    def poll(self, timeout_seconds: float) -> list[EngineAnswer]:
        answers = self._finished()
        deadline = self._clock.monotonic_seconds() + timeout_seconds
        while not answers:
            left_seconds = deadline - self._clock.monotonic_seconds()
            if left_seconds < 0 or (not self._active and left_seconds <= 0):
                break
            self._wait(left_seconds)
            answers = self._finished()
        return answers

    def close(self) -> None:
        for handle, slot in self._active.items():
            self._multi.remove_handle(handle)
            slot.body.close()
            handle.close()
        self._active.clear()
        for slot in self._free:
            slot.handle.close()
        self._free.clear()
        self._files.close()
        self._multi.close()
        self._sockets.close()

    def _wait(self, seconds: float) -> None:
        if self._timer_at is not None:
            seconds = min(seconds, max(0.0, self._timer_at - self._clock.monotonic_seconds()))
        for descriptor, events in self._sockets.ready(seconds):
            self._multi.socket_action(descriptor, events)
        if self._timer_at is not None and self._clock.monotonic_seconds() >= self._timer_at:
            self._timer_at = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def _finished(self) -> list[EngineAnswer]:
        answers = []
        queued = 1
        while queued:
            queued, done, failed = self._multi.info_read()
            for handle in done:
                answers.append(self._answer(handle, 0, ""))
            for handle, code, message in failed:
                if not self._goes_on_unverified(handle, code, message):
                    answers.append(self._answer(handle, code, message))
        return answers

    def _goes_on_unverified(self, handle: Any, code: int, message: str) -> bool:
        """Where invalid certificates are accepted: connect once more, and remember what is wrong with this one.

        libcurl tells what is wrong only while it refuses; nothing was asked over the refused connection.
        """
        host = self._active[handle].request.host
        if self._settings.verify_tls or code != pycurl.E_PEER_FAILED_VERIFICATION or host in self._invalid:
            return False
        self._invalid[host] = message
        self._multi.remove_handle(handle)
        self._verify(handle, False)
        self._multi.add_handle(handle)
        return True

    @staticmethod
    def _verify(handle: Any, verify: bool) -> None:
        handle.setopt(pycurl.SSL_VERIFYPEER, int(verify))
        handle.setopt(pycurl.SSL_VERIFYHOST, 2 if verify else 0)

    def _answer(self, handle: Any, code: int, message: str) -> EngineAnswer:
        slot = self._active.pop(handle)
        answer = self._read_answer(slot, code, message)
        self._multi.remove_handle(handle)
        self._free.append(slot)
        return answer

    def _read_answer(self, slot: _Slot, code: int, message: str) -> EngineAnswer:
        handle, request = slot.handle, slot.request
        is_ftp = request.url.startswith("ftp:")
        new_connection = handle.getinfo(pycurl.NUM_CONNECTS) > 0
        answer = EngineAnswer(
            request=request,
            started_at=slot.started_at,
            ended_at=self._clock.now(),
            body=slot.body,
            status=None if is_ftp else (handle.getinfo(pycurl.RESPONSE_CODE) or None),
            request_head=b"" if is_ftp else self._settings.request_head(request),
            response_head=b"" if is_ftp else b"".join(slot.lines),
            tls_problem=self._invalid.get(request.host, "") if self._invalid else "",
            ip=handle.getinfo(pycurl.PRIMARY_IP) or None,
            dns_seconds=handle.getinfo(pycurl.NAMELOOKUP_TIME) if new_connection else None,
            connect_seconds=handle.getinfo(pycurl.CONNECT_TIME) if new_connection else None,
            first_byte_seconds=handle.getinfo(pycurl.STARTTRANSFER_TIME) or None,
            total_seconds=handle.getinfo(pycurl.TOTAL_TIME),
        )
        if code:
            self._explain(answer, slot, code, message)
        elif not slot.head_complete and not is_ftp:
            self._explain(answer, slot, pycurl.E_GOT_NOTHING, "The connection was closed inside the response head.")
        return answer

    def _explain(self, answer: EngineAnswer, slot: _Slot, code: int, message: str) -> None:
        """Turn a libcurl error into an outcome or a reason for truncation."""
        answered = slot.head_complete or (answer.request.url.startswith("ftp:") and answer.body.size_bytes > 0)
        answer.detail = (message or f"libcurl error {code}")[:500]
        if code == pycurl.E_WRITE_ERROR and answer.body.cut:
            answer.truncated = TruncatedReason.LENGTH
            answer.detail = ""
            return
        if slot.refusal and not answered:
            answer.failure, answer.detail = Outcome.ADDRESS_REFUSED, slot.refusal
        elif slot.header_bytes > self._settings.max_header_bytes:
            answer.failure = Outcome.PROTOCOL_ERROR
            answer.detail = f"The response headers passed {self._settings.max_header_bytes:,} bytes."
        elif code == pycurl.E_OPERATION_TIMEDOUT:
            answer.failure = Outcome.TIMEOUT
            answer.truncated = TruncatedReason.TIME if answered else None
        elif answered and code not in _TLS_ERRORS:
            answer.truncated = TruncatedReason.DISCONNECT
        else:
            answer.failure = _FAILURES.get(code, Outcome.CONNECT_ERROR)
        if answer.failure and not slot.lines and not slot.handle.getinfo(pycurl.CONNECT_TIME):
            answer.ip = None  # libcurl still tells the one of the request before
        if not slot.head_complete:
            answer.status = None
            answer.response_head = b""

    def _new_slot(self) -> _Slot:
        settings = self._settings
        slot = _Slot(settings.max_header_bytes)
        handle = slot.handle
        options: dict[int, Any] = {
            pycurl.NOSIGNAL: 1,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS | pycurl.PROTO_FTP,
            pycurl.FOLLOWLOCATION: 0,
            pycurl.HTTP_VERSION: _HTTP_VERSIONS[settings.http_version],
            pycurl.HTTP09_ALLOWED: 0,
            pycurl.HTTP_TRANSFER_DECODING: 1,
            pycurl.PATH_AS_IS: 1,
            pycurl.NETRC: pycurl.NETRC_IGNORED,
            pycurl.PROXY: settings.proxy,
            pycurl.NOPROXY: "",
            pycurl.HEADEROPT: pycurl.HEADER_SEPARATE,
            _SUPPRESS_CONNECT_HEADERS: 1,
            pycurl.CONNECTTIMEOUT_MS: _milliseconds(settings.connect_timeout_seconds),
            pycurl.TIMEOUT_MS: _milliseconds(settings.total_timeout_seconds),
            pycurl.LOW_SPEED_LIMIT: 1,
            pycurl.LOW_SPEED_TIME: max(1, round(settings.read_timeout_seconds)),
            # Not 0: the addresses handed over with a request live in that cache, too.
            pycurl.DNS_CACHE_TIMEOUT: max(1, int(settings.dns_ttl_seconds)),
            pycurl.BUFFERSIZE: _RECEIVE_BYTES,
            pycurl.SSL_VERIFYPEER: 1,
            pycurl.SSL_VERIFYHOST: 2,
            pycurl.CAINFO: certificate_file(),
            pycurl.HEADERFUNCTION: slot.on_header,
            pycurl.OPENSOCKETFUNCTION: self._guarded_socket(slot),
        }
        for option, value in options.items():
            handle.setopt(option, value)
        return slot

    def _guarded_socket(self, slot: _Slot) -> Callable[[int, tuple[int, int, int, Any]], Any]:
        policy = self._settings.policy

        def open_socket(purpose: int, address: tuple[int, int, int, Any]) -> Any:
            family, kind, protocol, where = address
            if family not in (socket.AF_INET, socket.AF_INET6):
                slot.refusal = "Only IP connections are made."
                return pycurl.SOCKET_BAD
            refusal = policy.connect_refusal(where[0])
            if refusal is not None:
                slot.refusal = refusal
                return pycurl.SOCKET_BAD
            return _Handed(socket.socket(family, kind, protocol))

        return open_socket

    def _on_socket(self, what: int, descriptor: int, multi: Any, data: Any) -> None:
        self._sockets.watch(descriptor, 0 if what == pycurl.POLL_REMOVE else what)

    def _on_timer(self, milliseconds: int) -> None:
        self._timer_at = None if milliseconds < 0 else self._clock.monotonic_seconds() + milliseconds / 1000


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _resolve_line(request: EngineRequest) -> str:
    """CURLOPT_RESOLVE's form; the plus lets the entry age like any other answer."""
    authority = request.host.rpartition("@")[2]
    name, _, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
    if not name or not port.isdigit():
        name, port = authority, {"http": "80", "https": "443", "ftp": "21"}[request.url.partition(":")[0]]
    addresses = ",".join(f"[{address}]" if ":" in address else address for address in request.addresses)
    return f"+{name}:{port}:{addresses}"
