"""The two ways in which tables are written, and how they are read, on real Delta tables."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from recrawl.errors import TableError
from recrawl.spark.delta import bucket_sql, conform, in_parallel
from recrawl.spark.direct import small_snapshot_files
from recrawl.spark.schema import schema_of
from recrawl.tables.catalog import MODEL_VERSION, TABLES
from recrawl.tables.ddl import MODEL_VERSION_PROPERTY
from recrawl.urls.keys import bucket_of
from tests.jobs.crawl import BEFORE, NOW, ROUND, JobCrawl, plain, row_of_fetch, row_of_url

ONE, TWO, THREE, FOUR = (f"http://host{number}.test/" for number in range(1, 5))


def _by_delta(crawl: JobCrawl, table: str, version: int | None = None) -> list[tuple[object, ...]]:
    reader = crawl.spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return plain(reader.load(crawl.stored.path(table)), *(column.name for column in TABLES[table].columns))


def _read(crawl: JobCrawl, table: str, version: int | None = None) -> list[tuple[object, ...]]:
    return plain(crawl.tables.read(table, version), *(column.name for column in TABLES[table].columns))


def _reads_directly(crawl: JobCrawl, table: str, version: int | None = None) -> bool:
    return small_snapshot_files(crawl.application.store, table, version, {}) is not None


def test_a_slice_replaces_itself_and_no_other(crawl: JobCrawl) -> None:
    tables = crawl.tables
    before = crawl.stored.version("fetches")
    old = [{"round_id": BEFORE, **row_of_fetch(ONE)}]
    new = [{"round_id": ROUND, **row_of_fetch(url)} for url in (TWO, THREE)]
    tables.write_slice("fetches", BEFORE, crawl.frame("fetches", old))
    tables.write_slice("fetches", ROUND, crawl.frame("fetches", new))
    first = _read(crawl, "fetches")
    # Again with the same rows, as a step that is run again does.
    tables.write_slice("fetches", ROUND, crawl.frame("fetches", new))
    assert _read(crawl, "fetches") == first
    assert crawl.stored.version("fetches") == before + 3
    # Again with fewer: what is no longer there goes.
    tables.write_slice("fetches", ROUND, crawl.frame("fetches", new[:1]))
    assert plain(tables.read("fetches"), "round_id", "url") == [(BEFORE, ONE), (ROUND, TWO)]
    assert plain(tables.read_slice("fetches", ROUND), "url") == [(TWO,)]
    assert _read(crawl, "fetches") == _by_delta(crawl, "fetches")


def test_steps_that_share_a_table_replace_only_their_own_slice(crawl: JobCrawl) -> None:
    tables = crawl.tables
    for step, target in (("parse", ONE), ("dedupe", TWO), ("parse", THREE)):
        row = {"round_id": ROUND, "dst_url": target, "step": step, "filter": "scope", "reject_reason": "far away"}
        tables.write_slice("rejects", ROUND, crawl.frame("rejects", [row]), step)
    assert plain(tables.read_slice("rejects", ROUND), "step", "dst_url") == [("dedupe", TWO), ("parse", THREE)]
    crawl.stored.delete_slice("rejects", ROUND)
    assert plain(tables.read("rejects"), "step") == []


def test_folds_are_done_once_and_read_alike_in_both_ways(own_crawl: JobCrawl) -> None:
    tables = own_crawl.tables
    rows = [row_of_url(f"{base}{page}", etag=str(page)) for base in (ONE, TWO, THREE) for page in range(25)]
    touched = [row["url"] for row in rows[::25]]

    def fold(transaction: str, depth: int) -> list[tuple[object, ...]]:
        updates = [{**row, "depth": depth} for row in rows[::25]]
        inserts = [row_of_url(FOUR, depth=depth)]
        tables.fold("urls", transaction, own_crawl.frame("urls", updates), own_crawl.frame("urls", inserts))
        return plain(tables.read("urls").where("depth > 0"), "url", "depth")

    tables.fold("urls", "fold/urls/0/0", None, own_crawl.frame("urls", rows))
    assert _reads_directly(own_crawl, "urls")
    first = _read(own_crawl, "urls")
    assert len(first) == 75
    assert first == _by_delta(own_crawl, "urls")

    # A merge that touches one row of each file marks the old rows by deletion vectors.
    assert fold("fold/urls/1/0", 5) == [(url, 5) for url in sorted([*touched, FOUR])]
    assert not _reads_directly(own_crawl, "urls")
    second = _read(own_crawl, "urls")
    assert len(second) == 76
    assert second == _by_delta(own_crawl, "urls")
    # The version before it is read directly still, and as it was.
    assert _reads_directly(own_crawl, "urls", 1)
    assert _read(own_crawl, "urls", 1) == first
    assert _read(own_crawl, "urls", 0) == []

    # The rerun of a step that was killed, whatever it brings: both commits are skipped.
    assert own_crawl.stored.version("urls") == 3
    assert fold("fold/urls/1/0", 6) == [(url, 5) for url in sorted([*touched, FOUR])]
    assert own_crawl.stored.versions(("urls", "hosts")) == {"urls": 3, "hosts": 0}
    # After an undo the generation is another one, and the round is folded anew.
    tables.restore("urls", 1)
    assert _read(own_crawl, "urls") == first
    assert fold("fold/urls/1/1", 7) == [(url, 7) for url in sorted([*touched, FOUR])]
    # The merge left no transaction behind for what is written next.
    assert own_crawl.spark.conf.get("spark.databricks.delta.write.txnAppId", "none") == "none"


def test_files_are_skipped_only_where_nothing_is_asked_of_them(own_crawl: JobCrawl) -> None:
    due = NOW + timedelta(microseconds=123_456)
    rows = [row_of_url(f"{base}{page}", next_fetch_at=due) for base in (ONE, TWO, THREE) for page in range(3)]
    own_crawl.tables.fold("urls", "fold/urls/0/0", None, own_crawl.frame("urls", rows))
    urls = own_crawl.spark.read.format("delta").load(own_crawl.stored.path("urls"))
    just_before = (due - timedelta(microseconds=1)).isoformat()
    asked = {
        f"host = '{rows[0]['host']}'": 3,
        f"url_id = {rows[4]['url_id']}": 1,
        f"next_fetch_at > TIMESTAMP '{just_before}'": 9,
        f"next_fetch_at > TIMESTAMP '{due.isoformat()}'": 0,
        "content_checksum IS NULL": 9,
        "host = 'absent.test'": 0,
    }
    assert {question: urls.where(question).count() for question in asked} == asked


def test_sql_sorts_hosts_into_the_buckets_of_python(spark: SparkSession) -> None:
    hosts = [f"host{number}.test" for number in range(200)] + ["", "bücher.example", "h:8080"]
    frame = spark.createDataFrame([(host,) for host in hosts], "host STRING")
    buckets = frame.selectExpr("host", f"{bucket_sql('host', 16)} AS bucket")
    assert plain(buckets, "host", "bucket") == sorted(((h, bucket_of(h, 16)) for h in hosts), key=repr)


def test_rows_that_break_a_constraint_are_refused(crawl: JobCrawl) -> None:
    bad = {
        "outcome": "splendid",  # not in the vocabulary
        "bytes_body": -1,  # below the least value
        "url": None,  # NOT NULL
    }
    version = crawl.stored.version("fetches")
    for column, value in bad.items():
        row = crawl.frame("fetches", [{"round_id": ROUND, **row_of_fetch(ONE)}])
        broken = row.withColumn(column, F.lit(value).cast(row.schema[column].dataType))
        with pytest.raises(PythonException, match=column):
            crawl.tables.write_slice("fetches", "20270101T000000.000000Z", broken)
    with pytest.raises(PythonException, match="state"):
        crawl.tables.fold("urls", "bad", None, crawl.frame("urls", [row_of_url(ONE, state="splendid")]))
    assert crawl.stored.version("fetches") == version
    assert plain(crawl.tables.read("urls"), "url") == []


def test_rows_take_the_tables_columns(crawl: JobCrawl) -> None:
    link = crawl.spark.sql("SELECT 'x' AS surplus, 1 AS src_url_id, 'r' AS round_id, 'scope' AS filter, 'u' AS dst_url")
    with pytest.raises(TableError, match="Rows for rejects lack the column step"):
        conform(link, "rejects")
    row = conform(link.selectExpr("*", "'parse' AS step", "'far' AS reject_reason").drop("src_url_id"), "rejects")
    assert row.columns == [column.name for column in TABLES["rejects"].columns]
    assert plain(row, "src_url_id", "dst_url") == [(None, "u")]


def test_each_kind_of_table_is_written_in_its_own_way(crawl: JobCrawl) -> None:
    rows = crawl.frame("urls", [row_of_url(ONE)])
    with pytest.raises(TableError, match="urls has no slices"):
        crawl.tables.write_slice("urls", ROUND, rows)
    for write in (crawl.stored.put, crawl.stored.replace):
        with pytest.raises(TableError, match="fetches is a table of another kind: event, not ledger"):
            write("fetches", [])
    with pytest.raises(TableError, match="rounds is a table of another kind: ledger, not event"):
        crawl.stored.delete_slice("rounds", ROUND)


def test_tables_of_a_newer_program_are_refused_in_one_sentence(own_crawl: JobCrawl) -> None:
    assert own_crawl.stored.create_missing(NOW) == []
    newer = MODEL_VERSION + 1
    table = f"delta.`{own_crawl.stored.path('rounds')}`"
    own_crawl.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{MODEL_VERSION_PROPERTY}' = {newer})")
    with pytest.raises(TableError) as refusal:
        own_crawl.stored.create_missing(NOW)
    assert f"crawl.rounds has model version {newer}, this program knows {MODEL_VERSION}." in str(refusal.value)
    assert str(refusal.value).endswith("Use the newer program.")


def test_tables_with_other_columns_are_refused_with_what_differs_and_the_mend(own_crawl: JobCrawl) -> None:
    path = f"delta.`{own_crawl.stored.path('host_visits')}`"
    own_crawl.spark.sql(f"ALTER TABLE {path} ADD COLUMNS (mood STRING)")
    with pytest.raises(TableError, match=r"another version of recrawl: host_visits has the unknown mood\.") as refusal:
        own_crawl.stored.create_missing(NOW)
    assert str(refusal.value).endswith("set storage.root to a new place and crawl anew.")
    # As an older program left it: a column that came later is not there, and nothing new is made beside it.
    shutil.rmtree(own_crawl.stored.path("host_visits"))
    shutil.rmtree(own_crawl.stored.path("robots"))
    kept = [field for field in schema_of("host_visits").fields if field.name != "dns_ms"]
    columns = [f"{field.name} {field.dataType.simpleString()}" for field in kept]
    own_crawl.spark.sql(f"CREATE TABLE {path} ({', '.join(columns)}) USING DELTA")
    with pytest.raises(TableError, match=r"host_visits lacks dns_ms\."):
        own_crawl.stored.create_missing(NOW)
    assert not own_crawl.application.store.exists("tables/robots")


def test_a_table_that_is_not_there_has_no_version(crawl: JobCrawl) -> None:
    with pytest.raises(TableError, match="The table nothing has no commits"):
        crawl.stored.version("nothing")


def test_parallel_actions_keep_their_order_and_raise() -> None:
    assert in_parallel([lambda n=n: n * n for n in range(10)]) == [n * n for n in range(10)]  # type: ignore[misc]
    assert in_parallel([]) == []
    with pytest.raises(ZeroDivisionError):
        in_parallel([lambda: 1 // 0, lambda: 1])
