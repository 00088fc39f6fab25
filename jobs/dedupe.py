"""dedupe: content seen? URL seen? One row a link target with the cash it received.

Writes `content_seen`, `discovered` and the rejects of its own step. State tables are read at
their opening versions; the Python oracles are `recrawl.dedupe.representative` and
`recrawl.rank.aopic`, whose SQL stands here.
"""

from __future__ import annotations

from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.cash_flows import RoundFlows, identified, link_flows, round_flows
from jobs.dedupe_near import near_clusters
from jobs.dedupe_seen import known_among
from jobs.known_rows import among
from recrawl.dedupe.representative import chosen_sql, order_struct_sql, still_stands_sql
from recrawl.spark.application import Step, Summary, step_main
from recrawl.tables.vocabulary import LinkKind, RejectFilter


def run(step: Step) -> Summary:
    """Identify the round's contents and targets."""
    pages, contents, urls = step.slice("pages"), step.opening("contents"), step.opening("urls")
    seen = content_seen(pages, contents, among(step, urls, incumbents(pages, contents)))
    over_full_bands: dict[str, int] = {}
    # Parse signs new texts alone: without any there is nothing to compare.
    if step.configuration.dedupe.near_duplicates and step.application.stored.has_slice("signatures", step.round_id):
        with near_clusters(step) as (clusters, over_full):
            step.write("content_seen", _of_round(seen.join(clusters, "identity_checksum", "left"), step))
            over_full_bands["over_full_bands"] = over_full()
    else:
        step.write("content_seen", _of_round(seen, step))
    with round_flows(step) as flows, known_among(step, received_by_targets(step, flows)) as (received, known):
        targets = discover(step, received, known).persist(StorageLevel.MEMORY_AND_DISK)
        step.write("discovered", _of_round(targets, step))
    row = targets.agg(
        F.count("*"), F.sum(F.col("is_new").cast("int")), F.sum("cash_received"), F.count("colliding_url")
    ).first()
    count, new, cash, colliding = (int(value or 0) for value in row) if row else (0, 0, 0, 0)
    rejected = [collision.asDict() for collision in collisions(targets, step.round_id).collect()] if colliding else []
    step.application.stored.replace_slice("rejects", step.round_id, rejected, "dedupe")
    targets.unpersist()
    return {"targets": count, "new_urls": new, "known_urls": count - new, "cash_received": cash, **over_full_bands}


def _of_round(rows: DataFrame, step: Step) -> DataFrame:
    return rows.withColumn("round_id", F.lit(step.round_id))


def incumbents(pages: DataFrame, contents: DataFrame) -> DataFrame:
    """(url_id) of the representatives in force of the contents that the round's pages show."""
    shown = identified(pages).select("identity_checksum").distinct()
    return contents.join(shown, "identity_checksum", "left_semi").selectExpr("first_url_id AS url_id")


def content_seen(pages: DataFrame, contents: DataFrame, urls: DataFrame) -> DataFrame:
    """One row a content of the round: its representative and its captures.

    Args:
        pages: this round's. contents, urls: at the opening versions.
    """
    captured = (
        identified(pages)
        .where("content_checksum IS NOT NULL")
        .select("url_id", "url", "depth", "identity_checksum", "content_checksum")
    )
    best = captured.groupBy("identity_checksum").agg(
        F.expr(f"min({order_struct_sql(depth='depth', url='url', url_id='url_id')})").alias("best"),
        F.count("*").alias("captures"),
        F.min("content_checksum").alias("content_checksum"),
    )
    in_force = contents.select("identity_checksum", "first_url_id")
    opening = identified(urls).select(
        F.col("url_id").alias("first_url_id"), "state", F.col("identity_checksum").alias("row_checksum")
    )
    this_round = captured.select(
        F.col("url_id").alias("first_url_id"), F.col("identity_checksum").alias("captured_checksum")
    )
    stands = still_stands_sql(
        state="state",
        content_checksum="row_checksum",
        captured_checksum="captured_checksum",
        checksum="identity_checksum",
    )
    return (
        best.join(in_force, "identity_checksum", "left")
        .join(opening, "first_url_id", "left")
        .join(this_round, "first_url_id", "left")
        .select(
            "identity_checksum",
            "content_checksum",
            F.expr(chosen_sql(stands=stands, in_force_url_id="first_url_id", best="best")).alias(
                "representative_url_id"
            ),
            "captures",
        )
    )


def received_by_targets(step: Step, flows: RoundFlows) -> DataFrame:
    """One row a target of the round: the cash and the links that it received."""
    paid = [
        link_flows(step, flows.giving).withColumn("due_at_once", F.lit(False)),
        flows.moves.where("target_url_id IS NOT NULL")
        .join(flows.cash, "url_id", "left")
        .selectExpr(
            "target_url_id AS url_id", "coalesce(effective_cash, 0L) AS cash", "0 AS inlink", "min_depth", "seed_tag",
            "due_at_once",
        ),
    ]  # fmt: skip
    return (
        reduce(DataFrame.unionByName, paid)
        .groupBy("url_id")
        .agg(
            F.sum("cash").cast("bigint").alias("cash_received"),
            F.sum("inlink").cast("bigint").alias("inlinks"),
            F.min("min_depth").alias("min_depth"),
            F.max("seed_tag").alias("seed_tag"),
            F.max("due_at_once").alias("due_at_once"),
        )
    )


def discover(step: Step, received: DataFrame, known: DataFrame) -> DataFrame:
    """Every target of the round, once: what it received, who links to it, whether it is new.

    Where two URLs share an id, `url` is the known one (else the first by name) and `colliding_url` another.

    Args:
        received: `received_by_targets`.
        known: (url_id, known_url, known_host) of the known ones among them, or of all of `urls`.
    """
    pages, links = step.slice("pages"), step.slice("links")
    first_link = "min(struct(dst_url AS url, dst_host AS host, request_url, dst_domain AS domain))"
    named = (
        links.where(f"followed OR link_kind = '{LinkKind.REDIRECT}'")
        .groupBy(F.col("dst_url_id").alias("url_id"))
        .agg(F.expr(first_link).alias("link"), F.max("dst_url").alias("last_url"))
    )
    captured = pages.select("url_id", F.col("url").alias("page_url"), F.col("host").alias("page_host"))
    return (
        received.join(known, "url_id", "left")
        .join(named, "url_id", "left")
        .join(captured, "url_id", "left")
        .withColumn("is_new", F.col("known_url").isNull())
        .withColumn("url", F.coalesce("known_url", "link.url", "page_url"))
        .withColumn(
            "colliding_url", F.expr("CASE WHEN link.url <> url THEN link.url WHEN last_url <> url THEN last_url END")
        )
        .withColumn("host", F.coalesce("known_host", "link.host", "page_host"))
        .withColumn("request_url", F.col("link.request_url"))
        .withColumn("registered_domain", F.col("link.domain"))
        .drop("link", "last_url", "known_url", "page_url", "page_host", "known_host")
    )


def collisions(targets: DataFrame, round_id: str) -> DataFrame:
    """Rejects for targets whose 64-bit id another URL has: their cash went to that one."""
    return targets.where("colliding_url IS NOT NULL").selectExpr(
        f"'{round_id}' AS round_id", "CAST(NULL AS BIGINT) AS src_url_id", "colliding_url AS dst_url",
        "'dedupe' AS step", f"'{RejectFilter.ID_COLLISION}' AS filter",
        "concat('Its 64-bit id is that of ', url) AS reject_reason",
    )  # fmt: skip


if __name__ == "__main__":
    step_main("dedupe")
