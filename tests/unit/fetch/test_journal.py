"""Journal names, lines, and what a partition's history is rebuilt from."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from recrawl.config.model import Storage
from recrawl.fetch.journal import (
    JOURNAL_SUFFIX,
    PartitionHistory,
    PartName,
    decode_lines,
    encode_line,
    journal_names,
    load_journal_rows,
    parse_time,
    time_text,
)
from recrawl.storage import Store

ROUND_ID = "20261130T030000.000000Z"


def test_names_are_read_back() -> None:
    part = PartName(ROUND_ID, 7, 2, 13)
    assert part.stem == f"recrawl-{ROUND_ID}-p00007-a02-00013"
    assert PartName.parse(part.stored(JOURNAL_SUFFIX)) == part
    assert PartName.parse("other.warc.gz") is None


def test_times_have_microseconds() -> None:
    moment = datetime(2026, 11, 30, 3, 0, 0, 5, tzinfo=UTC)
    assert time_text(moment) == "2026-11-30T03:00:00.000005Z"
    assert parse_time(time_text(moment)) == moment


def test_a_torn_last_line_is_left_out() -> None:
    data = encode_line("fetches", {"url": "http://ü.test/"}) + encode_line("skips", {"url_id": -1})
    assert list(decode_lines(data)) == [("fetches", {"url": "http://ü.test/"}), ("skips", {"url_id": -1})]
    assert list(decode_lines(data[:-1])) == [("fetches", {"url": "http://ü.test/"})]


def test_published_rows_come_by_table_in_the_order_of_parts(tmp_path: Path) -> None:
    store = Store(Storage(root=str(tmp_path)))
    for serial in (2, 10, 1):
        part = PartName(ROUND_ID, 0, 1, serial)
        store.write_bytes(part.stored(JOURNAL_SUFFIX), encode_line("skips", {"url_id": serial}))
    store.write_bytes(PartName(ROUND_ID, 1, 1, 1).stored(JOURNAL_SUFFIX), encode_line("robots", {"host": "a"}))
    assert [row["url_id"] for row in load_journal_rows(store, ROUND_ID, "skips")] == [1, 2, 10]
    assert len(journal_names(store, ROUND_ID, 0)) == 3
    assert len(journal_names(store, ROUND_ID)) == 4


def test_history() -> None:
    def fetched(planned: int, hop: int, final: bool, url: int) -> tuple[str, dict[str, object]]:
        return "fetches", {"planned_url_id": planned, "hop": hop, "final": final, "url_id": url, "attempt": 1}

    history = PartitionHistory()
    robots: list[dict[str, object]] = []
    history.add(
        [
            fetched(1, 0, True, 1),
            fetched(2, 0, False, 2),
            fetched(3, 0, False, 3),
            fetched(3, 1, True, 30),
            ("skips", {"url_id": 4}),
            ("host_visits", {"host": "a", "last_access_at": "2026-11-30T03:00:00.000000Z", "error_streak": 2}),
            ("robots", {"host": "a"}),
        ],
        robots.append,
    )
    assert robots == [{"host": "a"}]
    assert history.settled == {1, 3, 4}
    assert history.skipped == {4}
    assert history.fetched == {1, 2, 3, 30}
    assert list(history.pending_hops) == [2]
    assert history.hosts["a"].error_streak == 2
