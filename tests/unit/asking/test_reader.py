"""The tables through another engine than Spark."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from recrawl.asking.reader import Reader
from recrawl.config.model import Storage
from recrawl.errors import TableError, UsageError
from recrawl.storage import Store
from recrawl.urls.keys import url_id
from tests.unit.asking.small_crawl import CAPPED, FIRST, HOME, PRIVATE, SECOND, THIRD, SmallCrawl


@pytest.fixture
def reader(crawl: SmallCrawl) -> Reader:
    return Reader(crawl.store)


def _urls(reader: Reader, at: str | None = None) -> list[str]:
    found: list[str] = reader.query("SELECT url FROM crawl.urls ORDER BY url", at).column("url").to_pylist()
    return found


def test_tables_answer_by_both_names(reader: Reader) -> None:
    assert _urls(reader) == [HOME, CAPPED, PRIVATE]
    assert reader.query("SELECT count(*) AS n FROM urls;").to_pylist() == [{"n": 3}]


def test_joins_and_urls_as_ids(reader: Reader) -> None:
    rows = reader.query(
        "WITH u AS (SELECT * FROM crawl.urls WHERE url_id = url_id('HTTPS://Example.org:443/capped?utm_source=x#top'))\n"
        "SELECT u.url, s.skip_reason, 'url_id(''x'')' AS text -- url_id('x') is left alone\n"
        "FROM u JOIN crawl.skips s ON s.url_id = u.url_id"
    ).to_pylist()
    assert rows == [{"url": CAPPED, "skip_reason": "capacity", "text": "url_id('x')"}]
    assert reader.query("SELECT url_id('nothing') AS id").to_pylist() == [{"id": None}]
    assert reader.url_id(HOME) == url_id(HOME)


def test_times_are_utc(reader: Reader) -> None:
    assert reader.query("SELECT last_fetch_at FROM urls").schema.field(0).type == pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(("at", "count"), [("1", 2), (FIRST, 2), ("2", 3), ("last", 3), ("-2", 2), ("2026-11-30", 2)])
def test_at_a_round_the_tables_are_as_it_left_them(reader: Reader, at: str, count: int) -> None:
    assert len(_urls(reader, at)) == count


def test_an_open_round_has_no_end_to_look_at(reader: Reader) -> None:
    with pytest.raises(UsageError, match="is open"):
        reader.query("SELECT 1", at="3")


@pytest.mark.parametrize("state", ["folding", "undoing"])
def test_half_way_state_tables_are_seen_as_they_were_before(crawl: SmallCrawl, state: str) -> None:
    crawl.write("urls", crawl.url("https://example.org/half", state="new"))
    crawl.write("skips", {"round_id": THIRD, "url_id": 1, "step": "fetch", "skip_reason": "deadline"})
    opening = {"urls": DeltaTable(crawl.path("urls")).version() - 1, "skips": 0}
    rows = [
        crawl.round(1, FIRST, "closed", versions_at_close={"urls": 1}),
        crawl.round(2, SECOND, state, versions_at_open=opening),
    ]
    crawl.write("rounds", *rows, mode="overwrite")
    reader = Reader(crawl.store)
    assert len(_urls(reader)) == 3
    assert reader.query("SELECT count(*) AS n FROM skips").to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT nope FROM crawl.urls", "nope"),
        ("SELECT * FROM crawl.nothing", "nothing"),
        ("SELEC 1", "Only reading"),
        ("DELETE FROM crawl.urls", "Only reading"),
        ("COPY crawl.urls TO '/tmp/x.parquet'", "Only reading"),
        ("DROP TABLE crawl.urls", "Only reading"),
        ("SELECT CAST('x' AS BIGINT) FROM urls", "Cannot cast"),
    ],
)
def test_what_can_not_be_answered_is_refused_in_a_sentence(reader: Reader, sql: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        reader.query(sql).to_pylist()
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_crawl_that_has_not_begun(tmp_path: Path) -> None:
    reader = Reader(Store(Storage(root=str(tmp_path))))
    assert reader.rounds() == []
    assert reader.table_sizes() == []
    assert reader.current_versions() == {}
    with pytest.raises(TableError, match=r"no table crawl\.urls .* yet"):
        reader.query("SELECT * FROM crawl.urls")


def test_a_table_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path)
    crawl.write("urls", crawl.url(HOME), model_version=99)
    with pytest.raises(TableError, match="model version 99"):
        Reader(crawl.store).query("SELECT * FROM urls")


def test_a_version_that_is_gone_is_named(crawl: SmallCrawl) -> None:
    crawl.write("rounds", crawl.round(1, FIRST, "closed", versions_at_close={"urls": 77}), mode="overwrite")
    with pytest.raises(TableError, match="no longer has its version 77"):
        Reader(crawl.store).query("SELECT * FROM urls", at="1")


def test_rounds_hold_their_versions_as_dicts(reader: Reader) -> None:
    rounds = reader.rounds()
    assert [row["round_id"] for row in rounds] == [FIRST, SECOND, THIRD]
    assert rounds[0]["versions_at_close"] == {"urls": 1}
    assert rounds[2]["versions_at_close"] is None


def test_sizes_count_live_rows(crawl: SmallCrawl, reader: Reader) -> None:
    sizes = {size.table: size for size in reader.table_sizes()}
    assert sizes["urls"].rows == 3
    assert sizes["urls"].version == 2
    assert sizes["fetches"].files == 2
    assert all(size.bytes > 0 for size in sizes.values())
    assert "pages" not in sizes


def test_duckdb_reads_the_arrow_stream(crawl: SmallCrawl) -> None:
    urls = DeltaTable(crawl.path("urls"))
    stream = pa.RecordBatchReader.from_stream(QueryBuilder().register("urls", urls).execute("SELECT * FROM urls"))
    rows = duckdb.connect().execute("SELECT state, count(*) FROM stream GROUP BY state ORDER BY state").fetchall()
    assert stream is not None
    assert rows == [("denied", 1), ("fetched", 1), ("new", 1)]
