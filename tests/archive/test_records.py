"""What an archive wants of the records: pairs, digests, truncation, codings, names, revisits, metadata."""

from __future__ import annotations

import base64
import gzip
import hashlib
from datetime import timedelta
from pathlib import Path

import pytest

from recrawl.errors import ConfigurationError
from recrawl.fetch.journal import parse_time
from recrawl.warc.records import parse_warc_date
from tests.archive.hostile import Archive, Record, path_of, records_of, visit
from tests.fetch.crawl import configuration, fetch, plan_of, task_of
from tests.fetch.test_ftp import FtpServer
from tests.web import MisbehavingWeb


def _sha1(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def _by_type(records: list[Record], record_type: str) -> list[Record]:
    return [record for record in records if record.type == record_type]


def test_every_capture_has_its_request_and_metadata(first_visit: Archive) -> None:
    records = first_visit.records()
    captures = {record.headers["warc-record-id"]: record for record in _by_type(records, "response")}
    for record_type in ("request", "metadata"):
        beside = _by_type(records, record_type)
        assert sorted(record.headers["warc-concurrent-to"] for record in beside) == sorted(captures)
        for record in beside:
            capture = captures[record.headers["warc-concurrent-to"]]
            for name in ("warc-target-uri", "warc-date", "warc-ip-address", "warc-warcinfo-id"):
                assert record.headers[name] == capture.headers[name]
    for record in _by_type(records, "request"):
        assert record.block.startswith(f"GET {path_of(record.url)} HTTP/1.1\r\nHost: ".encode())
        assert record.block.endswith(b"\r\n\r\n")


def test_every_capture_says_where_it_came_from_and_what_it_is(first_visit: Archive) -> None:
    for record in _by_type(first_visit.records(), "response"):
        assert record.headers["warc-ip-address"] == "127.0.0.1"
        assert record.headers["warc-block-digest"] == _sha1(record.block)
        assert record.headers["warc-payload-digest"] == _sha1(record.body)
        assert record.headers["content-type"] == "application/http; msgtype=response"


def test_what_was_cut_says_why_and_keeps_what_the_server_claimed(first_visit: Archive) -> None:
    captures, tried = first_visit.captures(), first_visit.fetches()
    expected = {
        "/odd/partial": ("disconnect", "987"), "/odd/reset": ("disconnect", "987"), "/odd/stall": ("time", "987"),
        "/odd/drip?bytes=50&pause=0.1": ("time", "50"), "/odd/huge?mb=3": ("length", str(3 << 20)),
        "/odd/endless?mb=20": ("length", None), "/odd/broken-chunks": ("disconnect", None),
        "/odd/cut-chunks": ("disconnect", None),
    }  # fmt: skip
    found = {
        path: (record.headers["warc-truncated"], _header(record, "x-crawler-content-length"))
        for path, record in captures.items()
        if "warc-truncated" in record.headers
    }
    assert found == expected
    for path in expected:
        assert _header(captures[path], "content-length") is None
        assert len(captures[path].body) == tried[path]["bytes_wire"]
        assert tried[path]["truncated"] == captures[path].headers["warc-truncated"]
    # Cut while it was decoded, but whole as it was sent: the record lacks nothing.
    assert tried["/odd/bomb?as=gzip&mb=20"]["truncated"] == "length"
    assert len(gzip.decompress(captures["/odd/bomb?as=gzip&mb=20"].body)) == 20 << 20


def test_transfer_codings_go_and_content_codings_stay(first_visit: Archive) -> None:
    captures = first_visit.captures()
    page = captures["/odd/no-length"].body
    chunked = captures["/odd/chunked"]
    assert chunked.body == page
    assert _header(chunked, "transfer-encoding") is None
    assert _header(chunked, "x-crawler-transfer-encoding") == "chunked"
    coded = captures["/odd/encoded?as=gzip"]
    assert _header(coded, "content-encoding") == "gzip"
    assert _header(coded, "content-length") == str(len(coded.body))
    assert gzip.decompress(coded.body) == page
    assert captures["/odd/http10"].block.startswith(b"HTTP/1.0 200 ")
    assert captures["/odd/interim"].block.startswith(b"HTTP/1.1 200 ")


def test_heads_are_stored_byte_by_byte(first_visit: Archive) -> None:
    """But for folded lines, which libcurl joins as RFC 9112, section 5.2 has it."""
    head = first_visit.captures()["/odd/odd-headers"].http_head
    for line in (b"X-Folded: one two", b"X-Bytes: caf\xe9 \xff", b"X-Empty:", b"Set-Cookie: a=1\r\nSet-Cookie: b=2"):
        assert b"\r\n" + line + b"\r\n" in head


def test_a_name_is_looked_up_once_a_file(first_visit: Archive) -> None:
    names = {record.url.split("/")[2].partition(":")[0] for record in _by_type(first_visit.records(), "response")}
    looked_up = _by_type(first_visit.records(), "resource")
    assert sorted(record.url for record in looked_up) == sorted(f"dns:{name}" for name in names)
    for record in looked_up:
        assert record.headers["content-type"] == "text/dns"
        moment, answer = record.block.decode("ascii").splitlines()
        assert answer == f"{record.url.removeprefix('dns:')}. IN A 127.0.0.1"
        assert moment == f"{parse_warc_date(record.headers['warc-date']):%Y%m%d%H%M%S}"
        assert record.headers["warc-payload-digest"] == record.headers["warc-block-digest"] == _sha1(record.block)


def test_metadata_tells_times_and_what_robots_txt_said(first_visit: Archive) -> None:
    tried = {row["warc_record_id"]: row for row in first_visit.rows("fetches")}
    for record in _by_type(first_visit.records(), "metadata"):
        fields, path = record.fields, path_of(record.url)
        assert float(fields["fetchTimeMs"]) >= float(fields["firstByteTimeMs"]) - 1 >= -1
        if path == "/robots.txt":
            assert fields["robotsOf"] == record.url.removesuffix("robots.txt")
            continue
        assert fields["robots"] == "allowed"
        row = tried[record.headers["warc-concurrent-to"]]
        took_ms = (parse_time(row["ended_at"]) - parse_time(row["started_at"])) / timedelta(milliseconds=1)
        assert abs(took_ms - float(fields["fetchTimeMs"])) < 500
    chain = {path_of(record.url): record.fields for record in _by_type(first_visit.records(), "metadata")}
    assert path_of(chain["/odd/chain?n=2"]["via"]) == "/odd/chain?n=3"


def test_metadata_names_the_rule_and_the_file(hostile_web: MisbehavingWeb, tmp_path: Path) -> None:
    rules = "User-agent: *\nDisallow: /page/\nAllow: /page/1.html\n"
    hostile_web.site("ruled.test", robots=rules)
    settings = configuration(tmp_path, hostile_web.hosts_file(tmp_path / "hosts"))
    fetch(task_of(settings), plan_of([hostile_web.url("ruled.test", "/page/1.html")]))
    archive = Archive(settings)
    (record,) = [r for r in _by_type(archive.records(), "metadata") if r.url.endswith("/page/1.html")]
    digest = hashlib.sha256(rules.encode()).hexdigest()
    assert record.fields["robotsRule"] == "Allow: /page/1.html"
    assert (
        record.fields["robotsDigest"]
        == f"sha256:{digest}"
        == f"sha256:{archive.fetches()['/page/1.html']['robots_digest']}"
    )


@pytest.mark.parametrize(
    ("path", "profile"),
    [
        ("/odd/etag?tag=one", "server-not-modified"),
        ("/odd/last-modified", "server-not-modified"),
        ("/page/4.html", "server-not-modified"),
        ("/odd/encoded?as=gzip", "identical-payload-digest"),
        ("/odd/chunked", "identical-payload-digest"),
    ],
)
def test_what_did_not_change_is_a_revisit(first_visit: Archive, second_visit: Archive, path: str, profile: str) -> None:
    before, after = first_visit.captures()[path], second_visit.captures()[path]
    assert after.type == "revisit"
    assert after.headers["warc-profile"] == f"http://netpreserve.org/warc/1.1/revisit/{profile}"
    assert after.headers["warc-refers-to"] == before.headers["warc-record-id"]
    assert after.headers["warc-refers-to-target-uri"] == before.url
    assert after.headers["warc-refers-to-date"] == before.headers["warc-date"]
    assert after.headers["warc-payload-digest"] == before.headers["warc-payload-digest"]
    assert after.body == b""
    is_304 = profile == "server-not-modified"
    assert after.block.startswith(b"HTTP/1.1 304 " if is_304 else b"HTTP/1.1 200 ")
    assert after.headers.get("warc-truncated") == (None if is_304 else "length")
    request = next(r for r in _by_type(second_visit.records(), "request") if r.url == after.url)
    assert (b"If-None-Match: " in request.block or b"If-Modified-Since: " in request.block) == is_304


@pytest.mark.parametrize("path", ["/odd/always-new", "/odd/empty"])
def test_new_and_empty_content_is_stored_again(second_visit: Archive, path: str) -> None:
    assert second_visit.captures()[path].type == "response"


def test_a_file_never_passes_its_limit(hostile_web: MisbehavingWeb, tmp_path: Path) -> None:
    """Bodies that don't compress, published only when a file would grow too long."""
    limit_bytes = 60_000
    archive = visit(hostile_web, tmp_path / "small", warc_file_bytes=limit_bytes, publish_bytes=limit_bytes)
    assert len(archive.files) > 3
    for path in archive.files:
        captures = [r for r in records_of(path) if r.type == "response"]
        assert path.stat().st_size <= limit_bytes or len(captures) == 1
    # Each file is whole in itself: names are looked up, and rows lead to their own file.
    for path in archive.files:
        records = records_of(path)
        hosts = {r.url.split("/")[2].partition(":")[0] for r in records if r.type == "response"}
        assert {r.url.removeprefix("dns:") for r in records if r.type == "resource"} == hosts


def test_a_limit_below_the_size_of_a_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="warc_file_bytes must not be less than publish_bytes"):
        configuration(tmp_path, warc_file_bytes=1_000_000)


def test_files_by_ftp_are_resources_without_made_up_heads(tmp_path: Path) -> None:
    server = FtpServer()
    try:
        hosts = tmp_path / "hosts"
        hosts.write_text("127.0.0.1 ftp.test\n")
        settings = configuration(tmp_path, hosts)
        fetch(task_of(settings), plan_of([f"ftp://ftp.test:{server.port}/file.txt"]))
    finally:
        server.close()
    archive = Archive(settings)
    (row,) = archive.rows("fetches")
    file = next(record for record in archive.records() if record.headers.get("warc-record-id") == row["warc_record_id"])
    assert (file.type, file.headers["content-type"]) == ("resource", "text/plain")
    assert len(file.block) == row["bytes_body"] == 7
    assert file.headers["warc-payload-digest"] == row["payload_digest"] == _sha1(file.block)
    assert _by_type(archive.records(), "request") == []


def test_behind_a_proxy_neither_address_nor_name_is_known(hostile_web: MisbehavingWeb, tmp_path: Path) -> None:
    proxy = f"http://127.0.0.1:{hostile_web.port}"
    settings = configuration(tmp_path, hostile_web.hosts_file(tmp_path / "hosts"), proxy=proxy)
    fetch(task_of(settings), plan_of([hostile_web.url("h0.test", "/page/1.html")]))
    archive = Archive(settings)
    assert _by_type(archive.records(), "resource") == []
    assert _by_type(archive.records(), "response")
    assert not any("warc-ip-address" in record.headers for record in archive.records())


def _header(record: Record, name: str) -> str | None:
    for line in record.http_head.decode("latin-1").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.strip().lower() == name:
            return value.strip()
    return None
