"""pywb replays what was archived, from our own index, and a real browser shows it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lxml.html
import pytest

from recrawl.warc.decoding import StreamDecoder
from tests.archive.hostile import Archive, Record
from tests.real.browser import browser_program

PYWB = "pywb==2.10.*"
_START_SECONDS = 60.0
_BROWSER_SECONDS = 60
#: Names resolve nowhere: what the browser shows comes out of the archive or not at all.
_NO_NETWORK = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@dataclass(frozen=True)
class Replay:
    """pywb over the published folders, and a browser to look at it.

    Attributes:
        address: of pywb, with a slash at the end.
        profile: the browser's.
    """

    address: str
    browser: str
    profile: Path

    def shown(self, url: str, timestamp: str, collection: str = "crawl") -> str:
        """The text that the browser shows of a capture, spaces in a row as one."""
        command = [
            self.browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={self.profile}", f"--host-resolver-rules={_NO_NETWORK}", "--virtual-time-budget=5000",
            "--dump-dom", f"{self.address}{collection}/{timestamp}mp_/{url}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, timeout=_BROWSER_SECONDS, check=True)
        return _text_of(done.stdout.decode("utf-8"))


@pytest.fixture(scope="module")
def pywb_python(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds pywb and nothing of ours; kept in pytest's cache."""
    cache = getattr(pytestconfig, "cache", None)
    folder = (cache.mkdir("pywb") if cache is not None else tmp_path_factory.mktemp("pywb")) / "environment"
    python = folder / "bin" / "python"
    if not (folder / "bin" / "wayback").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, capture_output=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYWB, "setuptools<81"]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"pywb can't be installed: {done.stderr.strip().splitlines()[-1]}")
    return python


@pytest.fixture(scope="module")
def replay(
    pywb_python: Path, first_visit: Archive, second_visit: Archive, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replay]:
    """Both visits as one collection: our folders, our CDXJ files, nothing indexed anew.

    A second collection has the index without 304 answers, which pywb would hand to the browser as they are.
    """
    browser = browser_program()
    if browser is None:
        pytest.skip("Chromium is not installed")
    folder = tmp_path_factory.mktemp("replay")
    folders = [f"{archive.folder}/" for archive in (first_visit, second_visit)]
    collection = {"index_group": dict(enumerate(folders)), "timeout": 30, "archive_paths": folders}
    lines = [line for archive in (first_visit, second_visit) for line in archive.index_lines()]
    content = folder / "content.cdxj"
    content.write_text("".join(f"{line}\n" for line in sorted(lines) if '"status": "304"' not in line))
    only_content = {"index_paths": str(content), "archive_paths": folders}
    # YAML reads JSON.
    settings = {"collections": {"crawl": collection, "content": only_content}, "framed_replay": False}
    (folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(pywb_python.with_name("wayback")), "-b", "127.0.0.1", "-p", str(port)]
    log = folder / "pywb.log"
    with log.open("wb") as file:
        server = subprocess.Popen(command, cwd=folder, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and server.poll() is None:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10):
                break
            time.sleep(0.1)
        else:
            pytest.fail(f"pywb does not start: {log.read_text()[-2000:]}")
        yield Replay(f"http://127.0.0.1:{port}/", browser, folder / "profile")
    finally:
        server.terminate()
        server.wait()


def _text_of(page: str) -> str:
    document = lxml.html.fromstring(page)
    for element in document.xpath("//script | //style | //title"):
        element.drop_tree()
    return " ".join(str(document.text_content()).split())


def _stored_text(record: Record, coding: str = "") -> str:
    """The text of the body as stored, read without the code that wrote or replays it."""
    body = StreamDecoder([coding] if coding else [], 1 << 20).feed(record.body)
    return _text_of(body.decode("utf-8"))


def _timestamp(record: Record) -> str:
    return "".join(character for character in record.headers["warc-date"][:19] if character.isdigit())


@pytest.mark.parametrize(
    ("path", "coding"),
    [
        ("/page/4.html", ""),
        ("/odd/chunked", ""),
        ("/odd/http10", ""),
        ("/odd/encoded?as=gzip", "gzip"),
        ("/odd/encoded?as=br", "br"),
        ("/odd/status?code=404", ""),
        # Cut short, with the length that the server claimed: a browser would wait for the rest.
        ("/odd/partial", ""),
    ],
)
def test_the_browser_shows_what_was_archived(first_visit: Archive, replay: Replay, path: str, coding: str) -> None:
    record = first_visit.captures()[path]
    expected = _stored_text(record, coding)
    assert len(expected) > 100
    assert expected in replay.shown(record.url, _timestamp(record))


@pytest.mark.parametrize(("path", "coding"), [("/odd/chunked", ""), ("/odd/encoded?as=gzip", "gzip")])
def test_a_revisit_shows_the_content_of_the_first_visit(
    first_visit: Archive, second_visit: Archive, replay: Replay, path: str, coding: str
) -> None:
    """The record has no body of its own."""
    revisit = second_visit.captures()[path]
    assert revisit.type == "revisit"
    shown = replay.shown(revisit.url, _timestamp(revisit))
    assert _stored_text(first_visit.captures()[path], coding) in shown


def test_what_was_not_modified_shows_the_content_of_the_first_visit(
    first_visit: Archive, second_visit: Archive, replay: Replay
) -> None:
    before, after = first_visit.captures()["/page/4.html"], second_visit.captures()["/page/4.html"]
    assert after.http_head.startswith(b"HTTP/1.1 304 ")
    assert _stored_text(before) in replay.shown(after.url, _timestamp(after), "content")


def test_a_redirect_leads_on_within_the_archive(first_visit: Archive, replay: Replay) -> None:
    captures = first_visit.captures()
    start = captures["/odd/chain?n=3"]
    end = next(
        record for record in first_visit.records()
        if record.type == "response" and record.url == start.url.partition("/odd/")[0] + "/page/1.html"
    )  # fmt: skip
    assert _stored_text(end) in replay.shown(start.url, _timestamp(start))
