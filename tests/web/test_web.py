"""The test web itself: it misbehaves as its README says, and its audit sees what clients do."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.web import Audit, Hit, MisbehavingWeb
from tests.web.behaviours import BEHAVIOURS


def get(web: MisbehavingWeb, host: str, path: str, **headers: str) -> http.client.HTTPResponse:
    """The answer to one request, its body read and kept in `.content`."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=5)
    try:
        sent = {"Host": f"{host}:{web.port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers=sent)
        response = connection.getresponse()
        response.content = response.read()  # type: ignore[attr-defined]
        return response
    finally:
        connection.close()


def raw(web: MisbehavingWeb, path: str, max_bytes: int = 1 << 20) -> bytes:
    """All bytes of an answer, as they come."""
    with socket.create_connection(("127.0.0.1", web.port), timeout=5) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: alpha.test\r\nConnection: close\r\n\r\n".encode())
        data = b""
        try:
            while len(data) < max_bytes and (piece := connection.recv(65_536)):
                data += piece
        except ConnectionResetError:
            data += b"<reset>"
        return data


def test_all_pages_are_linked_from_the_front_page() -> None:
    with MisbehavingWeb(["a.test"], pages=30) as web:
        seen, waiting = set(), ["/"]
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen.add(path)
                body = get(web, "a.test", path).content  # type: ignore[attr-defined]
                waiting += re.findall(r'href="(/page/\d+\.html)"', body.decode())
        assert seen == {"/", *(f"/page/{number}.html" for number in range(1, 30))}
        assert get(web, "a.test", "/page/30.html").status == 404
        assert get(web, "unknown.test", "/").status == 421


def test_pages_change_when_told_and_answer_304_otherwise() -> None:
    with MisbehavingWeb() as web:
        first = get(web, "alpha.test", "/page/1.html")
        etag, modified = first.headers["ETag"], first.headers["Last-Modified"]
        assert get(web, "alpha.test", "/page/1.html", If_None_Match=etag).status == 304
        assert get(web, "alpha.test", "/page/1.html", If_Modified_Since=modified).status == 304
        web.change("alpha.test", "/page/1.html")
        second = get(web, "alpha.test", "/page/1.html", If_None_Match=etag, If_Modified_Since=modified)
        assert second.status == 200
        assert second.content != first.content  # type: ignore[attr-defined]
        web.change("alpha.test", "/page/1.html", b"new", status=410)
        assert get(web, "alpha.test", "/page/1.html").status == 410
        web.change("alpha.test", "/page/1.html", behaviour="/odd/status?code=429&retry_after=7")
        assert get(web, "alpha.test", "/page/1.html").headers["Retry-After"] == "7"


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/odd/drop", rb""),
        ("/odd/reset", rb"HTTP/1.1 200.*<reset>"),
        ("/odd/drop-in-head", rb"HTTP/1.1 200 OK\r\nContent-Ty"),
        ("/odd/partial", rb"HTTP/1.1 200 .*Content-Length: \d{3,}\r\n\r\n.{500}"),
        ("/odd/broken-chunks", rb".*\r\nnonsense\r\n"),
        ("/odd/cut-chunks", rb".*ff\r\n.{50}"),
        ("/odd/http09", rb"<!DOCTYPE.*"),
        ("/odd/bare-lf", rb"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: \d+\n\n.*"),
        ("/odd/interim", rb"HTTP/1.1 103 .*\r\n\r\nHTTP/1.1 200 .*"),
        ("/odd/redirect-bytes", rb"HTTP/1.1 302 .*\xff\xfe.*"),
        ("/odd/encoded?as=br", rb".*Content-Encoding: br\r\n.*"),
        ("/odd/loop?step=2", rb".*Location: /odd/loop\?step=0\r\n.*"),
        ("/odd/status?code=503&retry_date=5", rb"HTTP/1.1 503 .*Retry-After: \w{3}, \d\d .* GMT\r\n.*"),
        ("/odd/charset?name=koi8-r&declare=none", rb".*Content-Type: text/html\r\n.*\xf3\xdf\xc5\xdb\xd8.*"),
    ],
)
def test_answers_are_as_bad_as_said(path: str, pattern: bytes) -> None:
    with MisbehavingWeb() as web:
        assert re.fullmatch(pattern, raw(web, path), re.DOTALL)


def test_every_behaviour_ends_when_the_client_leaves() -> None:
    with MisbehavingWeb() as web:
        for path in BEHAVIOURS:
            with socket.create_connection(("127.0.0.1", web.port), timeout=5) as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: alpha.test\r\n\r\n".encode())
                connection.settimeout(0.05)
                try:
                    connection.recv(100)
                except (TimeoutError, ConnectionResetError):
                    continue
        started = time.monotonic()
    assert time.monotonic() - started < 5
    assert {hit.path for hit in web.log} == set(BEHAVIOURS)


def test_endless_answers_do_not_end() -> None:
    with MisbehavingWeb() as web:
        for path in ("/odd/endless", "/odd/endless-headers", "/odd/huge?mb=50"):
            assert len(raw(web, path, max_bytes=8 << 20)) >= 8 << 20
        web.site("alpha.test", robots_behaviour="/odd/robots-endless")
        assert len(raw(web, "/robots.txt", max_bytes=8 << 20)) >= 8 << 20


def test_the_readme_lists_every_behaviour() -> None:
    readme = (Path(__file__).parent / "README.md").read_text()
    listed = re.findall(r"^\| `(/odd/[a-z0-9-]+)", readme, re.MULTILINE)
    assert sorted(listed) == sorted(BEHAVIOURS)


def test_hosts_have_their_addresses(tmp_path: Path) -> None:
    with MisbehavingWeb(["a.test", "b.test"], own_addresses=True) as web:
        web.site("c.test", address="127.0.2.9")
        text = web.hosts_file(tmp_path / "hosts").read_text()
        assert text == "127.0.1.1 a.test\n127.0.1.2 b.test\n127.0.2.9 c.test\n"
        with socket.create_connection(("127.0.2.9", web.port), timeout=5) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: c.test\r\nConnection: close\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
            while connection.recv(65_536):
                continue
        assert web.hits("c.test", "/")[0].address == "127.0.2.9"


def test_the_audit_of_real_requests() -> None:
    with MisbehavingWeb() as web:
        web.site("alpha.test", robots="User-agent: *\nDisallow: /page/2\n", delay_seconds=0.1)
        threads = [threading.Thread(target=get, args=(web, "alpha.test", "/page/1.html")) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        get(web, "alpha.test", "/robots.txt")
        get(web, "alpha.test", "/page/2.html")
        time.sleep(0.05)
        audit = web.audit()
    assert audit.max_concurrency() == {"alpha.test": 3}
    assert audit.min_gap_seconds()["alpha.test"] < 0
    assert [hit.path for hit in audit.content_before_robots()] == ["/page/1.html"] * 3
    assert [hit.path for hit in audit.disallowed_hits("recrawl")] == ["/page/2.html"]
    assert audit.repeated() == {("alpha.test", "/page/1.html"): 3}


def test_gaps_run_from_end_to_start() -> None:
    def hit(started: float, ended: float, host: str = "a.test") -> Hit:
        return Hit(host, "127.0.0.1", 1, "GET", f"/{started}", (), 200, started, ended, 0, False)

    audit = Audit([hit(4.0, 5.0), hit(0.0, 3.0), hit(8.0, 9.0), hit(6.0, 6.5, "b.test")], {}, 80)
    assert audit.min_gap_seconds() == {"a.test": 1.0}
    assert audit.min_gap_seconds_by_address() == {"127.0.0.1": 1.0}
    assert audit.max_concurrency() == {"a.test": 1, "b.test": 1}
    # A long answer hides the short one inside it.
    assert Audit([hit(0.0, 9.0), hit(1.0, 2.0), hit(5.0, 6.0)], {}, 80).min_gap_seconds() == {"a.test": -8.0}


def test_it_runs_by_hand_and_stops_cleanly(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.web",
        "--port",
        "0",
        "--write-hosts",
        str(tmp_path / "hosts"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://alpha.test:")
        assert "alpha.test" in (tmp_path / "hosts").read_text()
        process.terminate()
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")
