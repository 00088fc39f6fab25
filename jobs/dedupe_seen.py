"""URL seen? Which targets of a round are known: an exact join, with or without Bloom filters before it.

The join alone decides. A filter only takes ids out of it that are certainly new; what it may have
seen, and every id of a bucket whose filter does not cover the opening version, is joined
(`docs/decisions/0016-what-is-known-already.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.known_rows import MOST_SENT_ROWS, is_large
from recrawl.config.model import Dedupe
from recrawl.dedupe.url_filters import FilterSettings, build_filters, extend_filters, ids_maybe_known
from recrawl.spark.application import Step, say
from recrawl.urls.canonical import RULES_VERSION

_KEPT = "bucket INT, covered BOOLEAN"


def filters_are_used(settings: Dedupe, known_urls: int) -> bool:
    """Whether Bloom filters stand before the join of a crawl of this size."""
    if settings.bloom_filter == "auto":
        return known_urls >= settings.bloom_min_known_urls
    return settings.bloom_filter == "on"


def id_bucket_sql(url_id: str, buckets: int) -> str:
    """SQL of the bucket of an id's filter."""
    return f"CAST(pmod({url_id}, {buckets}) AS INT)"


@contextmanager
def known_among(step: Step, targets: DataFrame) -> Iterator[tuple[DataFrame, DataFrame]]:
    """(targets, known): `known` holds (url_id, known_url, known_host) of the targets that `urls` held at the opening.

    Of a table that is not large, and without filters, `known` is all of `urls`, for the join that follows.
    Else the targets are kept for the block, because they are read twice.

    Args:
        targets: rows with distinct url_ids.
    """
    urls = step.opening("urls").select("url_id", F.col("url").alias("known_url"), F.col("host").alias("known_host"))
    filtered = filters_are_used(step.configuration.dedupe, int(step.round["known_before"]))
    if not filtered and not is_large(step):
        yield targets, urls
        return
    kept = targets.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        ids = maybe_known(step, kept) if filtered else kept.select("url_id")
        if kept.count() <= MOST_SENT_ROWS:
            ids = F.broadcast(ids)
        yield kept, urls.join(ids, "url_id", "left_semi")
    finally:
        kept.unpersist()


def maybe_known(step: Step, ids: DataFrame) -> DataFrame:
    """The url_ids that the filters leave to the exact join."""
    settings = FilterSettings(step.configuration.storage, step.round.version_at_open("urls"), RULES_VERSION)
    return _by_bucket(ids, step.buckets).mapInArrow(partial(ids_maybe_known, settings=settings), "url_id BIGINT")


def keep_filters(step: Step, error_rate: float | None = None) -> int:
    """Bring every filter to the version of `urls` that the fold made; how many were built anew.

    Run again it changes nothing. A filter that covered the opening version gets the round's new ids;
    another one is built from the table.
    """
    before, after = step.round.version_at_open("urls"), step.application.stored.version("urls")
    settings = FilterSettings(step.configuration.storage, before, RULES_VERSION)
    new_ids = _by_bucket(step.slice("url_updates").where("is_new"), step.buckets, every_bucket=True)
    extended = new_ids.mapInArrow(partial(extend_filters, settings=settings, new_version=after), _KEPT)
    missing = sorted(row["bucket"] for row in extended.where("NOT covered").collect())
    if missing:
        step.lease.check()
        rate = {} if error_rate is None else {"error_rate": error_rate}
        settings = FilterSettings(step.configuration.storage, after, RULES_VERSION, **rate)
        known = _by_bucket(step.tables.read("urls", after), step.buckets, every_bucket=True)
        wanted = known.where(F.col("bucket").isin(missing))
        wanted.mapInArrow(partial(build_filters, settings=settings), _KEPT).collect()
        say(f"rank: {len(missing)} Bloom filters of `urls` were built; they cover version {after}.")
    return len(missing)


def _by_bucket(ids: DataFrame, buckets: int, every_bucket: bool = False) -> DataFrame:
    """(bucket, url_id), a bucket in one task; `every_bucket`: with a row whose url_id is NULL for each."""
    rows = ids.selectExpr(f"{id_bucket_sql('url_id', buckets)} AS bucket", "url_id")
    if every_bucket:
        rows = rows.union(
            ids.sparkSession.range(buckets).selectExpr("CAST(id AS INT) AS bucket", "CAST(NULL AS BIGINT) AS url_id")
        )
    return rows.repartition("bucket").sortWithinPartitions("bucket")
