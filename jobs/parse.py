"""parse: reads captures back by (file, offset) and takes links, directives, title and text.

Writes `pages`, `links` and the rejects of its own step. A capture whose content is that of the
last one is not parsed: its row names the round that holds its content.
"""

from __future__ import annotations

from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from jobs.parse_rows import ParseSettings, parse_task
from recrawl.parse.handlers import PARSER_VERSION
from recrawl.spark.application import Step, Summary, step_main
from recrawl.spark.delta import conform, in_parallel
from recrawl.spark.schema import schema_of
from recrawl.spark.scope import scope_set
from recrawl.tables.vocabulary import ChangeVerdict, Outcome, ParseOutcome
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.filters import UrlFilters

#: Captures of one file within this distance are read by one task, in the order of their offsets.
_READ_SPAN_BYTES = 16 << 20


def run(step: Step) -> Summary:
    """Parse the round's captures."""
    work = to_parse(step)
    parsed = parse(step, work).persist(StorageLevel.MEMORY_AND_DISK)
    step.write(
        "pages", parsed.where("page IS NOT NULL").select("page.*").unionByName(conform(unchanged_pages(step), "pages"))
    )
    in_parallel(
        [
            lambda: step.write("links", parsed.select(F.explode("links").alias("link")).select("link.*")),
            lambda: step.write("rejects", parsed.select(F.explode("rejects").alias("r")).select("r.*"), "parse"),
        ]
    )
    parsed.unpersist()
    figures = step.slice("pages").groupBy("parse_outcome").count().collect()
    counts = {str(row["parse_outcome"]): int(row["count"]) for row in figures}
    return {"pages": sum(counts.values()), **counts}


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
    """What the parse tasks read: captures with new content, redirects for their edge, robots.txt for its sitemaps."""
    contents = step.opening("contents").select("content_checksum", F.lit(False).alias("want_text"), "first_round_id")
    captures = (
        answered(step)
        .where("NOT is_unchanged AND warc_file IS NOT NULL")
        .join(contents, "content_checksum", "left")
        .withColumn("want_text", F.expr("coalesce(want_text, true)"))
        .withColumn("content_round_id", F.expr(f"coalesce(first_round_id, '{step.round_id}')"))
        .withColumn(
            "change_verdict",
            F.expr(
                f"CASE WHEN previous_checksum IS NULL THEN '{ChangeVerdict.FIRST}' ELSE '{ChangeVerdict.CHANGED}' END"
            ),
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
]


def parse(step: Step, work: DataFrame) -> DataFrame:
    """One row a capture or redirect: its page (NULL for redirects), its links, its rejects."""
    configuration = step.configuration
    settings = ParseSettings(
        round_id=step.round_id,
        configuration=configuration,
        canonicalizer=Canonicalizer.from_settings(configuration.urls),
        filters=UrlFilters.from_settings(configuration.urls, step.round.now.date()),
        scope=scope_set(step),
        parser_version=PARSER_VERSION,
    )
    schema = StructType(
        [
            StructField("page", _loose(schema_of("pages"))),
            StructField("links", ArrayType(_loose(schema_of("links")))),
            StructField("rejects", ArrayType(_loose(schema_of("rejects")))),
        ]
    )
    span = F.floor(F.coalesce(F.col("warc_offset"), F.lit(0)) / _READ_SPAN_BYTES)
    # More tasks than cores even out pages of unequal cost; each starts with its imports, so not many more.
    tasks = step.spark.sparkContext.defaultParallelism * 2
    spread = work.repartition(tasks, F.xxhash64("warc_file", span, F.col("url_id") % 4))
    return spread.sortWithinPartitions("warc_file", "warc_offset").mapInArrow(
        partial(parse_task, settings=settings), schema
    )


def _loose(schema: StructType) -> DataType:
    """The schema with every column nullable: what is missing is filled or refused when it is written."""
    return StructType([StructField(field.name, field.dataType, True) for field in schema.fields])


def unchanged_pages(step: Step) -> DataFrame:
    """Rows of `pages` for captures that said nothing new."""
    same = answered(step).where("is_unchanged")
    outlinks = step.opening("outlinks").select(
        F.col("src_url_id").alias("url_id"), "outlink_count", F.size("dst_url_ids").alias("kept_outlink_count")
    )
    return same.join(outlinks, "url_id", "left").selectExpr(
        f"'{step.round_id}' AS round_id", "url_id", "planned_url_id", "url", "host", "seed_tag",
        "ended_at AS fetched_at", "false AS noindex", "false AS nofollow", "'unchanged' AS handler",
        f"'{ParseOutcome.UNCHANGED}' AS parse_outcome", "previous_checksum AS content_checksum",
        f"'{ChangeVerdict.UNCHANGED}' AS change_verdict", "previous_content_round_id AS content_round_id",
        "previous_round_id", f"{PARSER_VERSION} AS parser_version", "coalesce(outlink_count, 0) AS outlink_count",
        "coalesce(kept_outlink_count, 0) AS kept_outlink_count", "depth",
    )  # fmt: skip


if __name__ == "__main__":
    step_main("parse")
