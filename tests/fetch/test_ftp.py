"""ftp by libcurl, whichever engine http uses; the guard holds for data connections too."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fetch.crawl import configuration, fetch, plan_of, rows, settled_once, task_of

_RULES = b"User-agent: *\nDisallow: /private\n"
_FILES = {"/file.txt": b"a file\n", "/private/x.txt": b"hidden\n", "/robots.txt": _RULES}
_LISTING = b"-rw-r--r-- 1 ftp ftp 7 Jan 01 00:00 file.txt\r\n"


class FtpServer:
    """One client at a time, passive mode, three files and a listing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.asked: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        folder = ""
        data: socket.socket | None = None
        connection.sendall(b"220 ready\r\n")
        for line in connection.makefile("r", newline="\r\n"):
            command, _, argument = line.strip().partition(" ")
            if command == "CWD":
                folder = argument if argument.startswith("/") else f"{folder}/{argument}"
                connection.sendall(b"250 ok\r\n")
            elif command == "EPSV":
                data = socket.create_server(("127.0.0.1", 0))
                connection.sendall(b"229 Entering (|||%d|)\r\n" % data.getsockname()[1])
            elif command in ("RETR", "LIST"):
                self._transfer(connection, data, command, f"{folder.rstrip('/')}/{argument}")
                data = None
            elif command == "SIZE":
                connection.sendall(b"500 no\r\n")
            else:
                answers = {"USER": b"331 password?", "PASS": b"230 in", "PWD": b'257 "/" here', "QUIT": b"221 bye"}
                connection.sendall(answers.get(command, b"200 ok") + b"\r\n")

    def _transfer(self, connection: socket.socket, data: socket.socket | None, command: str, path: str) -> None:
        assert data is not None
        self.asked.append(f"{command} {path}")
        content = _LISTING if command == "LIST" else _FILES.get(path)
        with data:
            if content is None:
                connection.sendall(b"550 no such file\r\n")
                return
            connection.sendall(b"150 here\r\n")
            channel, _ = data.accept()
            with channel:
                channel.sendall(content)
        connection.sendall(b"226 done\r\n")


@pytest.fixture
def server() -> Iterator[FtpServer]:
    running = FtpServer()
    yield running
    running.close()


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_files_listings_and_robots(server: FtpServer, tmp_path: Path, engine: str) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 ftp.test\n")
    settings = configuration(tmp_path, hosts, engine=engine)
    paths = ("/file.txt", "/", "/missing.txt", "/private/x.txt")
    plan = plan_of(f"ftp://ftp.test:{server.port}{path}" for path in paths)
    fetch(task_of(settings), plan)
    found = {row["url"].rpartition(str(server.port))[2]: row for row in rows(settings, "fetches")}
    assert {path: row["outcome"] for path, row in found.items()} == {
        "/file.txt": "ok", "/": "ok", "/missing.txt": "not_found", "/private/x.txt": "robots_denied",
    }  # fmt: skip
    assert (found["/file.txt"]["bytes_body"], found["/file.txt"]["mime_sniffed"]) == (7, "text/plain")
    assert found["/"]["bytes_body"] == len(_LISTING) - 1  # libcurl asks for listings as text, lines end in LF
    assert server.asked[0] == "RETR /robots.txt"
    assert not any("private" in line for line in server.asked)
    assert settled_once(settings, plan)
