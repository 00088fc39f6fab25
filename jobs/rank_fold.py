"""rank's fold: the round's after-images into `urls`, `hosts`, `contents`, `outlinks`.

Two commits a table, an update-only merge and an append, each under a transaction id of the round
and its generation: a fold that was killed is run again and skips what it has committed. All
inputs are slices of this round and state tables at their opening versions, so a second run folds
the same rows.
"""

from __future__ import annotations

from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.cash_flows import outlinks_of_round, site_content_sql
from recrawl.errors import LawBrokenError
from recrawl.frontier.zones import zone_sql
from recrawl.round_ledger import Round
from recrawl.spark.application import Step
from recrawl.spark.delta import bucket_sql, in_parallel

#: Addresses of a host that are remembered.
_MAX_IPS = 16


def fold_all(step: Step, row: Round) -> None:
    """Fold every state table, then count what is there.

    Raises:
        LawBrokenError: the folded table does not hold as many URLs as the law says.
    """
    changes = {
        "urls": _url_changes(step),
        "hosts": host_changes(step),
        "contents": content_changes(step),
        "outlinks": outlink_changes(step),
    }
    step.lease.check()
    in_parallel([partial(_fold, step, row, table, rows) for table, rows in changes.items()])
    counted = step.tables.read("urls").count()
    if counted != int(row["known_after"]):
        raise LawBrokenError(f"After the fold {counted} URLs are known, not {row['known_after']}.")


def _fold(step: Step, row: Round, table: str, changes: DataFrame) -> None:
    rows = changes.withColumn("last_round_id", F.lit(step.round_id))
    transaction = f"fold/{table}/{step.round_id}/{int(row['generation'])}"
    if not step.application.stored.open(table, row.version_at_open(table)).file_uris():
        # In a table without rows everything is new.
        step.tables.fold(table, transaction, None, rows.drop("is_new"))
        return
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    counts = {bool(count["is_new"]): int(count["count"]) for count in rows.groupBy("is_new").count().collect()}
    step.lease.check()
    step.tables.fold(
        table,
        transaction,
        rows.where("NOT is_new").drop("is_new") if counts.get(False) else None,
        rows.where("is_new").drop("is_new") if counts.get(True) else None,
    )
    rows.unpersist()


def _url_changes(step: Step) -> DataFrame:
    return step.slice("url_updates").drop("round_id")


def host_changes(step: Step) -> DataFrame:
    """After-images of hosts that were visited or got new URLs."""
    new_urls = step.slice("url_updates").where("is_new").groupBy("host").agg(F.count("*").alias("new_urls"))
    seen = step.slice("content_seen").select("content_checksum", "representative_url_id")
    pages = (
        step.slice("pages")
        .where(site_content_sql())
        .join(seen, "content_checksum", "left")
        .groupBy("host")
        .agg(
            F.count("*").alias("new_pages"),
            F.sum(F.expr("CAST(coalesce(representative_url_id <> url_id, false) AS INT)")).alias("new_duplicates"),
        )
    )
    visits = step.slice("host_visits").select(
        "host", "requests", *[F.col(name).alias(f"seen_{name}") for name in _SEEN]
    )
    known = step.opening("hosts").withColumn("known", F.lit(True))
    named = (
        step.opening("seeds")
        .select("host", "registered_domain")
        .union(step.slice("discovered").where("registered_domain IS NOT NULL").select("host", "registered_domain"))
    )
    domains = named.groupBy("host").agg(F.min("registered_domain").alias("domain"))
    hosts = new_urls.select("host").union(visits.select("host")).union(pages.select("host")).distinct()
    joined = (
        hosts.join(known, "host", "left")
        .join(new_urls, "host", "left")
        .join(pages, "host", "left")
        .join(visits, "host", "left")
        .join(domains, "host", "left")
    )
    return joined.selectExpr(
        "known IS NULL AS is_new",
        f"{bucket_sql('host', step.buckets)} AS bucket",
        "host", "coalesce(registered_domain, domain) AS registered_domain",
        f"slice(array_distinct(concat(coalesce(seen_ips, array()), coalesce(ips, array()))), 1, {_MAX_IPS}) AS ips",
        f"{zone_sql('coalesce(registered_domain, domain)', step.configuration.frontier.zones)} AS zone",
        "coalesce(seen_robots_digest, robots_digest) AS robots_digest",
        "coalesce(seen_robots_expires_at, robots_expires_at) AS robots_expires_at",
        "CASE WHEN seen_robots_expires_at IS NOT NULL THEN seen_crawl_delay_seconds ELSE crawl_delay_seconds END "
        "AS crawl_delay_seconds",
        "coalesce(seen_adaptive_delay_seconds, adaptive_delay_seconds) AS adaptive_delay_seconds",
        "greatest(seen_last_access_at, last_access_at) AS last_access_at",
        "CASE WHEN requests > 0 THEN seen_blocked_until ELSE blocked_until END AS blocked_until",
        "coalesce(CASE WHEN requests > 0 THEN seen_error_streak END, error_streak, 0) AS error_streak",
        "coalesce(seen_connect_ms, connect_ms) AS connect_ms",
        "coalesce(seen_first_byte_ms, first_byte_ms) AS first_byte_ms",
        "coalesce(url_count, 0L) + coalesce(new_urls, 0L) AS url_count",
        "coalesce(page_count, 0L) + coalesce(new_pages, 0L) AS page_count",
        "coalesce(duplicate_count, 0L) + coalesce(new_duplicates, 0L) AS duplicate_count",
        "coalesce(trap_score, 0D) AS trap_score", "quota_urls_per_round", "mirror_of",
        "coalesce(case_insensitive, false) AS case_insensitive",
        "coalesce(index_names, CAST(array() AS ARRAY<STRING>)) AS index_names",
    )  # fmt: skip


_SEEN = [
    "ips",
    "robots_digest",
    "robots_expires_at",
    "crawl_delay_seconds",
    "adaptive_delay_seconds",
    "last_access_at",
    "blocked_until",
    "error_streak",
    "connect_ms",
    "first_byte_ms",
]


def content_changes(step: Step) -> DataFrame:
    """Contents seen for the first time, and those whose representative changed."""
    known = step.opening("contents").select("content_checksum", "first_url_id", "first_round_id", "cluster_id")
    return (
        step.slice("content_seen")
        .join(known, "content_checksum", "left")
        .where("first_url_id IS NULL OR first_url_id <> representative_url_id")
        .selectExpr(
            "first_round_id IS NULL AS is_new",
            f"CAST(pmod(content_checksum, {step.buckets}) AS INT) AS bucket",
            "content_checksum",
            "representative_url_id AS first_url_id",
            f"coalesce(first_round_id, '{step.round_id}') AS first_round_id",
            "cluster_id",
        )
    )


def outlink_changes(step: Step) -> DataFrame:
    """The outlinks of every page that was parsed."""
    known = step.opening("outlinks").select("bucket", "src_url_id", F.lit(True).alias("known"))
    return (
        outlinks_of_round(step)
        .withColumn("bucket", F.expr(bucket_sql("host", step.buckets)))
        .join(known, ["bucket", "src_url_id"], "left")
        .selectExpr(
            "known IS NULL AS is_new", "bucket", "src_url_id", f"'{step.round_id}' AS links_round_id", "dst_url_ids",
            "outlink_count",
        )
    )  # fmt: skip
