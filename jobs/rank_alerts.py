"""rank's alerts: what a person should look at after the round."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from recrawl.spark.application import Step
from recrawl.tables.vocabulary import HOST_FAULTS, AlertKind, RejectFilter, Severity

#: Share of failing tries from which on a round deserves a look, and the least tries that say anything.
_FAILURE_SHARE, _LEAST_TRIES = 0.2, 20

#: Rejects by the length limit from which on a host is reported.
_LONG_URLS = 50


def find_alerts(step: Step) -> DataFrame:
    """Rows of `alerts`."""
    found = [_failure_rate(step), _blocked_hosts(step), _long_urls(step)]
    if step.configuration.parse.monitors:
        found.append(_watched_pages(step))
    rows = reduce(DataFrame.unionByName, found)
    return rows.withColumn("round_id", F.lit(step.round_id)).withColumn(
        "alert_id", F.concat_ws("/", "round_id", "alert_kind", "subject")
    )


def _failure_rate(step: Step) -> DataFrame:
    faults = ", ".join(f"'{outcome}'" for outcome in sorted(HOST_FAULTS))
    counted = step.slice("fetches").agg(
        F.count("*").alias("tries"), F.avg(F.expr(f"CAST(outcome IN ({faults}) AS DOUBLE)")).alias("measured_value")
    )
    return counted.where(f"tries >= {_LEAST_TRIES} AND measured_value >= {_FAILURE_SHARE}").selectExpr(
        f"'{AlertKind.FAILURE_RATE}' AS alert_kind", "'round' AS subject", f"'{Severity.WARNING}' AS severity",
        "measured_value", f"{_FAILURE_SHARE}D AS threshold",
        "concat('Of ', tries, ' tries ', round(100 * measured_value), ' % failed on network or server: "
        "see fetches by host.') AS message",
    )  # fmt: skip


def _blocked_hosts(step: Step) -> DataFrame:
    return step.slice("host_visits").where("blocked_until IS NOT NULL AND deferred > 0").selectExpr(
        f"'{AlertKind.HOST_BLOCKED}' AS alert_kind", "host AS subject", f"'{Severity.INFO}' AS severity",
        "CAST(error_streak AS DOUBLE) AS measured_value",
        f"CAST({step.configuration.fetch.max_errors_in_a_row} AS DOUBLE) AS threshold",
        "concat(host, ' failed ', error_streak, ' times in a row; its ', deferred, ' other URLs wait until ', "
        "blocked_until, ' UTC.') AS message",
    )  # fmt: skip


def _long_urls(step: Step) -> DataFrame:
    rejects = step.slice("rejects").where(F.col("filter") == str(RejectFilter.LENGTH))
    by_host = rejects.withColumn("subject", F.expr("regexp_extract(dst_url, '^[a-z]+://([^/?#]*)', 1)")).groupBy(
        "subject"
    )
    return by_host.count().where(f"count >= {_LONG_URLS}").selectExpr(
        f"'{AlertKind.LONG_URLS}' AS alert_kind", "subject", f"'{Severity.INFO}' AS severity",
        "CAST(count AS DOUBLE) AS measured_value", f"{_LONG_URLS}D AS threshold",
        "concat(subject, ' had ', count, ' URLs over the length limit: a trap, or session ids in its paths.') "
        "AS message",
    )  # fmt: skip


def _watched_pages(step: Step) -> DataFrame:
    """Once a content and monitor: the page is that with the first URL of those that brought it."""
    found = (
        step.slice("pages")
        .where(f"content_round_id = '{step.round_id}'")
        .selectExpr("coalesce(content_checksum, url_id) AS content", "url", "explode(watched) AS said")
        .selectExpr("content", "url", "split(said, ': ', 2)[0] AS monitor", "split(said, ': ', 2)[1] AS matched")
    )
    by_content = found.groupBy("content", "monitor").agg(
        F.min("url").alias("url"), F.array_sort(F.collect_set("matched")).alias("matched")
    )
    return by_content.selectExpr(
        f"'{AlertKind.WATCHED_PAGE}' AS alert_kind", "concat(monitor, ' ', url) AS subject",
        f"'{Severity.INFO}' AS severity", "CAST(size(matched) AS DOUBLE) AS measured_value", "1D AS threshold",
        "concat('The monitor ', monitor, ' found ', array_join(matched, ', '), ' on ', url, '.') AS message",
    )  # fmt: skip
