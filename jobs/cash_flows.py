"""Who hands cash to whom in a round: the SQL of AOPIC's rules 2 and 3 (`recrawl.rank.aopic`).

Used by dedupe (what each target receives) and by rank (what each page gives away), so that both
see the same flows and the law that compares them can fail only where rows were lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.known_rows import among
from recrawl.rank.aopic import effective_cash_sql, lambda_parts, resolve_representative_sql, share_sql
from recrawl.rank.transitions import payable_sql
from recrawl.spark.application import Step
from recrawl.tables.vocabulary import ChangeVerdict, LinkKind, Outcome, ParseOutcome, UrlState


@dataclass(frozen=True)
class RoundFlows:
    """The flows of a round, computed once and kept while a step runs.

    Attributes:
        cash: (url_id, effective_cash) of every URL that was tried: what it held when the round
            opened, with the seed credit that is due (rule 1 comes before the others).
        moves: (url_id, target_url_id, min_depth, seed_tag, due_at_once) of redirects and duplicates;
            target_url_id is NULL where the target was turned away: Lambda has the cash.
        giving: captured pages that are their own representative: (url_id, effective_cash,
            outlink_count, kept_outlink_count, share, depth, seed_tag, change_verdict).
    """

    cash: DataFrame
    moves: DataFrame
    giving: DataFrame


@contextmanager
def round_flows(step: Step) -> Iterator[RoundFlows]:
    """The flows of the step's round, persisted for the block."""
    cash = _cash_of_tried(step).persist(StorageLevel.MEMORY_AND_DISK)
    moves = account_moves(step).persist(StorageLevel.MEMORY_AND_DISK)
    giving = giving_pages(step, cash).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield RoundFlows(cash, moves, giving)
    finally:
        for frame in (cash, moves, giving):
            frame.unpersist()


def held_sql(step: Step) -> tuple[str, str]:
    """SQL of (credit_due, effective_cash) over the columns state, cash, lambda_index, seed_credit of a URL
    at the opening version and credit_granted of its seed, each NULL where there is no such row."""
    index = f"{int(step.round['lambda_index_after'])}L"
    due = "greatest(0L, coalesce(credit_granted, 0L) - coalesce(seed_credit, 0L))"
    payable = f"coalesce({payable_sql('state')}, false)"
    return due, effective_cash_sql("cash", "lambda_index", index, payable, due)


def site_content_sql() -> str:
    """SQL over a row of `pages`: whether it shows content of the site, not a refusal or a soft 404."""
    return f"parse_outcome NOT IN ('{ParseOutcome.REFUSED}', '{ParseOutcome.SOFT_404}')"


def identified(pages: DataFrame) -> DataFrame:
    """Rows of `pages` or `urls` with what identifies their content; NULL: they have none."""
    return pages.withColumn("identity_checksum", F.expr("coalesce(text_checksum, content_checksum)"))


def _cash_of_tried(step: Step) -> DataFrame:
    tried = step.slice("fetches").select("url_id").distinct()
    urls = step.opening("urls").select("url_id", "state", "cash", "lambda_index", "seed_credit")
    seeds = step.opening("seeds").select("url_id", "credit_granted")
    held = held_sql(step)[1]
    return (
        tried.join(among(step, urls, tried), "url_id", "left")
        .join(seeds, "url_id", "left")
        .select("url_id", F.expr(held).alias("effective_cash"))
    )


def account_moves(step: Step) -> DataFrame:
    """See `RoundFlows.moves`; representatives are resolved one level (rule 3)."""
    pages, links, urls = step.slice("pages"), step.slice("links"), step.opening("urls")
    seen = step.slice("content_seen").select("identity_checksum", "representative_url_id")
    redirects = _redirects(step, links)
    duplicates = (
        identified(pages)
        .join(seen, "identity_checksum")
        .where("representative_url_id <> url_id")
        .selectExpr(
            "url_id", "representative_url_id AS target_url_id", "depth AS min_depth", "seed_tag",
            "false AS due_at_once",
        )
    )  # fmt: skip
    moves = redirects.join(pages.select("url_id"), "url_id", "left_anti").unionByName(duplicates)
    again = moves.selectExpr("url_id AS target_url_id", "target_url_id AS next_target", "true AS moves_too")
    captured = pages.selectExpr("url_id AS target_url_id", "true AS captured")
    targets = redirects.select(F.col("target_url_id").alias("url_id")).union(seen.select("representative_url_id"))
    standing = (
        among(step, urls, targets)
        .where(f"state IN ('{UrlState.DUPLICATE}', '{UrlState.REDIRECT}')")
        .selectExpr("url_id AS target_url_id", "canonical_url_id AS standing_target")
    )
    has_own = "coalesce(moves_too, false) OR (captured IS NULL AND standing_target IS NOT NULL)"
    next_target = "CASE WHEN coalesce(moves_too, false) THEN next_target ELSE standing_target END"
    return (
        moves.join(again, "target_url_id", "left")
        .join(captured, "target_url_id", "left")
        .join(standing, "target_url_id", "left")
        .withColumns({"own_target": F.expr(next_target), "has_own": F.expr(has_own)})
        .withColumn(
            "resolved", F.expr(resolve_representative_sql("url_id", "target_url_id", "has_own", "own_target"))
        )
        .selectExpr(
            "url_id", "resolved AS target_url_id", "min_depth", "seed_tag",
            "due_at_once AND captured IS NULL AS due_at_once",
        )
    )  # fmt: skip


def _redirects(step: Step, links: DataFrame) -> DataFrame:
    """Every URL that redirected in the round, with its target where filters and scope took it."""
    plan = step.slice("fetch_plan").select(F.col("url_id").alias("planned_url_id"), F.col("depth").alias("min_depth"))
    tags = step.opening("urls").select("url_id", "seed_tag")
    seeds = step.opening("seeds").selectExpr("url_id", "array_join(tags, ',') AS own_tags")
    edges = links.where(F.col("link_kind") == str(LinkKind.REDIRECT)).select(
        F.col("src_url_id").alias("url_id"), F.col("dst_url_id").alias("target_url_id")
    )
    redirected = step.slice("fetches").where(F.col("outcome") == str(Outcome.REDIRECT))
    return (
        redirected.join(plan, "planned_url_id")
        .groupBy("url_id")
        .agg(F.min("min_depth").alias("min_depth"))
        .join(edges.groupBy("url_id").agg(F.min("target_url_id").alias("target_url_id")), "url_id", "left")
        .join(among(step, tags, redirected), "url_id", "left")
        .join(seeds, "url_id", "left")
        .selectExpr(
            "url_id", "target_url_id", "min_depth", "coalesce(nullif(seed_tag, ''), own_tags, '') AS seed_tag",
            "true AS due_at_once",
        )
    )  # fmt: skip


def giving_pages(step: Step, cash: DataFrame) -> DataFrame:
    """See `RoundFlows.giving`."""
    seen = step.slice("content_seen").select("identity_checksum", "representative_url_id")
    parts = lambda_parts(step.configuration.rank.lambda_share)
    return (
        identified(step.slice("pages"))
        .where(site_content_sql())
        .join(seen, "identity_checksum", "left")
        .where("representative_url_id IS NULL OR representative_url_id = url_id")
        .join(cash, "url_id", "left")
        .withColumn("effective_cash", F.expr("coalesce(effective_cash, 0L)"))
        .withColumn("share", F.expr(share_sql("effective_cash", "outlink_count", parts)).cast("bigint"))
        .select(
            "url_id", "effective_cash", "outlink_count", "kept_outlink_count", "share", "depth", "seed_tag",
            "change_verdict",
        )
    )  # fmt: skip


def link_flows(step: Step, pages: DataFrame) -> DataFrame:
    """One row an edge: (url_id of the target, cash, inlink, min_depth, seed_tag).

    Ancestors of links and what robots.txt names are targets too, but no page links to them: they
    are paid nothing.

    Args:
        pages: `RoundFlows.giving`.
    """
    fresh = (
        step.slice("links")
        .where(f"followed AND link_kind <> '{LinkKind.REDIRECT}'")
        .groupBy(F.col("src_url_id").alias("url_id"), "dst_url_id")
        .agg(F.min(F.expr(f"CAST(link_kind = '{LinkKind.ANCESTOR}' AS INT)")).alias("unpaid"))
    )
    stored = step.opening("outlinks").select(
        F.col("src_url_id").alias("url_id"), F.explode("dst_url_ids").alias("dst_url_id"), F.lit(0).alias("unpaid")
    )
    unchanged = F.col("change_verdict") == str(ChangeVerdict.UNCHANGED)
    announced = (
        step.slice("links")
        .where(f"link_kind = '{LinkKind.SITEMAP}' AND src_url LIKE '%/robots.txt'")
        .selectExpr("dst_url_id AS url_id", "0L AS cash", "0 AS inlink", "1 AS min_depth", "'' AS seed_tag")
    )
    edges = pages.where(~unchanged).join(fresh, "url_id").unionByName(pages.where(unchanged).join(stored, "url_id"))
    paid = edges.selectExpr(
        "dst_url_id AS url_id", "CASE WHEN unpaid = 1 THEN 0L ELSE share END AS cash",
        f"CAST(change_verdict = '{ChangeVerdict.FIRST}' AND unpaid = 0 AS INT) AS inlink", "depth + 1 AS min_depth",
        "seed_tag",
    )  # fmt: skip
    return paid.unionByName(announced)


def outlinks_of_round(step: Step) -> DataFrame:
    """(src_url_id, host, dst_url_ids, outlink_count) of every page that was parsed in the round."""
    targets = (
        step.slice("links")
        .where(f"followed AND link_kind NOT IN ('{LinkKind.REDIRECT}', '{LinkKind.ANCESTOR}')")
        .groupBy("src_url_id")
        .agg(F.array_sort(F.collect_set("dst_url_id")).alias("dst_url_ids"))
    )
    return (
        step.slice("pages")
        .where(f"change_verdict <> '{ChangeVerdict.UNCHANGED}' AND {site_content_sql()}")
        .select(F.col("url_id").alias("src_url_id"), "host", "outlink_count")
        .join(targets, "src_url_id", "left")
        .withColumn("dst_url_ids", F.expr("coalesce(dst_url_ids, CAST(array() AS ARRAY<BIGINT>))"))
    )
