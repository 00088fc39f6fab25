"""Parts are WARC 1.1 by the letter, and other people's readers take them."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.errors import WarcError
from recrawl.tables.vocabulary import TruncatedReason
from recrawl.warc.cdxj import read_entries
from recrawl.warc.check import check_warc
from recrawl.warc.reader import iterate, read_capture
from recrawl.warc.records import (
    Lookup,
    RevisitOf,
    RevisitProfile,
    parse_warc_date,
    stored_request_head,
    warc_date,
)
from recrawl.warc.writer import PartWriter
from tests.unit.warc.exchanges import (
    MOMENT,
    REQUEST_HEAD,
    RESPONSE_HEAD,
    WARCINFO,
    an_exchange,
    payload_digest,
    records_by_warcio,
    write_part,
)

A_REVISIT = RevisitOf(
    "identical-payload-digest", "<urn:uuid:0a>", "http://example.com/first", datetime(2026, 10, 1, tzinfo=UTC)
)


def test_an_exchange_becomes_response_request_and_metadata(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(metadata={"fetchTimeMs": "12", "robots": "allowed\r\n  x"}))
    info, response, request, metadata = records_by_warcio(path)

    assert info[0]["WARC-Type"] == "warcinfo"
    assert info[0]["WARC-Filename"] == "a.warc.gz"
    assert b"robots: classic\r\n" in info[1]
    assert response[0]["WARC-Type"] == "response"
    assert response[0]["WARC-Target-URI"] == "http://example.com/page?a=1"
    assert response[0]["WARC-Date"] == "2026-11-30T03:00:00.123456Z"
    assert response[0]["WARC-IP-Address"] == "192.0.2.1"
    assert response[0]["WARC-Payload-Digest"] == payload_digest(b"<title>Page</title>")
    assert response[1] == RESPONSE_HEAD + b"<title>Page</title>"
    assert request[0]["WARC-Type"] == "request"
    assert request[1] == REQUEST_HEAD
    assert metadata[0]["WARC-Type"] == "metadata"
    assert metadata[1] == b"fetchTimeMs: 12\r\nrobots: allowed x\r\n"
    for headers, _ in (request, metadata):
        assert headers["WARC-Concurrent-To"] == response[0]["WARC-Record-ID"]
    for headers, _ in (response, request, metadata):
        assert headers["WARC-Warcinfo-ID"] == info[0]["WARC-Record-ID"]
    assert check_warc(path) == []


def test_the_place_and_the_summary_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    writer = PartWriter(path, WARCINFO, MOMENT)
    first = writer.write(an_exchange(b"one"))
    second = writer.write(an_exchange(b"two" * 1000, started_at=MOMENT + timedelta(seconds=5)))
    writer.flush()
    assert path.stat().st_size == writer.bytes_written
    summary = writer.close()

    data = path.read_bytes()
    assert summary.bytes == len(data)
    assert summary.sha256 == hashlib.sha256(data).hexdigest()
    assert summary.records == 5
    assert (summary.first_date, summary.last_date) == (MOMENT, MOMENT + timedelta(seconds=5))
    for place, body in ((first, b"one"), (second, b"two" * 1000)):
        member = gzip.decompress(data[place.offset : place.offset + place.length])
        assert member.startswith(b"WARC/1.1\r\nWARC-Type: response\r\n")
        assert place.record_id.encode() in member
        assert body in member


def test_a_part_without_captures_is_dated_by_its_warcinfo(tmp_path: Path) -> None:
    summary = PartWriter(tmp_path / "a.warc.gz", WARCINFO, MOMENT).close()
    assert (summary.records, summary.first_date, summary.last_date) == (1, MOMENT, MOMENT)


@pytest.mark.parametrize("size_bytes", [0, 16_384, 65_536, 65_537, 700_000])
@pytest.mark.parametrize("stream", [False, True])
def test_bodies_of_any_size_and_kind(tmp_path: Path, size_bytes: int, stream: bool) -> None:
    body = hashlib.shake_128(b"seed").digest(size_bytes)
    path = write_part(tmp_path / "a.warc.gz", an_exchange(body, stream=stream))
    assert records_by_warcio(path)[1][1] == RESPONSE_HEAD + body
    assert check_warc(path) == []


def test_a_stream_is_taken_from_where_it_stands(tmp_path: Path) -> None:
    body = BytesIO(b"skipped" + b"x" * 100_000 + b"not asked for")
    body.seek(7)
    exchange = an_exchange(body=body, body_bytes=100_000, payload_digest=payload_digest(b"x" * 100_000))
    path = write_part(tmp_path / "a.warc.gz", exchange)
    assert records_by_warcio(path)[1][1] == RESPONSE_HEAD + b"x" * 100_000


def test_a_stream_is_read_in_pieces(tmp_path: Path) -> None:
    """A body of any length costs no more memory than one piece of it."""

    class Watched(BytesIO):
        most_bytes = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.most_bytes = max(self.most_bytes, len(data))
            return data

    content = hashlib.shake_128(b"seed").digest(1_000_000)
    body = Watched(content)
    path = write_part(tmp_path / "a.warc.gz", an_exchange(content, body=body))
    assert 0 < body.most_bytes <= 65_536
    assert records_by_warcio(path)[1][1] == RESPONSE_HEAD + content


@pytest.mark.parametrize("profile", ["server-not-modified", "identical-payload-digest"])
def test_a_revisit_keeps_the_head_and_names_the_earlier_record(tmp_path: Path, profile: RevisitProfile) -> None:
    exchange = an_exchange(revisit=replace(A_REVISIT, profile=profile), truncated=TruncatedReason.LENGTH)
    path = write_part(tmp_path / "a.warc.gz", exchange)
    headers, block = records_by_warcio(path)[1]
    assert headers["WARC-Type"] == "revisit"
    assert headers["WARC-Profile"] == f"http://netpreserve.org/warc/1.1/revisit/{profile}"
    assert headers["WARC-Refers-To"] == "<urn:uuid:0a>"
    assert headers["WARC-Refers-To-Target-URI"] == "http://example.com/first"
    assert headers["WARC-Refers-To-Date"] == "2026-10-01T00:00:00.000000Z"
    assert headers["WARC-Payload-Digest"] == payload_digest(b"<title>Page</title>")
    # WARC 1.1, 6.7.2: a body left out for its digest is truncated; one that the server did not send is not.
    assert headers.get("WARC-Truncated") == ("length" if profile == "identical-payload-digest" else None)
    assert block == RESPONSE_HEAD
    assert check_warc(path) == []


@pytest.mark.parametrize("revisit", [None, A_REVISIT])
def test_what_has_no_head_is_a_resource(tmp_path: Path, revisit: RevisitOf | None) -> None:
    """A file by ftp: no request or response is made up for it."""
    exchange = an_exchange(
        b"a,b\n1,2\n", url="ftp://example.com/a.csv", request_head=b"", response_head=b"",
        content_type="text/csv; charset=utf-8", metadata={"fetchTimeMs": "1"}, revisit=revisit,
    )  # fmt: skip
    path = write_part(tmp_path / "a.warc.gz", exchange)
    _, (headers, block), metadata = records_by_warcio(path)
    assert headers["WARC-Type"] == ("revisit" if revisit else "resource")
    assert headers["Content-Type"] == "text/csv; charset=utf-8"
    assert headers["WARC-Payload-Digest"] == payload_digest(b"a,b\n1,2\n")
    assert block == (b"" if revisit else b"a,b\n1,2\n")
    assert metadata[0]["WARC-Concurrent-To"] == headers["WARC-Record-ID"]
    assert check_warc(path) == []
    with path.open("rb") as file:
        place, capture = next((p, c) for p, c in iterate(file, 100) if c.record_type != "warcinfo")
    assert (capture.body, capture.status, capture.url) == (block, None, "ftp://example.com/a.csv")
    (entry,) = read_entries(path)
    assert (entry.offset, entry.mime, entry.status) == (place.offset, "warc/revisit" if revisit else "text/csv", None)


def test_a_resource_of_unknown_type_is_bytes(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(request_head=b"", response_head=b""))
    assert records_by_warcio(path)[1][0]["Content-Type"] == "application/octet-stream"


def test_a_name_that_was_looked_up_is_a_resource_for_each_type_of_address(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    writer = PartWriter(path, WARCINFO, MOMENT)
    writer.write_lookup(Lookup("example.com", ("192.0.2.1", "2001:db8::1", "192.0.2.2"), MOMENT))
    writer.write_lookup(Lookup("six.example.com", ("2001:db8::2",), MOMENT))
    assert writer.close().records == 4
    _, *lookups = records_by_warcio(path)
    assert {headers["WARC-Target-URI"]: block for headers, block in lookups} == {
        "dns:example.com": b"20261130030000\r\nexample.com. IN A 192.0.2.1\r\nexample.com. IN A 192.0.2.2\r\n",
        "dns:example.com?type=AAAA": b"20261130030000\r\nexample.com. IN AAAA 2001:db8::1\r\n",
        "dns:six.example.com?type=AAAA": b"20261130030000\r\nsix.example.com. IN AAAA 2001:db8::2\r\n",
    }
    for headers, block in lookups:
        assert (headers["WARC-Type"], headers["Content-Type"]) == ("resource", "text/dns")
        assert headers["WARC-Payload-Digest"] == headers["WARC-Block-Digest"] == payload_digest(block)
    assert check_warc(path) == []
    assert writer.entries == read_entries(path)


def test_a_truncated_body_says_why(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(truncated=TruncatedReason.DISCONNECT))
    assert records_by_warcio(path)[1][0]["WARC-Truncated"] == "disconnect"


def test_what_has_no_utf_8_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "caf\xe9-\udce9.warc.gz"
    writer = PartWriter(path, {**WARCINFO, "operator": "a\udce9"}, MOMENT)
    writer.write(an_exchange(url="http://example.com/\u4e2d\ud800", metadata={"note": "b\ud800"}))
    writer.close()
    info, response, _, metadata = records_by_warcio(path)
    assert info[0]["WARC-Filename"] == "caf\xe9-?.warc.gz"
    assert info[0]["WARC-Date"] == "2026-11-30T03:00:00.123456Z"
    assert b"operator: a?\r\n" in info[1]
    assert response[0]["WARC-Target-URI"] == "http://example.com/\u4e2d?"
    assert metadata[1] == b"note: b?\r\n"
    assert check_warc(path) == []


def test_an_unknown_payload_digest_is_not_made_up(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(payload_digest="", metadata={"fetchTimeMs": "1"}))
    for headers, _ in records_by_warcio(path):
        assert "WARC-Payload-Digest" not in headers
        assert headers["WARC-Block-Digest"].startswith("sha1:")
        assert len(headers) == len({name.lower() for name in headers})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"response_head": b"<html>no head"}, "is not HTTP"),
        ({"started_at": datetime(2026, 1, 1)}, "no zone"),
        ({"url": "http://example.com/a\r\nWARC-Type: x"}, "control character"),
        ({"body": b"short", "body_bytes": 10}, "10 bytes"),
        ({"body": b"long", "body_bytes": 2}, "2 bytes"),
        ({"revisit": replace(A_REVISIT, refers_to_uri="http://example.com/ a")}, "control character"),
        ({"body": BytesIO(b"s" * 70_000), "body_bytes": 80_000}, "80,000 bytes"),
    ],
)
def test_what_cannot_be_stored_leaves_the_file_as_it_was(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    path = tmp_path / "a.warc.gz"
    writer = PartWriter(path, WARCINFO, MOMENT)
    before = writer.bytes_written
    with pytest.raises(WarcError, match=says):
        writer.write(an_exchange(**changes))  # type: ignore[arg-type]
    assert writer.bytes_written == before
    writer.write(an_exchange())
    writer.close()
    assert check_warc(path) == []


def test_a_part_never_overwrites_another(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz")
    with pytest.raises(WarcError, match="can't be written"):
        PartWriter(path, WARCINFO, MOMENT)


def test_other_readers_accept_the_file(tmp_path: Path) -> None:
    exchanges = [
        an_exchange(b"\x1f\x8b\x08 not gzip", ip=None),
        an_exchange(b"", stream=True),
        an_exchange(b"x" * 200_000, stream=True, metadata={"fetchTimeMs": "1"}),
        an_exchange(revisit=A_REVISIT),
        an_exchange(response_head=b"HTTP/2 200\r\ncontent-type: text/plain\r\n\r\n"),
    ]
    path = write_part(tmp_path / "a.warc.gz", *exchanges)
    bin_folder = Path(sys.executable).parent
    checked = subprocess.run([bin_folder / "warcio", "check", "-v", path], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("digest pass") == 11  # a revisit has no payload to check
    assert check_warc(path) == []


HEAD_LINES = st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=6)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=HEAD_LINES, body=st.binary(max_size=400), stream=st.booleans())
def test_any_bytes_come_back(tmp_path: Path, lines: list[bytes], body: bytes, stream: bool) -> None:
    """Whatever a server sends behind a status line, the file stays valid and the body whole."""
    path = tmp_path / "a.warc.gz"
    path.unlink(missing_ok=True)
    writer = PartWriter(path, WARCINFO, MOMENT)
    head = b"\r\n".join([b"HTTP/1.1 200 OK", *(b"X-" + line for line in lines)]) + b"\r\n\r\n"
    place = writer.write(an_exchange(body, stream=stream, response_head=head))
    writer.write(an_exchange(b"next"))
    writer.close()

    assert check_warc(path) == []
    with path.open("rb") as file:
        capture = read_capture(file, place.offset, 10_000)
        assert (capture.status, capture.body, capture.date) == (200, body, MOMENT)
        assert [found.body for _, found in iterate(file, 10_000) if found.record_type == "response"] == [body, b"next"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=st.binary(max_size=80))
def test_any_head_bytes_leave_a_valid_file(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "a.warc.gz"
    path.unlink(missing_ok=True)
    write_part(path, an_exchange(b"the body", response_head=b"HTTP/" + head, request_head=head))
    assert check_warc(path) == []
    with path.open("rb") as file:
        captures = [capture for _, capture in iterate(file, 10_000)]
    assert captures[1].body == b"the body"


@given(
    st.datetimes(
        datetime(2, 1, 1),
        datetime(9998, 1, 1),
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
    )
)
def test_dates_come_back(moment: datetime) -> None:
    assert parse_warc_date(warc_date(moment)) == moment


def test_dates_of_less_or_more_precision() -> None:
    assert parse_warc_date("2026-11-30") == datetime(2026, 11, 30, tzinfo=UTC)
    assert parse_warc_date("2026-11-30T03:00Z") == datetime(2026, 11, 30, 3, tzinfo=UTC)
    assert parse_warc_date("2026-11-30T03:00:01.123456789Z") == datetime(2026, 11, 30, 3, 0, 1, 123456, tzinfo=UTC)
    for text in ("", "2026", "2026-13-01T00:00:00Z", "2026-11-30T03:00:00", "20261130030000"):
        with pytest.raises(ValueError):
            parse_warc_date(text)


@pytest.mark.parametrize(
    ("head", "stored"),
    [
        (b"GET / HTTP/2\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (b"GET /x HTTP/3.0  \r\n\r\n", b"GET /x HTTP/1.1\r\n\r\n"),
        (b"GET /HTTP/2 HTTP/1.0\r\nVia: b HTTP/2\r\n\r\n", b"GET /HTTP/2 HTTP/1.0\r\nVia: b HTTP/2\r\n\r\n"),
        (b"GET / HTTP/2\nHost: a\n", b"GET / HTTP/1.1\nHost: a\r\n\r\n"),
    ],
)
def test_only_the_request_line_is_brought_to_http_1(head: bytes, stored: bytes) -> None:
    assert stored_request_head(head) == stored
