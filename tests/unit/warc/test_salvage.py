"""An unclosed part keeps every whole record, wherever it was torn."""

from __future__ import annotations

import gzip
import hashlib
import os
from datetime import timedelta
from pathlib import Path

import pytest

from recrawl.errors import WarcError
from recrawl.warc.check import check_warc
from recrawl.warc.salvage import cut_to_whole_members, summary_of, whole_members_length
from recrawl.warc.writer import PartWriter
from tests.unit.warc.exchanges import MOMENT, WARCINFO, an_exchange, write_part


def test_torn_at_every_byte_of_the_last_records(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    writer = PartWriter(path, WARCINFO, MOMENT)
    writer.write(an_exchange(b"first"))
    starts = [writer.bytes_written]
    # A body that is gzip itself, incompressible: its members stand in the file as they are.
    inner = gzip.compress(b"WARC/1.1\r\n\r\n" + hashlib.shake_128(b"seed").digest(300))
    place = writer.write(an_exchange(inner * 2))
    starts += [place.offset + place.length, writer.bytes_written]
    writer.close()
    data = path.read_bytes()
    for length in range(starts[0], len(data) + 1):
        path.write_bytes(data[:length])
        assert whole_members_length(path) == max(start for start in starts if start <= length)


def test_the_cut_part_is_a_valid_file(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    writer = PartWriter(path, WARCINFO, MOMENT)
    writer.write(an_exchange(b"x" * 200_000, stream=True))
    whole_bytes = writer.bytes_written
    writer.write(an_exchange(b"second"))
    writer.close()
    os.truncate(path, whole_bytes + 40)
    assert cut_to_whole_members(path) == whole_bytes
    assert path.stat().st_size == whole_bytes
    assert check_warc(path) == []
    assert cut_to_whole_members(path) == whole_bytes


def test_the_summary_is_what_closing_would_have_told(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    writer = PartWriter(path, WARCINFO, MOMENT)
    for seconds in (30, 10, 20):
        writer.write(an_exchange(started_at=MOMENT + timedelta(seconds=seconds)))
    summary = writer.close()
    assert summary_of(path) == summary
    assert summary.first_date == MOMENT + timedelta(seconds=10)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"no gzip at all", b"\0" * 5000])
def test_a_file_without_a_whole_member_is_emptied(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(content)
    assert cut_to_whole_members(path) == 0
    assert path.read_bytes() == b""
    with pytest.raises(WarcError, match="no record"):
        summary_of(path)


def test_garbage_behind_whole_members_is_cut(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange())
    whole_bytes = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"\0" * 4096)
    assert cut_to_whole_members(path) == whole_bytes


def test_a_member_with_a_wrong_checksum_is_not_whole(tmp_path: Path) -> None:
    path = write_part(tmp_path / "a.warc.gz", an_exchange())
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    assert whole_members_length(path) < len(data)


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(WarcError, match="can't be read"):
        whole_members_length(tmp_path / "none.warc.gz")
