"""warcio's opinion of files, sound and broken."""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path

from recrawl.warc.check import inspect_warc
from recrawl.warc.second_reader import second_opinion
from tests.unit.warc.exchanges import an_exchange, write_part


def _part(tmp_path: Path) -> bytes:
    path = tmp_path / "part.warc.gz"
    write_part(path, an_exchange(), an_exchange())
    return path.read_bytes()


def test_warcio_reads_what_we_wrote_at_the_places_that_we_say(tmp_path: Path) -> None:
    data = _part(tmp_path)
    opinion = second_opinion(BytesIO(data))
    assert opinion.problems == ()
    assert opinion.offsets == tuple(record.offset for record in inspect_warc(BytesIO(data)).records)


def test_another_body_under_the_digest_is_found(tmp_path: Path) -> None:
    data = _part(tmp_path)
    records = inspect_warc(BytesIO(data)).records
    response = next(record for record in records if record.record_type == "response")
    place = slice(response.offset, response.offset + response.length)
    member = bytearray(gzip.decompress(data[place]))
    member[-5] ^= 1  # the last byte of the body
    spoilt = data[: place.start] + gzip.compress(bytes(member)) + data[place.stop :]
    opinion = second_opinion(BytesIO(spoilt))
    assert len(opinion.offsets) == len(records)
    assert opinion.problems
    assert all(f"byte {response.offset:,}: warcio says: " in problem for problem in opinion.problems)


def test_what_is_no_warc_file_is_said(tmp_path: Path) -> None:
    opinion = second_opinion(BytesIO(gzip.compress(b"nothing of the kind\r\n")))
    assert opinion.offsets == ()
    [problem] = opinion.problems
    assert problem.startswith("warcio reads 0 records and stops: ")
