"""The contract of an HTTP engine: each of them passes the same tests."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from recrawl.clock import SystemClock
from recrawl.fetch.body import Body
from recrawl.fetch.curl_engine import CurlEngine
from recrawl.fetch.engine import Engine, EngineAnswer, EngineRequest, EngineSettings
from recrawl.fetch.guard import AddressPolicy
from recrawl.fetch.requests_engine import RequestsEngine
from recrawl.tables.vocabulary import Outcome, TruncatedReason
from tests.fetch.crawl import logged
from tests.web import MisbehavingWeb

HOST = "a.test"
MAX_BYTES = 1 << 20

Maker = Callable[..., Engine]

#: Bodies of the answers to one test, closed at its end.
_bodies: list[Body] = []


@pytest.fixture(scope="module")
def web() -> Iterator[MisbehavingWeb]:
    with MisbehavingWeb([HOST, "b.test"]) as server:
        yield server


@pytest.fixture(params=[CurlEngine, RequestsEngine], ids=["curl", "requests"])
def make(request: pytest.FixtureRequest) -> Iterator[Maker]:
    made: list[Engine] = []

    def make_engine(**changes: Any) -> Engine:
        values: dict[str, Any] = {
            "user_agent": "recrawl/0.1 (+test)",
            "policy": AddressPolicy(["127.0.0.0/8", "::1/128"], has_contact=False),
            "connect_timeout_seconds": 2,
            "read_timeout_seconds": 1,
            "total_timeout_seconds": 2,
            "max_header_bytes": 64 * 1024,
            "max_connections": 20,
            "verify_tls": True,
        }
        engine: Engine = request.param(EngineSettings(**(values | changes)), SystemClock())
        made.append(engine)
        return engine

    yield make_engine
    for engine in made:
        engine.close()
    while _bodies:
        _bodies.pop().close()


def request_for(web: MisbehavingWeb, path: str, **fields: Any) -> EngineRequest:
    values: dict[str, Any] = {"max_bytes": MAX_BYTES, "addresses": ("127.0.0.1",)}
    return EngineRequest(web.url(HOST, path), f"{HOST}:{web.port}", **(values | fields))


def ask(engine: Engine, *requests: EngineRequest) -> list[EngineAnswer]:
    """The answers, in the order of the requests."""
    for request in requests:
        engine.submit(request)
    answers: list[EngineAnswer] = []
    while engine.in_flight:
        answers += engine.poll(5)
    _bodies.extend(answer.body for answer in answers)
    return sorted(answers, key=lambda answer: [id(request) for request in requests].index(id(answer.request)))


def bytes_of(answer: EngineAnswer) -> bytes:
    return b"".join(answer.body.pieces())


def test_an_ordinary_answer(make: Maker, web: MisbehavingWeb) -> None:
    before = datetime.now(UTC)
    (answer,) = ask(make(), request_for(web, "/page/1.html"))
    assert (answer.failure, answer.status, answer.truncated, answer.detail) == (None, 200, None, "")
    assert answer.response_head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.response_head.endswith(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % answer.body.size_bytes in answer.response_head
    assert b"<html" in bytes_of(answer)
    assert answer.ip == "127.0.0.1"
    assert before <= answer.started_at <= answer.ended_at <= datetime.now(UTC)
    assert answer.connect_seconds is not None
    assert 0 < (answer.first_byte_seconds or 0) <= answer.total_seconds < 2


def test_the_recorded_request_is_the_one_sent_but_for_secrets(make: Maker) -> None:
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                received.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        request = EngineRequest(
            f"http://a.test:{port}/x;y/%7E?q=a%20b&c=%C3%A9#part", f"a.test:{port}", 100,
            headers=(("If-None-Match", '"tag"'),), secret_headers=(("Authorization", "Basic c2VjcmV0"),),
            addresses=("127.0.0.1",),
        )  # fmt: skip
        (answer,) = ask(make(), request)
        thread.join()
    assert answer.status == 204
    assert b"c2VjcmV0" not in answer.request_head
    assert answer.request_head.replace(b"(withheld)", b"Basic c2VjcmV0") == received[0]
    assert received[0].startswith(b"GET /x;y/%7E?q=a%20b&c=%C3%A9 HTTP/1.1\r\n")
    assert b"\r\nAccept-Encoding: gzip, br, zstd, deflate\r\n" in received[0]


def test_a_connection_is_kept(make: Maker, web: MisbehavingWeb) -> None:
    engine = make()
    web.clear_log()
    for number in (1, 2, 3):
        ask(engine, request_for(web, f"/page/{number}.html"))
    assert len({hit.connection for hit in logged(web, 3)}) == 1


def test_many_requests_at_once(make: Maker, web: MisbehavingWeb) -> None:
    requests = [request_for(web, f"/odd/slow?seconds=0.3&n={number}") for number in range(10)]
    begin = SystemClock().monotonic_seconds()
    answers = ask(make(), *requests)
    assert [answer.status for answer in answers] == [200] * 10
    assert SystemClock().monotonic_seconds() - begin < 2


@pytest.mark.parametrize("path", ["/odd/redirect?to=/page/1.html", "/odd/redirect-bytes", "/odd/cookie-wall"])
def test_redirects_are_not_followed_and_cookies_not_kept(make: Maker, web: MisbehavingWeb, path: str) -> None:
    engine = make()
    web.clear_log()
    assert [ask(engine, request_for(web, path))[0].status for _ in range(2)] == [302, 302]
    assert [hit.path for hit in logged(web, 2)] == [path, path]
    assert all(hit.header("cookie") is None for hit in web.hits(HOST))


@pytest.mark.parametrize(
    ("path", "failure"),
    [
        ("/odd/hang", Outcome.TIMEOUT),
        ("/odd/drop", Outcome.CONNECT_ERROR),
        ("/odd/drop-in-head", Outcome.CONNECT_ERROR),
        ("/odd/http09", Outcome.PROTOCOL_ERROR),
        ("/odd/nonsense", Outcome.PROTOCOL_ERROR),
        ("/odd/two-lengths", Outcome.PROTOCOL_ERROR),
        ("/odd/large-headers?kb=100", Outcome.PROTOCOL_ERROR),
        ("/odd/endless-headers?mb=50", Outcome.PROTOCOL_ERROR),
    ],
)
def test_failures(make: Maker, web: MisbehavingWeb, path: str, failure: Outcome) -> None:
    (answer,) = ask(make(), request_for(web, path))
    assert (answer.failure, answer.status, answer.response_head) == (failure, None, b"")
    assert answer.detail


@pytest.mark.parametrize(
    ("path", "failure", "truncated"),
    [
        ("/odd/partial", None, TruncatedReason.DISCONNECT),
        ("/odd/reset", None, TruncatedReason.DISCONNECT),
        ("/odd/cut-chunks", None, TruncatedReason.DISCONNECT),
        ("/odd/broken-chunks", None, TruncatedReason.DISCONNECT),
        ("/odd/stall", Outcome.TIMEOUT, TruncatedReason.TIME),
        ("/odd/drip?bytes=100&pause=0.1", Outcome.TIMEOUT, TruncatedReason.TIME),
        ("/odd/huge?mb=2", None, TruncatedReason.LENGTH),
        ("/odd/endless?mb=200", None, TruncatedReason.LENGTH),
    ],
)
def test_a_body_that_breaks_off_is_kept_as_far_as_it_came(
    make: Maker, web: MisbehavingWeb, path: str, failure: Outcome | None, truncated: TruncatedReason
) -> None:
    (answer,) = ask(make(), request_for(web, path))
    assert (answer.failure, answer.status, answer.truncated) == (failure, 200, truncated)
    assert answer.body.size_bytes > 0
    assert answer.response_head.startswith(b"HTTP/1.1 200")
    if truncated is TruncatedReason.LENGTH:
        assert answer.body.size_bytes == MAX_BYTES


@pytest.mark.parametrize(
    "path",
    ["/odd/no-length", "/odd/chunked", "/odd/http10", "/odd/bare-lf", "/odd/interim", "/odd/odd-headers", "/odd/auth"],
)
def test_odd_but_whole_answers(make: Maker, web: MisbehavingWeb, path: str) -> None:
    (answer,) = ask(make(), request_for(web, path))
    assert (answer.failure, answer.truncated) == (None, None)
    assert answer.status == (401 if path == "/odd/auth" else 200)
    assert answer.response_head.count(b"HTTP/1.") == 1
    assert not bytes_of(answer).startswith(b"3db\r\n")


def test_the_content_encoding_is_left_on(make: Maker, web: MisbehavingWeb) -> None:
    (answer,) = ask(make(), request_for(web, "/odd/encoded?as=gzip"))
    assert bytes_of(answer).startswith(b"\x1f\x8b")


@pytest.mark.parametrize("path", ["/odd/empty", "/odd/no-content", "/odd/always-304"])
def test_answers_without_body(make: Maker, web: MisbehavingWeb, path: str) -> None:
    (answer,) = ask(make(), request_for(web, path))
    assert (answer.failure, answer.truncated, bytes_of(answer)) == (None, None, b"")


def test_secrets_are_sent(make: Maker, web: MisbehavingWeb) -> None:
    secret = (("Authorization", "Basic dXNlcjpzZWNyZXQ="),)
    assert ask(make(), request_for(web, "/odd/auth", secret_headers=secret))[0].status == 200


def test_the_guard_is_asked_with_the_resolved_address(make: Maker, web: MisbehavingWeb) -> None:
    refusing = make(policy=AddressPolicy(["10.0.0.0/8"], has_contact=True))
    web.clear_log()
    (answer,) = ask(refusing, request_for(web, "/page/1.html"))
    assert (answer.failure, answer.status, answer.ip) == (Outcome.ADDRESS_REFUSED, None, None)
    assert "127.0.0.1 is a loopback address" in answer.detail
    assert web.log == []


def test_a_name_that_the_system_resolves_is_guarded_too(make: Maker, web: MisbehavingWeb) -> None:
    request = EngineRequest(f"http://localhost:{web.port}/", f"localhost:{web.port}", MAX_BYTES)
    (answer,) = ask(make(policy=AddressPolicy([], has_contact=True)), request)
    assert answer.failure is Outcome.ADDRESS_REFUSED


def test_of_mixed_addresses_the_allowed_one_is_used(make: Maker, web: MisbehavingWeb) -> None:
    policy = AddressPolicy(["127.0.0.1/32"], has_contact=False)
    (answer,) = ask(make(policy=policy), request_for(web, "/page/1.html", addresses=("10.9.9.9", "127.0.0.1")))
    assert (answer.status, answer.ip) == (200, "127.0.0.1")


def test_names_and_ports_that_lead_nowhere(make: Maker) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        refused = EngineRequest(f"http://a.test:{port}/", f"a.test:{port}", 100, addresses=("127.0.0.1",))
        nameless = EngineRequest("http://does-not-exist.invalid/", "does-not-exist.invalid", 100)
        answers = ask(make(), refused, nameless)
    assert [answer.failure for answer in answers] == [Outcome.CONNECT_ERROR, Outcome.DNS_ERROR]


def test_closing_waits_for_nobody(make: Maker, web: MisbehavingWeb) -> None:
    with socket.socket() as deaf, contextlib.ExitStack() as stack:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        for _ in range(3):  # its queue is full now: a further connection is never made
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        engine = make(connect_timeout_seconds=30, read_timeout_seconds=30, total_timeout_seconds=60)
        engine.submit(EngineRequest(f"http://a.test:{port}/", f"a.test:{port}", 100, addresses=("127.0.0.1",)))
        engine.submit(request_for(web, "/odd/hang"))
        engine.poll(0.3)
        begin = SystemClock().monotonic_seconds()
        engine.close()
        assert SystemClock().monotonic_seconds() - begin < 3


def test_a_proxy_gets_the_request(make: Maker, web: MisbehavingWeb) -> None:
    engine = make(proxy=f"http://127.0.0.1:{web.port}", policy=AddressPolicy([], has_contact=True, proxied=True))
    web.clear_log()
    request = EngineRequest("http://b.test/page/1.html", "b.test", MAX_BYTES)
    (answer,) = ask(engine, request)
    assert answer.request_head.startswith(b"GET http://b.test/page/1.html HTTP/1.1\r\nHost: b.test\r\n")
    assert [hit.path for hit in logged(web, 1)] == ["http://b.test/page/1.html"]


def test_polling_an_idle_engine_waits_for_nothing(make: Maker) -> None:
    engine = make()
    assert engine.in_flight == 0
    assert engine.poll(0.0) == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for a.test with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize(("verify", "failure", "status"), [(True, Outcome.TLS_ERROR, None), (False, None, 200)])
def test_a_self_signed_certificate(
    make: Maker, certificate: Path, verify: bool, failure: Outcome | None, status: int | None
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            # Where it is accepted, it is refused first: only so is it known what is wrong.
            for _ in range(1 if verify else 2):
                connection, _ = server.accept()
                try:
                    with context.wrap_socket(connection, server_side=True) as secured:
                        received.append(secured.recv(65_536))
                        secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                except OSError:
                    connection.close()  # the client would not have the certificate

        thread = threading.Thread(target=serve)
        thread.start()
        request = EngineRequest(f"https://{HOST}:{port}/", f"{HOST}:{port}", 100, addresses=("127.0.0.1",))
        (answer,) = ask(make(verify_tls=verify), request)
        thread.join()
    assert (answer.failure, answer.status) == (failure, status)
    assert bool(answer.tls_problem) == (not verify)
    assert len([data for data in received if data]) == (0 if verify else 1)


def test_curl_drops_what_is_in_flight_when_closed(web: MisbehavingWeb) -> None:
    policy = AddressPolicy(["127.0.0.0/8"], has_contact=False)
    engine = CurlEngine(EngineSettings("ua", policy, 1, 1, 5, 1000, 5, True), SystemClock())
    engine.submit(request_for(web, "/odd/hang"))
    assert engine.poll(0.1) == []
    engine.close()
    assert engine.in_flight == 0
