"""The sample web of the product: linked, deterministic, and quiet when it stops."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recrawl.errors import EnvironmentFaultError
from recrawl.sampleweb import SampleWeb


def get(port: int, host: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"Host": f"{host}:{port}", **headers})
        response = connection.getresponse()
        return response.status, dict(response.headers), response.read()
    finally:
        connection.close()


def crawl(web: SampleWeb) -> dict[tuple[str, str], int]:
    """Every (host, path) that links and redirects lead to from the first seed, with its status."""
    found: dict[tuple[str, str], int] = {}
    waiting = [("garden.sample.test", "/")]
    while waiting:
        host, path = waiting.pop()
        if (host, path) in found:
            continue
        status, headers, body = get(web.port, host, path)
        found[host, path] = status
        links = [*re.findall(r'<a href="([^"]+)"', body.decode()), headers.get("Location", "")]
        for link in filter(None, links):
            absolute = re.fullmatch(r"http://([^:]+):\d+(/.*)", link)
            waiting.append((absolute[1], absolute[2]) if absolute else (host, link))
    return found


def test_all_sites_are_reached_from_one_seed() -> None:
    with SampleWeb(edition=1) as web:
        found = crawl(web)
        hosts = {host for host, _ in found}
        assert hosts == set(web.hosts())
        assert len(hosts) == 8
        for host in hosts:
            articles = [path for name, path in found if name == host and path.startswith("/articles/")]
            assert len(articles) >= 20
            assert found[host, "/missing"] == 404
        assert set(found.values()) == {200, 301, 404}


def test_what_a_crawler_should_meet() -> None:
    with SampleWeb(edition=1) as web:
        host = "garden.sample.test"
        article = get(web.port, host, "/articles/3")
        assert get(web.port, host, "/print/3")[2] == article[2]
        assert get(web.port, host, "/old/3")[1]["Location"] == f"http://{host}:{web.port}/articles/3"
        assert get(web.port, host, "/articles/3", **{"If-None-Match": article[1]["ETag"]})[0] == 304
        assert b"Disallow: /private/" in get(web.port, host, "/robots.txt")[2]
        assert b"Crawl-delay: 0.2" in get(web.port, "kueche.sample.test", "/robots.txt")[2]
        assert get(web.port, "library.sample.test", "/robots.txt")[0] == 404
        assert get(web.port, host, "/sitemap.xml")[2].count(b"<loc>") == 23
        assert get(web.port, "unknown.test", "/")[0] == 421


def test_some_pages_change_with_the_edition_and_the_others_never() -> None:
    bodies = []
    for edition in (1, 1, 2):
        with SampleWeb(edition=edition) as web:
            places = [
                ("garden.sample.test", "/news"),
                ("weather.sample.test", "/articles/1"),
                ("bosco.sample.test", "/articles/1"),
            ]
            bodies.append(
                [get(web.port, host, path)[2].replace(str(web.port).encode(), b"PORT") for host, path in places]
            )
    assert bodies[0] == bodies[1]
    assert [before == after for before, after in zip(bodies[1], bodies[2], strict=True)] == [False, False, True]


def test_many_quick_connections() -> None:
    with SampleWeb() as web, ThreadPoolExecutor(32) as pool:
        statuses = pool.map(lambda number: get(web.port, "umi.sample.test", f"/articles/{number % 20}")[0], range(600))
        assert set(statuses) == {200}


def test_a_taken_port_is_a_fault() -> None:
    with SampleWeb() as web, pytest.raises(EnvironmentFaultError, match="another port"):
        SampleWeb(web.port)


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
def test_the_command_writes_its_files_and_stops_cleanly(tmp_path: Path, stop_signal: signal.Signals) -> None:
    seeds, hosts, starts = tmp_path / "seeds.txt", tmp_path / "hosts", tmp_path / "starts"
    command = [sys.executable, "-W", "error", "-m", "recrawl.sampleweb", "--port", "0"]
    options = ["--write-seeds", str(seeds), "--write-hosts", str(hosts), "--count-file", str(starts)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for count in (1, 2):
        with subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            port = int(process.stdout.readline().strip().rstrip(":").rpartition(":")[2])
            assert f"http://garden.sample.test:{port}/ scope=host\n" in seeds.read_text()
            assert "127.0.0.1 garden.sample.test\n" in hosts.read_text()
            assert starts.read_text() == f"{count}\n"
            # An open connection must not hold it up.
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/", headers={"Host": f"garden.sample.test:{port}"})
            assert connection.getresponse().read().startswith(b"<!DOCTYPE html>")
            process.send_signal(stop_signal)
            _, errors = process.communicate(timeout=10)
            connection.close()
        assert (process.returncode, errors) == (0, "")
