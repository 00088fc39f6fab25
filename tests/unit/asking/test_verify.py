"""Every way in which a published WARC file can stop agreeing with the tables is found and said."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import BinaryIO

import pytest
from deltalake import DeltaTable

from recrawl.asking.reader import Reader
from recrawl.asking.verify import MAX_FINDINGS_A_FILE, Verification, verify
from recrawl.warc.check import inspect_warc
from recrawl.warc.second_reader import SecondOpinion, second_opinion
from tests.unit.asking.published import PublishedRound, published_round
from tests.unit.asking.small_crawl import FIRST, SECOND, SmallCrawl


@pytest.fixture
def published(tmp_path: Path) -> PublishedRound:
    return published_round(SmallCrawl(tmp_path / "crawl"))


def _verify(crawl: SmallCrawl, round_id: str | None = None, sample: int | None = None) -> Verification:
    return verify(Reader(crawl.store), crawl.store, round_id, sample, Random(1))


def _sentences(crawl: SmallCrawl) -> list[str]:
    return [finding.sentence for finding in _verify(crawl).findings]


def test_what_was_published_is_as_published(published: PublishedRound) -> None:
    found = _verify(published.crawl)
    assert found.findings == ()
    assert (found.files_known, found.files) == (1, 1)
    # warcinfo, A and AAAA of the name, three records for each page
    assert found.records == 1 + 2 + 3 * 3 == published.warc_row["records"]
    assert found.bytes == published.warc.stat().st_size


def test_what_another_program_reads_otherwise_is_said(
    published: PublishedRound, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_fewer(stream: BinaryIO) -> SecondOpinion:
        read = second_opinion(stream)
        return SecondOpinion(read.offsets[:-1], read.problems)

    monkeypatch.setattr("recrawl.asking.verify.second_opinion", of_fewer)
    [sentence] = _sentences(published.crawl)
    assert sentence.endswith("warcio reads 11 records, or at other places, of 12.")


def _missing(published: PublishedRound) -> None:
    published.warc.unlink()


def _unreadable(published: PublishedRound) -> None:
    published.warc.unlink()
    published.warc.mkdir()


def _flipped_byte(published: PublishedRound) -> None:
    data = bytearray(published.warc.read_bytes())
    data[-6] ^= 0xFF  # of the checksum of the last member
    published.warc.write_bytes(bytes(data))


def _longer(published: PublishedRound) -> None:
    published.warc.write_bytes(published.warc.read_bytes() + gzip.compress(b"WARC/1.1\r\n\r\n\r\n\r\n"))


def _other_body(published: PublishedRound) -> None:
    """The same length and a right gzip trailer: only the digests can tell."""
    data = published.warc.read_bytes()
    with published.warc.open("rb") as file:
        records = inspect_warc(file).records
    first = next(record for record in records if record.record_type == "response")
    member = gzip.decompress(data[first.offset : first.offset + first.length]).replace(b"page 0", b"page X")
    published.warc.write_bytes(
        data[: first.offset] + gzip.compress(member) + data[first.offset + first.length :]
    )  # fmt: skip


def _no_index(published: PublishedRound) -> None:
    published.cdxj.unlink()


def _unsorted_index(published: PublishedRound) -> None:
    published.cdxj.write_bytes(b"".join(reversed(published.cdxj.read_bytes().splitlines(keepends=True))))


def _short_index(published: PublishedRound) -> None:
    published.cdxj.write_bytes(b"".join(published.cdxj.read_bytes().splitlines(keepends=True)[:-1]))


def _foreign_index(published: PublishedRound) -> None:
    published.cdxj.write_bytes(published.cdxj.read_bytes().replace(b"a01-00001", b"a01-00002"))


def _wrong_length(published: PublishedRound) -> None:
    length = published.fetches[0]["warc_length"]
    published.cdxj.write_bytes(published.cdxj.read_bytes().replace(b'"length": "%d"' % length, b'"length": "7"'))


def _garbage_index(published: PublishedRound) -> None:
    published.cdxj.write_bytes(b"a garbage line\n" + published.cdxj.read_bytes())


def _phantom_in_index(published: PublishedRound) -> None:
    offset = published.fetches[0]["warc_offset"]
    published.cdxj.write_bytes(published.cdxj.read_bytes().replace(b'"offset": "%d"' % offset, b'"offset": "3"'))


def _no_journal(published: PublishedRound) -> None:
    published.journal.unlink()


def _updated(table: str, **values: str) -> Callable[[PublishedRound], None]:
    def change(published: PublishedRound) -> None:
        DeltaTable(published.crawl.path(table)).update(updates=values)

    return change


def _unnamed(published: PublishedRound) -> None:
    published.warc.with_name(published.warc.name.replace("a01", "a02")).write_bytes(published.warc.read_bytes())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_missing, "it is missing."),
        (_unreadable, "it can't be read"),
        (_flipped_byte, "no gzip member"),
        (_flipped_byte, "SHA-256: "),
        (_longer, "bytes: "),
        (_longer, "records: 13, but 12 in warc_files."),
        (_longer, "WARC-Record-ID is missing"),
        (_other_body, "the block digest is"),
        (_other_body, "the payload digest is"),
        (_no_index, "its CDXJ index is missing."),
        (_unsorted_index, "its CDXJ index is not sorted."),
        (_short_index, "its CDXJ index does not list this capture."),
        (_foreign_index, "of its CDXJ index names the file"),
        (_wrong_length, "its CDXJ index says length 7, the record "),
        (_garbage_index, "line 1 of its CDXJ index can't be understood."),
        (_phantom_in_index, "byte 3: its CDXJ index lists a capture, but none begins here."),
        (_no_journal, "its journal is missing."),
        (_unnamed, "no row of warc_files names it."),
        (_updated("warc_files", bytes="17"), "but 17 in warc_files."),
        (_updated("warc_files", sha256="'00'"), "but 00 in warc_files."),
        (_updated("warc_files", first_date="CAST('2026-01-01T00:00:00Z' AS TIMESTAMP)"), "first_date is 2026-01-01"),
        (_updated("fetches", warc_offset="warc_offset + 1"), "no record begins there."),
        (_updated("fetches", warc_length="5"), "bytes, not 5."),
        (_updated("fetches", warc_record_id="'<urn:uuid:1>'"), "not <urn:uuid:1>."),
        (_updated("fetches", payload_digest="'sha1:A'"), "not sha1:A."),
        (_updated("fetches", revisit="true"), "a response record is there, but the row says revisit = true."),
        (_updated("fetches", warc_offset="0"), "a warcinfo record is there."),
    ],
)
def test_each_difference_is_a_sentence(
    published: PublishedRound, change: Callable[[PublishedRound], None], said: str
) -> None:
    change(published)
    sentences = _sentences(published.crawl)
    assert any(said in sentence for sentence in sentences), sentences
    for sentence in sentences:
        assert sentence.startswith("warc/")
        assert sentence.endswith(".")


def test_a_file_that_is_wrong_throughout_does_not_bury_the_others(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path / "crawl")
    published = published_round(crawl, pages=50)
    published.cdxj.write_bytes(b"")
    sentences = _sentences(crawl)
    assert len(sentences) == MAX_FINDINGS_A_FILE + 1
    assert sentences[-1].endswith(f"and {52 - MAX_FINDINGS_A_FILE} findings more.")


def test_one_round_or_a_sample(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path / "crawl")
    first, second = published_round(crawl), published_round(crawl, SECOND, 2)
    first.warc.unlink()
    assert [finding.round_id for finding in _verify(crawl).findings] == [FIRST]
    assert _verify(crawl, SECOND).findings == ()
    assert [finding.warc_file for finding in _verify(crawl, FIRST).findings] == [first.warc_file]
    found = _verify(crawl, sample=1)
    assert (found.files_known, found.files) == (2, 1)
    second.warc.unlink()
    assert len(_verify(crawl, sample=1).findings) == 1
    assert len(_verify(crawl, sample=9).findings) == 2


def test_files_of_a_round_that_still_runs_have_no_rows_yet(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path / "crawl")
    published = published_round(crawl)
    crawl.write("rounds", crawl.round(1, FIRST, "open"), mode="overwrite")
    _unnamed(published)
    assert _sentences(crawl) == []


def test_a_crawl_that_has_not_begun(tmp_path: Path) -> None:
    assert _verify(SmallCrawl(tmp_path)) == Verification(0, 0, 0, 0, ())
