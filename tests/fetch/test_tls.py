"""https against a real TLS server: valid, expired, self-signed and foreign certificates; the policy decides."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recrawl.fetch.work import PlannedUrl
from recrawl.warc.check import check_warc
from tests.archive.hostile import Archive
from tests.fetch.certificates import Authority
from tests.fetch.crawl import configuration, fetch, plan_of, rows, settled_once, task_of

HOSTS = ("good.test", "expired.test", "selfsigned.test", "foreign.test")


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"User-agent: *\nDisallow: /x\n" if self.path == "/robots.txt" else b"<p>by TLS</p>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that refuses the certificate is what is tested."""


@contextmanager
def https_server(certificate: Path) -> Iterator[int]:
    """A TLS server on loopback; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = _Server(("127.0.0.1", 0), _Page)
    # The handshake belongs to the thread of its connection, not to the one that accepts.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PlannedUrl]]:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    certificates = (
        authority.issue("good.test"), authority.issue("expired.test", expired=True),
        authority.issue("selfsigned.test", self_signed=True), authority.issue("another.test"),
    )  # fmt: skip
    (tmp_path / "hosts").write_text(f"127.0.0.1 {' '.join(HOSTS)}\n")
    with (
        https_server(certificates[0]) as good,
        https_server(certificates[1]) as expired,
        https_server(certificates[2]) as selfsigned,
        https_server(certificates[3]) as foreign,
    ):
        ports = (good, expired, selfsigned, foreign)
        yield plan_of(f"https://{host}:{port}/page" for host, port in zip(HOSTS, ports, strict=True))


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_invalid_certificates_are_refused_and_told(plan: list[PlannedUrl], tmp_path: Path, engine: str) -> None:
    settings = configuration(tmp_path / "root", tmp_path / "hosts", engine=engine)
    fetch(task_of(settings), plan)
    found = {row["host"].partition(":")[0]: row["outcome"] for row in rows(settings, "fetches")}
    assert found == {"good.test": "ok"} | dict.fromkeys(HOSTS[1:], "robots_unavailable")
    details = {row["host"].partition(":")[0]: row["detail"] or "" for row in rows(settings, "fetches")}
    assert "expired" in details["expired.test"]
    assert "self" in details["selfsigned.test"]
    assert "another.test" in details["foreign.test"] or "match" in details["foreign.test"]
    assert settled_once(settings, plan)
    (row,) = rows(settings, "warc_files")
    assert check_warc(tmp_path / "root" / row["warc_file"]) == []


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_configuration_may_accept_them(plan: list[PlannedUrl], tmp_path: Path, engine: str) -> None:
    settings = configuration(tmp_path / "root", tmp_path / "hosts", engine=engine, verify_tls=False)
    fetch(task_of(settings), plan)
    assert {row["outcome"] for row in rows(settings, "fetches")} == {"ok"}
    assert settled_once(settings, plan)
    details = {row["host"].partition(":")[0]: row["detail"] or "" for row in rows(settings, "fetches")}
    assert details["good.test"] == ""
    for host, word in (("expired.test", "expired"), ("selfsigned.test", "self"), ("foreign.test", "match")):
        assert details[host].startswith("Certificate accepted though invalid: ")
        assert word in details[host] or "another.test" in details[host]
    told = {
        record.url.split("/")[2].partition(":")[0]: record.fields.get("invalidCertificate", "")
        for record in Archive(settings).records()
        if record.type == "metadata"
    }
    assert [bool(told[host]) for host in HOSTS] == [False, True, True, True]
