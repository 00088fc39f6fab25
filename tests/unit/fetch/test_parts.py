"""Parts in the spool: the order of publishing, and salvage from every point of a kill."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recrawl.clock import ManualClock
from recrawl.config.model import Fetch, Storage
from recrawl.fetch.journal import CDXJ_SUFFIX, JOURNAL_SUFFIX, WARC_SUFFIX, PartName, load_journal_rows
from recrawl.fetch.parts import PartSpool, next_attempt
from recrawl.fetch.salvage import salvage_spool
from recrawl.storage import Store
from recrawl.warc.check import check_warc
from recrawl.warc.reader import read_capture
from recrawl.warc.records import Exchange

ROUND_ID = "20261130T030000.000000Z"
NOW = datetime(2026, 11, 30, 3, 0, 0, tzinfo=UTC)
PART = PartName(ROUND_ID, 0, 1, 1)


class Bench:
    """A store, a spool folder, and parts written into it."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(NOW)
        self.store = Store(Storage(root=str(folder / "crawl")))
        self.spool_dir = folder / "spool"
        self.spool_dir.mkdir()
        self.spool = PartSpool(
            self.store, self.spool_dir, PART, Fetch(), {"software": "recrawl"}, self.clock, lambda: [], lambda: None
        )

    def add(self, number: int) -> None:
        body = b"page %d" % number
        exchange = Exchange(
            f"http://a.test/{number}", NOW, "127.0.0.1", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body, len(body), "", None, None,
            {"fetchTimeMs": "1"},
        )  # fmt: skip
        place = self.spool.write(exchange)
        self.spool.add_row("fetches", self.row(number) | {
            "warc_file": self.spool.warc_file, "warc_offset": place.offset, "warc_length": place.length,
        })  # fmt: skip

    @staticmethod
    def row(number: int) -> dict[str, Any]:
        return {
            "round_id": ROUND_ID, "planned_url_id": number, "url_id": number, "host": "a.test", "ip": "127.0.0.1",
            "ended_at": "2026-11-30T03:00:00.000000Z", "started_at": "2026-11-30T03:00:00.000000Z",
            "outcome": "ok", "final": True, "attempt": 1, "hop": 0,
        }  # fmt: skip

    def salvage(self) -> list[str]:
        return salvage_spool(self.store, self.spool_dir, ROUND_ID, 0, self.clock)

    def published(self, table: str = "fetches") -> list[dict[str, Any]]:
        return list(load_journal_rows(self.store, ROUND_ID, table))

    def check(self) -> None:
        """Every published row can be read back where it says, and the WARC files are valid."""
        for row in self.published():
            path = self.store.local_path(row["warc_file"])
            with path.open("rb") as file:
                capture = read_capture(file, row["warc_offset"], 1000)
            assert capture.body == b"page %d" % row["url_id"]
            assert check_warc(path) == []
        for row in self.published("warc_files"):
            assert self.store.local_path(row["warc_file"]).stat().st_size == row["bytes"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_published_part_is_whole(bench: Bench) -> None:
    bench.add(1)
    bench.add(2)
    bench.spool.publish()
    bench.spool.publish()
    assert [row["url_id"] for row in bench.published()] == [1, 2]
    assert bench.store.exists(PART.stored(CDXJ_SUFFIX))
    assert list(bench.spool_dir.iterdir()) == []
    bench.add(3)
    bench.spool.publish()
    assert [row["warc_file"] for row in bench.published("warc_files")] == [
        PART.stored(WARC_SUFFIX),
        PART._replace(serial=2).stored(WARC_SUFFIX),
    ]
    bench.check()


def test_rows_alone_are_published_without_warc(bench: Bench) -> None:
    bench.spool.add_row("skips", {"url_id": 1})
    bench.spool.publish()
    assert bench.published("skips") == [{"url_id": 1}]
    assert not bench.store.exists(PART.stored(WARC_SUFFIX))


def test_parts_are_flushed_and_published_in_time(bench: Bench) -> None:
    bench.add(1)
    bench.spool.tend()
    assert not (bench.spool_dir / (PART.stem + JOURNAL_SUFFIX)).exists()
    bench.clock.sleep(30)
    bench.spool.tend()
    assert (bench.spool_dir / (PART.stem + JOURNAL_SUFFIX)).exists()
    bench.clock.sleep(270)
    bench.spool.tend()
    assert [row["url_id"] for row in bench.published()] == [1]


def test_what_was_flushed_survives_a_kill_and_the_rest_is_cut(bench: Bench) -> None:
    bench.add(1)
    bench.spool.flush()
    bench.add(2)
    bench.spool._writer.flush()  # type: ignore[union-attr]  # records without rows, as a kill leaves them
    with (bench.spool_dir / (PART.stem + JOURNAL_SUFFIX)).open("ab") as journal:
        journal.write(b'{"table":"fetches","row":{"url_id":2,')
    assert bench.salvage() == [PART.stored(JOURNAL_SUFFIX)]
    assert [row["url_id"] for row in bench.published()] == [1]
    assert bench.published("host_visits")[0]["requests"] == 1
    assert bench.published("warc_files")[0]["records"] == 4
    bench.check()
    assert bench.salvage() == []
    bench.spool.abandon()


def test_captures_without_rows_are_not_published(bench: Bench) -> None:
    bench.add(1)
    bench.spool._writer.flush()  # type: ignore[union-attr]
    assert bench.salvage() == []
    assert list(bench.spool_dir.iterdir()) == []
    bench.spool.abandon()


def test_a_lost_tail_of_the_warc_file_takes_its_rows_with_it(bench: Bench) -> None:
    bench.add(1)
    bench.spool.flush()
    first_bytes = (bench.spool_dir / (PART.stem + WARC_SUFFIX)).stat().st_size
    bench.add(2)
    bench.spool.flush()
    with (bench.spool_dir / (PART.stem + WARC_SUFFIX)).open("r+b") as file:
        file.truncate(first_bytes + 20)
    bench.salvage()
    assert [row["url_id"] for row in bench.published()] == [1]
    bench.check()
    bench.spool.abandon()


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_publishing_goes_on_from_between_the_renames(bench: Bench, tmp_path: Path, moved: int) -> None:
    bench.add(1)
    bench.add(2)
    kept = tmp_path / "kept"

    def keep_a_copy(store: Store, folder: Path, part: PartName) -> None:
        shutil.copytree(folder, kept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recrawl.fetch.parts.publish_part", keep_a_copy)
        bench.spool.publish()
    for suffix in (WARC_SUFFIX, CDXJ_SUFFIX)[:moved]:
        bench.store.publish(kept / (PART.stem + suffix), PART.stored(suffix))
    bench.spool_dir = kept
    assert bench.salvage() == [PART.stored(JOURNAL_SUFFIX)]
    assert [row["url_id"] for row in bench.published()] == [1, 2]
    assert len(bench.published("warc_files")) == 1
    assert bench.store.exists(PART.stored(CDXJ_SUFFIX))
    bench.check()
    assert list(kept.iterdir()) == []


def test_attempts_count_on(bench: Bench) -> None:
    assert next_attempt(bench.store, ROUND_ID, 0, bench.spool_dir) == 1
    bench.store.write_bytes(PART._replace(attempt=3).stored(JOURNAL_SUFFIX), b"")
    (bench.spool_dir / (PART._replace(attempt=4).stem + WARC_SUFFIX)).touch()
    assert next_attempt(bench.store, ROUND_ID, 0, bench.spool_dir) == 5
