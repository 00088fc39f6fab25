"""The header check finds each fault that the others miss."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from recrawl.errors import WarcError
from recrawl.warc.check import check_warc, inspect_warc
from recrawl.warc.reader import iterate
from recrawl.warc.records import RevisitOf
from tests.unit.warc.exchanges import MOMENT, an_exchange, write_part


def members_of(path: Path) -> list[bytes]:
    """The inflated records of a part."""
    data = path.read_bytes()
    with path.open("rb") as file:
        places = [place for place, _ in iterate(file, 0)]
    return [gzip.decompress(data[place.offset : place.offset + place.length]) for place in places]


def problems_after(folder: Path, change: Callable[[list[bytes]], list[bytes]]) -> list[str]:
    """What the check says of a part whose records were changed and compressed again."""
    revisit = RevisitOf("server-not-modified", None, None, MOMENT)
    not_modified = an_exchange(revisit=revisit, payload_digest="")
    path = write_part(folder / "a.warc.gz", an_exchange(metadata={"a": "b"}), not_modified)
    assert check_warc(path) == []
    path.write_bytes(b"".join(map(gzip.compress, change(members_of(path)))))
    return check_warc(path)


def replacing(index: int, old: bytes, new: bytes) -> Callable[[list[bytes]], list[bytes]]:
    def change(records: list[bytes]) -> list[bytes]:
        assert old in records[index]
        return [*records[:index], records[index].replace(old, new, 1), *records[index + 1 :]]

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda records: records[1:], "the first record is no warcinfo"),
        (lambda records: [*records, records[-1]], "is not unique"),
        (replacing(1, b"WARC-Record-ID", b"X-Record-ID"), "WARC-Record-ID is missing"),
        (replacing(1, b"<urn:uuid:", b"<"), "no URI in angle brackets"),
        (replacing(1, b"WARC-Date: 2026-11-30T", b"WARC-Date: 2026-11-31T"), "is no date"),
        (replacing(4, b"Refers-To-Date: 2026", b"Refers-To-Date: 26"), "is no date"),
        (replacing(1, b"WARC-Type: response\r\n", b""), "WARC-Type is missing"),
        (replacing(2, b"WARC-Target-URI", b"X-Target-URI"), "WARC-Target-URI is missing"),
        (replacing(4, b"WARC-Profile", b"X-Profile"), "WARC-Profile is missing"),
        (replacing(4, b"server-not-modified", b"identical-payload-digest"), "WARC-Payload-Digest is missing"),
        (replacing(0, b"WARC-Filename", b"WARC-Target-URI"), "a warcinfo record has warc-target-uri"),
        (replacing(1, b"WARC-IP-Address: ", b"WARC-Filename: "), "a response record has warc-filename"),
        (replacing(1, b"WARC-IP-Address: ", b"WARC-Refers-To: "), "a response record has warc-refers-to"),
        (replacing(2, b"WARC-IP-Address: ", b"WARC-Truncated: "), "WARC-Truncated '192.0.2.1' is no reason"),
        (replacing(1, b"Content-Length: ", b"Content-Length: 1"), "the record does not end there"),
        (replacing(1, b"Content-Length: ", b"Content-Length: -"), "is no number"),
        (replacing(1, b"Page", b"Paga"), "the block digest is"),
        (replacing(1, b"Page", b"Paga"), "the payload digest is"),
        (replacing(1, b"Server: test", b"Server: tesT"), "the block digest is"),
        (replacing(2, b"WARC/1.1", b"WARC/9.9"), "the version line is"),
        (replacing(2, b"WARC-IP-Address: ", b"WARC IP Address "), "is no header line"),
        (replacing(2, b"WARC-IP-Address", b"WARC-Type"), "WARC-Type is there twice"),
        (replacing(2, b"\r\n\r\n", b"\r\n"), "is no header line"),
        (lambda records: [record[:-2] for record in records], "the record does not end there"),
        (lambda records: [b"".join(records)], "the record does not end there"),
        (lambda records: [*records, b"WARC/1.1\r\nno end"], "header has no end"),
        (lambda records: [records[0], *records[2:]], "which is not in the file"),
        (lambda records: [], "there is no record"),
    ],
)
def test_each_fault_is_found(tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], says: str) -> None:
    assert says in "\n".join(problems_after(tmp_path, change))


def test_torn_files_and_garbage_are_found(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange())
    data = path.read_bytes()
    for cut_bytes in range(1, 60):
        path.write_bytes(data[:-cut_bytes])
        assert "inside a gzip member" in "\n".join(check_warc(path))
    path.write_bytes(data + b"garbage")
    assert "no gzip member" in check_warc(path)[-1]


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(WarcError, match="can't be read"):
        check_warc(tmp_path / "none.warc.gz")


def test_an_inspection_tells_each_record_and_the_whole_file(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange(b"one"), an_exchange(b"two"))
    data = path.read_bytes()
    with path.open("rb") as file:
        inspection = inspect_warc(file)
        places = [place for place, _ in iterate(file, 0)]
    assert (inspection.bytes, inspection.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert [(record.offset, record.length) for record in inspection.records] == [(p.offset, p.length) for p in places]
    assert [record.record_type for record in inspection.records] == [
        "warcinfo", "response", "request", "response", "request",
    ]  # fmt: skip
    assert [record.record_id for record in inspection.records] == [place.record_id for place in places]


def test_what_can_not_be_understood_counts_too(tmp_path: Path) -> None:
    data = write_part(tmp_path / "a.warc.gz", an_exchange()).read_bytes() + b"garbage" * 50_000
    inspection = inspect_warc(BytesIO(data))
    assert (inspection.bytes, inspection.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert len(inspection.records) == 3
    assert "no gzip member" in inspection.problems[-1]
