"""parse: reads captures back by (file, offset) and takes links, directives, title and text.

Writes `pages`, `links` and the rejects of its own step. A capture whose content is that of the
last one is not parsed: its row names the round that holds its content.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.parse_rows import ParseSettings, parse_task
from recrawl.parse.handlers import PARSER_VERSION
from recrawl.spark.application import Step, Summary, step_main
from recrawl.spark.scope import scope_set
from recrawl.table_parts import PartFile
from recrawl.tables.vocabulary import ChangeVerdict, Outcome
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.filters import UrlFilters

#: Captures of one file within this distance are read by one task, in the order of their offsets.
_READ_SPAN_BYTES = 16 << 20


def run(step: Step) -> Summary:
    """Parse the round's captures: one pass, the tasks write the rows, one commit a table."""
    said = parse(step, to_parse(step)).collect()
    parts = [PartFile.from_text(row["part"]) for row in said]
    for table, own_step in (("pages", None), ("links", None), ("rejects", "parse")):
        step.lease.check()
        step.application.stored.commit_parts(table, step.round_id, parts, own_step)
    outcomes = sum((Counter(row["outcomes"]) for row in said), Counter[str]())
    return {"pages": outcomes.total(), **dict(sorted(outcomes.items()))}


def answered(step: Step) -> DataFrame:
    """Final rows that brought content or confirmed it, with the opening state of their URL.

    One row a URL: where two planned URLs led to one target, the first wins.
    """
    fetches = step.slice("fetches").where(
        F.col("final") & F.col("outcome").isin(str(Outcome.OK), str(Outcome.NOT_MODIFIED))
    )
    plan = step.slice("fetch_plan").select(
        F.col("url_id").alias("planned_url_id"), F.col("depth").alias("planned_depth")
    )
    known = step.opening("urls").select(
        "url_id", "state", "depth", "seed_tag", F.col("content_checksum").alias("previous_checksum"),
        F.col("content_round_id").alias("previous_content_round_id"), F.col("last_round_id").alias("previous_round_id"),
    )  # fmt: skip
    seeds = step.opening("seeds").selectExpr("url_id", "array_join(tags, ',') AS own_tags")
    first = F.expr("row_number() OVER (PARTITION BY url_id ORDER BY planned_url_id, attempt DESC, hop DESC)")
    return (
        fetches.withColumn("place", first)
        .where("place = 1")
        .drop("place")
        .join(plan, "planned_url_id")
        .join(known, "url_id", "left")
        .join(seeds, "url_id", "left")
        .withColumn("seed_tag", F.expr("coalesce(nullif(seed_tag, ''), own_tags, '')"))
        .withColumn("depth", F.expr("least(coalesce(depth, planned_depth), planned_depth)"))
        .withColumn(
            "is_unchanged",
            F.expr(
                f"previous_checksum IS NOT NULL AND (outcome = '{Outcome.NOT_MODIFIED}' OR revisit "
                "OR content_checksum = previous_checksum)"
            ),
        )
    )


def to_parse(step: Step) -> DataFrame:
    """What the parse tasks read: captures, redirects for their edge, robots.txt for its sitemaps.

    An unchanged capture comes with the checksum and the outlinks that are stored.
    """
    contents = step.opening("contents").select("content_checksum", F.lit(False).alias("want_text"), "first_round_id")
    outlinks = step.opening("outlinks").select(
        F.col("src_url_id").alias("url_id"), "outlink_count", F.size("dst_url_ids").alias("kept_outlink_count")
    )
    verdict = (
        f"CASE WHEN is_unchanged THEN '{ChangeVerdict.UNCHANGED}' "
        f"WHEN previous_checksum IS NULL THEN '{ChangeVerdict.FIRST}' ELSE '{ChangeVerdict.CHANGED}' END"
    )
    content_round = (
        f"CASE WHEN is_unchanged THEN previous_content_round_id ELSE coalesce(first_round_id, '{step.round_id}') END"
    )
    captures = (
        answered(step)
        .where("is_unchanged OR warc_file IS NOT NULL")
        .join(contents, "content_checksum", "left")
        .join(outlinks, "url_id", "left")
        .withColumns(
            {
                "want_text": F.expr("coalesce(want_text, true)"),
                "content_round_id": F.expr(content_round),
                "content_checksum": F.expr("CASE WHEN is_unchanged THEN previous_checksum ELSE content_checksum END"),
                "change_verdict": F.expr(verdict),
                "outlink_count": F.expr("coalesce(outlink_count, 0)"),
                "kept_outlink_count": F.expr("coalesce(kept_outlink_count, 0)"),
            }
        )
    )
    plan = step.slice("fetch_plan").select(F.col("url_id").alias("planned_url_id"), "depth")
    redirects = (
        step.slice("fetches")
        .where("redirect_url IS NOT NULL")
        .join(plan, "planned_url_id")
        .withColumn("warc_file", F.lit(None).cast("string"))
        .dropDuplicates(["url_id"])
    )
    work = captures.unionByName(redirects, allowMissingColumns=True)
    return work.unionByName(_robots_files(step), allowMissingColumns=True).select(*WORK_COLUMNS)


def _robots_files(step: Step) -> DataFrame:
    """robots.txt files of the round, for their Sitemap lines."""
    return (
        step.slice("robots")
        .where("lower(body) LIKE '%sitemap%'")
        .withColumn("url", F.concat("scheme", F.lit("://"), "host", F.lit("/robots.txt")))
        .selectExpr("xxhash64(url) AS url_id", "url", "host", "0 AS depth", "'' AS seed_tag", "body AS robots_body")
    )


WORK_COLUMNS = [
    "url_id",
    "planned_url_id",
    "url",
    "host",
    "ended_at",
    "content_type",
    "x_robots_tag",
    "warc_file",
    "warc_offset",
    "depth",
    "want_text",
    "content_checksum",
    "content_round_id",
    "change_verdict",
    "previous_round_id",
    "redirect_url",
    "robots_body",
    "seed_tag",
    "outlink_count",
    "kept_outlink_count",
]


def parse(step: Step, work: DataFrame) -> DataFrame:
    """One row a data file that a task wrote: `jobs.parse_rows.PARTS_SCHEMA`."""
    configuration = step.configuration
    settings = ParseSettings(
        round_id=step.round_id,
        configuration=configuration,
        canonicalizer=Canonicalizer.from_settings(configuration.urls),
        filters=UrlFilters.from_settings(configuration.urls, step.round.now.date()),
        scope=scope_set(step),
        parser_version=PARSER_VERSION,
    )
    span = F.floor(F.coalesce(F.col("warc_offset"), F.lit(0)) / _READ_SPAN_BYTES)
    # More tasks than cores even out pages of unequal cost; each starts with its imports, so not many more.
    tasks = step.spark.sparkContext.defaultParallelism * 2
    spread = work.repartition(tasks, F.xxhash64("warc_file", span, F.col("url_id") % 4))
    schema = "part STRING, outcomes MAP<STRING, BIGINT>"
    return spread.sortWithinPartitions("warc_file", "warc_offset").mapInArrow(
        partial(parse_task, settings=settings), schema
    )


if __name__ == "__main__":
    step_main("parse")
