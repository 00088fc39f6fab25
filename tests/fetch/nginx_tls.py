"""nginx with TLS and HTTP/2 on loopback: a server of HTTP/2 that nobody here wrote."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.documentation import nginx_program

_START_SECONDS = 20.0


@contextmanager
def http2_server(folder: Path, host: str, certificate: Path, robots: str = "User-agent: *\n") -> Iterator[int]:
    """Serves `folder`/web as `host` by HTTP/2, and HTTP/1.1 to who asks for that; its port.

    `access.log` in `folder` has protocol, path and status of each request. `/moved` redirects to
    `/page.html`, `/gone` answers 410.
    """
    nginx = nginx_program()
    assert nginx is not None
    (folder / "web").mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    (folder / "nginx.conf").write_text(_configuration(folder, host, port, certificate, robots), encoding="utf-8")
    command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(port, process, folder)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def protocols(folder: Path) -> list[tuple[str, str, int]]:
    """(protocol, path, status) of every request so far."""
    lines = (folder / "access.log").read_text(encoding="utf-8").splitlines()
    return [(protocol, path, int(status)) for protocol, path, status in (line.split() for line in lines)]


def _wait(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nginx does not start: {(folder / 'error.log').read_text()[-2000:]}")


def _configuration(folder: Path, host: str, port: int, certificate: Path, robots: str) -> str:
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"    {name}_temp_path {folder}/{name};" for name in names)
    lines = robots.replace("\n", "\\n")
    return f"""daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 128; }}
http {{
{temporary}
    types {{ text/html html; text/plain txt; }}
    default_type application/octet-stream;
    log_format spoken "$server_protocol $request_uri $status";
    access_log {folder}/access.log spoken;
    gzip on; gzip_types text/plain; gzip_min_length 100;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        server_name {host};
        root {folder}/web;
        ssl_certificate {certificate};
        ssl_certificate_key {certificate};
        location = /robots.txt {{ default_type text/plain; return 200 "{lines}"; }}
        location = /moved {{ return 301 /page.html; }}
        location = /gone {{ return 410; }}
    }}
}}
"""
