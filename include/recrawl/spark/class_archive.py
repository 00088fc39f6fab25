"""The archive of classes that the JVM maps at its start instead of loading and verifying them.

Reading and verifying Spark's and Delta's classes took four of an empty round's 32 seconds (class
data sharing, JEP 350; docs/decisions/0015). `make install` runs this module once: a session that
does what the jobs do, and at its end the JVM writes the classes that it loaded. A JVM that finds
the archive to be of another Java or other jars goes on without it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark import SparkContext, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from recrawl.clock import SystemClock
from recrawl.config import load_configuration
from recrawl.config.model import Configuration
from recrawl.spark.delta import Tables
from recrawl.spark.session import open_session
from recrawl.spark.settings import writing_class_archive
from recrawl.storage import Store
from recrawl.stored_tables import StoredTables


def write_archive(archive: Path) -> None:
    """Write the archive of a session's classes to `archive`."""
    with tempfile.TemporaryDirectory(prefix="recrawl-classes-") as folder:
        root = Path(folder) / "root"
        configuration = load_configuration(environment={}, overrides={"storage": {"root": str(root)}})
        temporary = archive.with_name(f".{archive.name}.{os.getpid()}")
        with writing_class_archive(temporary):
            spark = open_session(configuration)
        _do_what_jobs_do(spark, configuration)
        process = SparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
        # The JVM ends when its standard input does, and writes the archive on its way out.
        process.stdin.close()
        process.wait(timeout=120)
        if temporary.exists():
            temporary.replace(archive)


def _do_what_jobs_do(spark: SparkSession, configuration: Configuration) -> None:
    stored = StoredTables(Store(configuration.storage), configuration.storage)
    stored.create_missing(SystemClock().now())
    tables = Tables(spark, stored)
    rows = spark.createDataFrame(
        [(n, f"http://host{n % 7}.test/{n}", "round") for n in range(200)], "id BIGINT, url STRING, round_id STRING"
    )
    rows = rows.mapInArrow(_same, rows.schema).withColumn("host", F.expr("parse_url(url, 'HOST')"))
    seen = rows.selectExpr(
        "round_id", "xxhash64(url) AS identity_checksum", "id AS content_checksum", "id AS representative_url_id",
        "1L AS captures",
    ).persist(StorageLevel.MEMORY_AND_DISK)  # fmt: skip
    for _ in range(2):
        tables.write_slice("content_seen", "round", seen)
    _aggregates(rows)
    contents = seen.selectExpr(
        "CAST(pmod(identity_checksum, 4) AS INT) AS bucket", "identity_checksum", "content_checksum",
        "representative_url_id AS first_url_id", "round_id AS first_round_id", "round_id AS last_round_id",
    ).persist(StorageLevel.MEMORY_AND_DISK)  # fmt: skip
    tables.fold("contents", "first", None, contents)
    tables.fold("contents", "second", contents.where("first_url_id < 50"), None)
    known = tables.read("contents", stored.version("contents"))
    tables.read_slice("content_seen", "round").join(known, "identity_checksum", "left").where("bucket >= 0").collect()


def _same(batches: Iterator[object]) -> Iterator[object]:
    yield from batches


def _aggregates(rows: DataFrame) -> None:
    """Joins, windows, unions, arrays and the functions that the jobs share."""
    hosts = rows.groupBy("host").agg(F.count("*").alias("pages"), F.countDistinct("id"), F.max("id"), F.sum("id"))
    ranked = rows.selectExpr("*", "row_number() OVER (PARTITION BY host ORDER BY id DESC) AS place")
    lists = rows.groupBy("host").agg(F.array_sort(F.collect_set("id")).alias("ids"))
    joined = (
        ranked.join(hosts, "host", "left")
        .join(lists, "host")
        .join(rows.where("id < 5").select("id"), "id", "left_anti")
        .withColumn("value", F.expr("CASE WHEN place > 1 THEN greatest(exp(-id), 0D) ELSE coalesce(pages, 0) END"))
    )
    exploded = joined.select("id", "host", F.explode("ids").alias("other")).unionByName(
        rows.selectExpr("id", "host", "id AS other")
    )
    exploded.repartition(2, "host").sortWithinPartitions("id").count()
    exploded.join(joined.select("id", "value"), "id", "full").na.fill(0).orderBy(F.desc("value")).limit(10).collect()


def main() -> None:
    """The command line of the set-up."""
    parser = argparse.ArgumentParser(description="Writes the archive of classes that Spark sessions start from.")
    parser.add_argument("archive", type=Path)
    write_archive(parser.parse_args().archive)


if __name__ == "__main__":
    main()
