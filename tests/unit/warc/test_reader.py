"""Records come back by offset and in sequence; nonsense is said to be nonsense."""

from __future__ import annotations

import gzip
import hashlib
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import WarcError
from recrawl.tables.vocabulary import TruncatedReason
from recrawl.warc.reader import iterate, read_capture
from recrawl.warc.writer import PartWriter
from tests.unit.warc.exchanges import MOMENT, WARCINFO, an_exchange, payload_digest, write_part


def test_a_capture_is_read_by_its_offset(tmp_path: Path) -> None:
    head = b"HTTP/1.1 203 Odd\r\nX-A: 1\r\nx-a:2\r\nFolded: one\r\n two\r\nno colon\r\nX-\xe9: \xff\r\n\r\n"
    writer = PartWriter(tmp_path / "a.warc.gz", WARCINFO, MOMENT)
    place = writer.write(an_exchange(b"body", response_head=head, truncated=TruncatedReason.TIME))
    writer.close()
    with (tmp_path / "a.warc.gz").open("rb") as file:
        capture = read_capture(file, place.offset, 100)
    assert capture.record_type == "response"
    assert capture.record_id == place.record_id
    assert capture.url == "http://example.com/page?a=1"
    assert capture.date == MOMENT
    assert capture.status == 203
    assert capture.http_headers == [("X-A", "1"), ("x-a", "2"), ("Folded", "one two"), ("X-\xe9", "\xff")]
    assert (capture.body, capture.cut, capture.malformed) == (b"body", False, False)
    assert capture.payload_digest == payload_digest(b"body")
    assert capture.truncated == "time"


def test_content_encodings_are_undone_and_capped(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    body = gzip.compress(b"0123456789" * 100_000)
    writer = PartWriter(tmp_path / "a.warc.gz", WARCINFO, MOMENT)
    place = writer.write(an_exchange(body, response_head=head))
    writer.close()
    with (tmp_path / "a.warc.gz").open("rb") as file:
        whole = read_capture(file, place.offset, 1_000_000)
        assert (whole.body, whole.cut) == (b"0123456789" * 100_000, False)
        capped = read_capture(file, place.offset, 999_999)
        assert (capped.body, capped.cut) == (whole.body[:-1], True)
        assert read_capture(file, place.offset, 0).body == b""


def test_all_records_have_their_places(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(metadata={"fetchTimeMs": "1"}), an_exchange(b""))
    with path.open("rb") as file:
        found = list(iterate(file, 1000))
        assert [capture.record_type for _, capture in found] == [
            *("warcinfo", "response", "request", "metadata"),
            *("response", "request"),
        ]
        assert found[3][1].body == b"fetchTimeMs: 1\r\n"
        ends = [place.offset + place.length for place, _ in found]
        assert [place.offset for place, _ in found] == [0, *ends[:-1]]
        assert ends[-1] == path.stat().st_size
        assert read_capture(file, found[4][0].offset, 10) == found[4][1]


def test_uncompressed_files_are_read_too(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange())
    plain = BytesIO(gzip.decompress(path.read_bytes()))
    places = [place for place, _ in iterate(plain, 1000)]
    assert read_capture(plain, places[1].offset, 100).body == b"<title>Page</title>"
    with pytest.raises(WarcError):
        read_capture(plain, places[1].offset + 1, 100)


def test_no_other_offset_holds_a_record(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange())
    with path.open("rb") as file:
        starts = {place.offset for place, _ in iterate(file, 100)}
        for offset in range(path.stat().st_size + 2):
            if offset not in starts:
                with pytest.raises(WarcError):
                    read_capture(file, offset, 100)


def test_a_record_that_is_cut_off_is_a_fault(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path / "a.warc.gz", WARCINFO, MOMENT)
    place = writer.write(an_exchange(hashlib.shake_128(b"seed").digest(2048)))
    writer.close()
    data = (tmp_path / "a.warc.gz").read_bytes()
    for cut_bytes in range(20, place.length, 41):
        with pytest.raises(WarcError):
            read_capture(BytesIO(data[: place.offset + place.length - cut_bytes]), place.offset, 10_000)
        if cut_bytes < place.length - 150:
            with pytest.raises(WarcError):
                list(iterate(BytesIO(data[: place.offset + place.length - cut_bytes]), 10_000))


@given(st.binary(max_size=200), st.sampled_from([b"", b"WARC/1.1\r\n", b"\x1f\x8b\x08\x00"]))
def test_nonsense_is_a_fault_and_nothing_else(data: bytes, start: bytes) -> None:
    with pytest.raises(WarcError):
        read_capture(BytesIO(start + data), 0, 1000)


@given(st.binary(max_size=200))
def test_iterating_over_nonsense_ends_or_is_a_fault(data: bytes) -> None:
    try:
        assert list(iterate(BytesIO(data), 1000)) == []
    except WarcError as error:
        assert "can't be read" in str(error)
