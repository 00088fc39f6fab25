"""What a rekey changes of the state tables: whole rows to put, and keys to drop (`Tables.rekey`).

All of it follows from the round's slices of `url_aliases` and `url_updates` and from the opening
versions, so a second run folds the same rows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.rekey_rows import domains_of
from recrawl.spark.application import Step
from recrawl.spark.delta import bucket_sql


def url_changes(step: Step) -> DataFrame:
    """The staged rows, and the keys whose rows another one has taken in."""
    staged = step.slice("url_updates").drop("round_id", "is_new").withColumn("dropped", F.lit(False))
    gone = _gone(step).selectExpr(f"{bucket_sql('host', step.buckets)} AS bucket", "url_id", "true AS dropped")
    return staged.unionByName(gone, allowMissingColumns=True)


def _gone(step: Step) -> DataFrame:
    """(url_id, host) of known URLs that have no row any more under their id."""
    known = step.opening("urls").select("url_id")
    aliases = step.slice("url_aliases").select("url_id", "host").join(known, "url_id", "left_semi")
    return aliases.join(step.slice("url_updates").select("url_id"), "url_id", "left_anti")


def host_changes(step: Step) -> DataFrame:
    """Hosts with other URLs than before: their count, and a row for a host that was not known."""
    come = step.slice("url_updates").where("is_new").select("host", F.lit(1).alias("by"))
    counts = (
        come.unionByName(_gone(step).select("host", F.lit(-1).alias("by"))).groupBy("host").agg(F.sum("by").alias("by"))
    )
    known = step.opening("hosts").withColumn("known", F.lit(True))
    unknown = counts.join(known.select("host"), "host", "left_anti").select("host")
    domains = unknown.mapInArrow(domains_of, "host STRING, domain STRING")
    return (
        counts.where("by <> 0")
        .join(known, "host", "left")
        .join(domains, "host", "left")
        .withColumns(
            {
                "bucket": F.expr(bucket_sql("host", step.buckets)),
                "registered_domain": F.coalesce("registered_domain", "domain"),
                "ips": F.expr("coalesce(ips, CAST(array() AS ARRAY<STRING>))"),
                "zone": F.expr("coalesce(zone, 'default')"),
                "url_count": F.expr("greatest(0L, coalesce(url_count, 0L) + by)"),
                **{
                    name: F.expr(f"coalesce({name}, 0)")
                    for name in ("error_streak", "page_count", "duplicate_count", "trap_link_count", "trap_score")
                },
                "case_insensitive": F.expr("coalesce(case_insensitive, false)"),
                "index_names": F.expr("coalesce(index_names, CAST(array() AS ARRAY<STRING>))"),
                "last_round_id": F.lit(step.round_id),
                "dropped": F.lit(False),
            }
        )
        .drop("known", "by", "domain")
    )


def content_changes(step: Step) -> DataFrame:
    """Contents whose representative has another id."""
    aliases = step.slice("url_aliases").selectExpr("url_id AS first_url_id", "alias_of_url_id")
    return (
        step.opening("contents")
        .join(aliases, "first_url_id")
        .withColumn("first_url_id", F.col("alias_of_url_id"))
        .withColumns({"last_round_id": F.lit(step.round_id), "dropped": F.lit(False)})
        .drop("alias_of_url_id")
    )


def outlink_changes(step: Step) -> DataFrame:
    """Outlinks of pages with another id, and those that lead to one; of rows that fall together the newest.

    Targets that are one now count once, in `outlink_count` too; a link that leads to its own page is none.
    """
    aliases = step.slice("url_aliases").select("url_id", "alias_of_url_id")
    outlinks = step.opening("outlinks")
    of_source = aliases.selectExpr("url_id AS src_url_id", "alias_of_url_id")
    takers = aliases.selectExpr("alias_of_url_id AS src_url_id").distinct()
    targets = outlinks.select("bucket", "src_url_id", F.explode("dst_url_ids").alias("dst_url_id"))
    of_target = aliases.selectExpr("url_id AS dst_url_id", "alias_of_url_id AS new_target")
    touched = (
        targets.join(of_target, "dst_url_id", "left_semi")
        .select("src_url_id")
        .union(of_source.select("src_url_id"))
        .union(takers)
        .distinct()
    )
    newest = "row_number() OVER (PARTITION BY new_source ORDER BY links_round_id DESC, src_url_id)"
    kept = (
        outlinks.join(touched, "src_url_id", "left_semi")
        .join(of_source, "src_url_id", "left")
        .withColumn("new_source", F.coalesce("alias_of_url_id", "src_url_id"))
        .withColumn("place", F.expr(newest))
        .where("place = 1")
    )
    renamed = (
        kept.select("new_source", F.explode("dst_url_ids").alias("dst_url_id"))
        .join(of_target, "dst_url_id", "left")
        .withColumn("target", F.coalesce("new_target", "dst_url_id"))
        .where("target <> new_source")
        .groupBy("new_source")
        .agg(F.array_sort(F.collect_set("target")).alias("new_targets"))
    )
    bucket_of_new = step.slice("url_updates").selectExpr("url_id AS new_source", "bucket AS new_bucket")
    rows = (
        kept.join(renamed, "new_source", "left")
        .join(bucket_of_new, "new_source", "left")
        .withColumn("new_targets", F.expr("coalesce(new_targets, CAST(array() AS ARRAY<BIGINT>))"))
        .selectExpr(
            # A page that is only touched by its targets has no staged row, and keeps its bucket.
            "CASE WHEN alias_of_url_id IS NULL THEN bucket ELSE coalesce(new_bucket, bucket) END AS bucket",
            "new_source AS src_url_id", "links_round_id", "new_targets AS dst_url_ids",
            "CAST(outlink_count - (size(dst_url_ids) - size(new_targets)) AS INT) AS outlink_count",
            f"'{step.round_id}' AS last_round_id", "false AS dropped",
        )
    )  # fmt: skip
    gone = (
        outlinks.select("bucket", "src_url_id")
        .join(of_source, "src_url_id", "left_semi")
        .join(rows.select("src_url_id"), "src_url_id", "left_anti")
        .withColumn("dropped", F.lit(True))
    )
    return rows.unionByName(gone, allowMissingColumns=True)
