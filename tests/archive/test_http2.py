"""HTTP/2, by option: spoken where TLS negotiates it, archived in the form of HTTP/1.1 with its protocol named."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from recrawl.asking.reader import Reader
from recrawl.asking.verify import verify
from recrawl.config.model import Configuration
from recrawl.errors import ConfigurationError
from recrawl.fetch.journal import parse_time
from recrawl.parse.capture import Capture
from recrawl.parse.handlers import parse_capture
from recrawl.storage import Store
from recrawl.warc.reader import read_capture
from tests.archive.hostile import SECOND_ROUND_ID, Archive, path_of
from tests.archive.tables import write_tables
from tests.fetch.certificates import Authority
from tests.fetch.crawl import configuration, fetch, plan_of, planned, settled_once, task_of
from tests.fetch.nginx_tls import http2_server, protocols
from tests.real import validators
from tests.real.documentation import nginx_program

HOST = "modern.test"
PAGE = b"<!doctype html><title>By frames</title><p>" + b"Words and words. " * 40 + b'<a href="/next.html">next</a>'
LARGE = os.urandom(300_000)
PATHS = ("/page.html", "/large.bin", "/moved", "/gone", "/missing.html", "/private/x.html", "/empty.txt")


class Site:
    """nginx with HTTP/2, and how to crawl it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def url(self, path: str) -> str:
        """The URL of a path."""
        return f"https://{HOST}:{self.port}{path}"

    def settings(self, root: Path, **fetch_settings: Any) -> Configuration:
        """A configuration that reaches it."""
        return configuration(root, self.folder / "hosts", **fetch_settings)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if nginx_program() is None:
        pytest.skip("nginx is not installed")
    folder = tmp_path_factory.mktemp("http2")
    authority = Authority(folder)
    (folder / "hosts").write_text(f"127.0.0.1 {HOST}\n")
    (folder / "web").mkdir()
    for name, content in (("page.html", PAGE), ("large.bin", LARGE), ("empty.txt", b"")):
        (folder / "web" / name).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(authority.path))
        robots = "User-agent: *\nDisallow: /private/\n"
        with http2_server(folder, HOST, authority.issue(HOST), robots) as port:
            yield Site(folder, port)


@pytest.fixture(scope="module")
def archive(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """What a crawl by HTTP/2 published."""
    settings = site.settings(tmp_path_factory.mktemp("crawl"), http_version="2")
    plan = plan_of(map(site.url, PATHS), max_bytes=100_000)
    fetch(task_of(settings), plan)
    assert settled_once(settings, plan)
    return Archive(settings)


def test_all_requests_are_spoken_as_http2(site: Site, archive: Archive) -> None:
    asked = {path for path in PATHS if not path.startswith("/private/")} | {"/robots.txt"}
    spoken = [entry for entry in protocols(site.folder) if entry[0] == "HTTP/2.0"]
    assert {path for _, path, _ in spoken} == asked
    outcomes = {path: row["outcome"] for path, row in archive.fetches().items()}
    assert outcomes == {
        "/page.html": "ok", "/large.bin": "ok", "/moved": "redirect", "/gone": "gone", "/missing.html": "not_found",
        "/private/x.html": "robots_denied", "/empty.txt": "ok",
    }  # fmt: skip


def test_records_have_the_form_of_http1_and_name_the_protocol(archive: Archive) -> None:
    records = [record for record in archive.records() if record.type in ("request", "response", "metadata")]
    assert len(records) == 3 * 7
    assert {record.headers.get("warc-protocol") for record in records} == {"h2"}
    for record in records:
        if record.type == "response":
            assert re.match(rb"HTTP/1\.1 \d{3} ?\r\n[a-z]", record.block)
        elif record.type == "request":
            assert record.block.startswith(f"GET {path_of(record.url)} HTTP/1.1\r\nHost: {HOST}:".encode())


def test_bodies_are_what_the_server_holds(archive: Archive) -> None:
    captures = archive.captures()
    assert gzip.decompress(captures["/page.html"].body) == PAGE
    assert captures["/empty.txt"].body == b""
    cut = captures["/large.bin"]
    assert (cut.headers["warc-truncated"], cut.body) == ("length", LARGE[:100_000])
    assert archive.fetches()["/large.bin"]["truncated"] == "length"


def test_every_judge_accepts_the_file(archive: Archive) -> None:
    (path,) = archive.files
    assert validators.by_our_check(path) == []
    assert validators.by_warcio(path) == []
    assert validators.by_cdxj_indexer(path) == []
    jar = validators.jwarc_jar()
    if jar is not None:
        assert validators.by_jwarc(path, jar) == []


def test_verify_and_parse_read_it(archive: Archive) -> None:
    store = Store(archive.settings.storage)
    write_tables(store, archive.settings)
    found = verify(Reader(store), store, None, None, Random(1))
    assert (found.files, found.findings) == (1, ())

    row = archive.fetches()["/page.html"]
    with archive.files[0].open("rb") as file:
        stored = read_capture(file, row["warc_offset"], 1 << 20)
    assert (stored.status, stored.body) == (200, PAGE)
    capture = Capture(row["url"], row["content_type"], stored.body, None, 0, "recrawl", want_text=False)
    page = parse_capture(capture, archive.settings.parse)
    assert (page.title, [link.url for link in page.links]) == ("By frames", [row["url"].replace("page", "next")])


def test_an_unchanged_page_is_a_revisit_by_http2_too(site: Site, archive: Archive) -> None:
    row = archive.fetches()["/page.html"]
    known = planned(
        site.url("/page.html"), etag=row["etag"], last_modified=row["last_modified"],
        last_payload_digest=row["payload_digest"], last_warc_file=row["warc_file"],
        last_warc_record_id=row["warc_record_id"], last_warc_date=parse_time(row["started_at"]),
    )  # fmt: skip
    again = Archive(archive.settings, SECOND_ROUND_ID)
    fetch(replace(task_of(archive.settings), round_id=SECOND_ROUND_ID), [known])
    record = again.captures()["/page.html"]
    assert (record.type, record.headers["warc-protocol"]) == ("revisit", "h2")
    assert record.block.startswith(b"HTTP/1.1 304 ")
    assert [validators.by_our_check(path) + validators.by_warcio(path) for path in again.files] == [[]]


def test_without_the_option_the_same_server_is_asked_by_http1(site: Site, tmp_path: Path) -> None:
    settings = site.settings(tmp_path)
    fetch(task_of(settings), plan_of([site.url("/page.html?plain")]))
    assert ("HTTP/1.1", "/page.html?plain", 200) in protocols(site.folder)
    assert not any("warc-protocol" in record.headers for record in Archive(settings).records())


def test_the_requests_engine_has_no_http2(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"speaks HTTP/1\.1 only"):
        configuration(tmp_path, engine="requests", http_version="2")
