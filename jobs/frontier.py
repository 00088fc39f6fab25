"""frontier: picks what is due by crawl value under quotas and packs hosts into fetch partitions.

Writes `fetch_plan` and the skips of its own step. Reads state tables at their opening versions.
"""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.frontier_inputs import PeoplesDecisions, candidates, host_terms, only_predicate
from jobs.frontier_packing import assign_partitions
from recrawl.config.model import Configuration
from recrawl.frontier.packing import PartitionForecast, predicted_finish
from recrawl.frontier.queues import above_cut_sql, band_sql, in_cut_sql, order_sql, plan_cuts, rest_band_sql, round_seed
from recrawl.frontier.quota import host_quota_sql
from recrawl.spark.application import Step, Summary, say, step_main
from recrawl.spark.delta import in_parallel
from recrawl.tables.vocabulary import FrontierMode, FrontQueue, SkipReason

#: A sitemap may be larger than a page; before its type is known its name tells.
_SITEMAP_PATTERN = r"(?i)/[^/?]*sitemap[^/?]*\\.(xml|txt)(\\.gz)?$"


def run(step: Step) -> Summary:
    """Plan the round."""
    configuration = step.configuration
    decisions = PeoplesDecisions.read(step)
    due = candidates(step, decisions)
    hosts = host_terms(step, due, decisions)
    only = only_predicate(step, configuration)
    judged = judge(due if only is None else due.where(only), hosts, step).persist(StorageLevel.MEMORY_AND_DISK)
    taken, cutoff = select(judged, configuration, step.round_id)
    forecasts: list[PartitionForecast] = []
    if taken is None:
        # An empty round is common, and planning it like any other would take seconds.
        step.application.stored.replace_slice("fetch_plan", step.round_id, [])
        step.write("skips", skip_rows(judged, None, configuration, step.round_id), "frontier")
    else:
        packed, forecasts = assign_partitions(step, taken)
        plan = plan_rows(packed, configuration, step.round_id).persist(StorageLevel.MEMORY_AND_DISK)
        skips = skip_rows(judged, None if cutoff is None else plan, configuration, step.round_id)
        in_parallel([lambda: step.write("fetch_plan", plan), lambda: step.write("skips", skips, "frontier")])
        plan.unpersist()
    figures = judged.agg(
        F.count("*").alias("due"), F.max("effective_cash").alias("richest"), F.countDistinct("host").alias("hosts")
    ).first()
    planned = sum(forecast.requests for forecast in forecasts)
    judged.unpersist()
    summary: Summary = {
        "due": int(figures["due"]) if figures else 0,
        "planned": planned,
        "hosts": int(figures["hosts"]) if figures else 0,
        "partitions": len(forecasts),
        "richest_cash": int(figures["richest"] or 0) if figures else 0,
        "value_cutoff": cutoff,
        "predicted_seconds": round(max((f.seconds for f in forecasts), default=0.0), 1),
    }
    show_plan(step, forecasts, summary)
    return summary


def judge(due: DataFrame, hosts: DataFrame, step: Step) -> DataFrame:
    """Candidates with their host's terms, the reason that keeps them out, and their selection value.

    Quotas count only URLs that nothing else keeps out. `selection_value` is what rows compete by:
    the crawl value, or depth first of all in breadth-first mode.
    """
    configuration = step.configuration
    joined = due.join(hosts, "host")
    value = "crawl_value * host_priority"
    if configuration.frontier.mode is FrontierMode.BREADTH_FIRST:
        value = f"power(2D, -depth) * (0.5D + 0.5D * ({value}) / (1D + {value}))"
    seed = round_seed(step.round_id)
    barred = f"CASE WHEN blocked THEN '{SkipReason.BLOCKED}' WHEN excluded THEN '{SkipReason.EXCLUDED}' END"
    quota = host_quota_sql("host_quota", configuration.fetch.time_budget_seconds, "delay_seconds")
    order = order_sql("selection_value", "url_id", seed)
    return (
        joined.withColumns(
            {
                "crawl_value": F.expr("crawl_value * host_priority"),
                "selection_value": F.expr(value),
                "barred": F.expr(barred),
            }
        )
        .withColumn("place_in_host", F.expr(f"row_number() OVER (PARTITION BY host, barred ORDER BY {order})"))
        .withColumn("over_quota", F.expr(f"barred IS NULL AND place_in_host > {quota}"))
        .withColumn(
            "place_in_domain",
            F.expr(f"row_number() OVER (PARTITION BY registered_domain, barred, over_quota ORDER BY {order})"),
        )
        .withColumns(
            {
                "skip_reason": F.expr(
                    f"CASE WHEN barred IS NOT NULL THEN barred WHEN over_quota "
                    f"OR place_in_domain > {configuration.frontier.domain_quota} THEN '{SkipReason.QUOTA}' END"
                ),
                "band": F.expr(band_sql("selection_value")),
            }
        )
        .drop("barred", "over_quota", "place_in_domain", "excluded", "blocked")
    )


def select(judged: DataFrame, configuration: Configuration, round_id: str) -> tuple[DataFrame | None, float | None]:
    """The URLs that fit into the round and the crawl value at which it was cut; None where there is no such."""
    free = judged.where("skip_reason IS NULL")
    counts = {
        (FrontQueue(row["queue"]), int(row["band"])): int(row["count"])
        for row in free.groupBy("queue", "band").count().collect()
    }
    capacity = configuration.frontier.max_urls
    if sum(counts.values()) <= capacity:
        return (free if counts else None), None
    weights = {entry.name: entry.weight for entry in configuration.frontier.queues}
    cuts = plan_cuts(counts, capacity, weights)
    order = order_sql("selection_value", "url_id", round_seed(round_id))
    guaranteed = " OR ".join(
        f"(queue = '{queue}' AND ({above_cut_sql('band', cut)} OR ({in_cut_sql('band', cut)} "
        f"AND place_in_band <= {cut.taken_in_band})))"
        for queue, cut in cuts.guaranteed.items()
    )
    flagged = free.withColumn(
        "place_in_band", F.expr(f"row_number() OVER (PARTITION BY queue, band ORDER BY {order})")
    ).withColumn("guaranteed", F.expr(guaranteed))
    rest_band = rest_band_sql("queue", "band")
    flagged = flagged.withColumn("rest_band", F.expr(rest_band)).withColumn(
        "place_in_rest", F.expr(f"row_number() OVER (PARTITION BY guaranteed, rest_band ORDER BY {order})")
    )
    taken = flagged.where(
        f"guaranteed OR {above_cut_sql('rest_band', cuts.rest)} "
        f"OR ({in_cut_sql('rest_band', cuts.rest)} AND place_in_rest <= {cuts.rest.taken_in_band})"
    ).persist(StorageLevel.MEMORY_AND_DISK)
    lowest = taken.agg(F.min("crawl_value")).first()
    return taken, None if lowest is None or lowest[0] is None else float(lowest[0])


def plan_rows(packed: DataFrame, configuration: Configuration, round_id: str) -> DataFrame:
    """Rows of `fetch_plan`, ranked within their host by the mode's order."""
    order = order_sql("crawl_value", "url_id", round_seed(round_id))
    if configuration.frontier.mode is FrontierMode.BREADTH_FIRST:
        order = f"depth ASC, {order}"
    elif configuration.frontier.mode is FrontierMode.DEPTH_FIRST:
        order = f"depth DESC, {order}"
    fetch = configuration.fetch
    return packed.withColumns(
        {
            "round_id": F.lit(round_id),
            "rank_in_host": F.expr(f"row_number() OVER (PARTITION BY host ORDER BY {order})"),
            "request_url": F.expr("coalesce(request_url, url)"),
            "max_bytes": F.expr(
                f"CASE WHEN url RLIKE '{_SITEMAP_PATTERN}' THEN {fetch.max_sitemap_bytes} "
                f"ELSE {fetch.max_body_bytes} END"
            ),
            "earliest_at": F.expr("timestampadd(MICROSECOND, CAST(delay_seconds * 1e6 AS BIGINT), last_access_at)"),
        }
    )


def skip_rows(judged: DataFrame, plan: DataFrame | None, configuration: Configuration, round_id: str) -> DataFrame:
    """Rows of `skips`: what quotas and people kept out, and the next best that did not fit.

    Of those that did not fit, as many as the round holds are listed, best bands first: the rest
    lies below `rounds.value_cutoff`, and a row each round for every known URL would cost more than
    the round.

    Args:
        plan: what fitted; None: all that could be taken.
    """
    rows = judged.where("skip_reason IS NOT NULL").select("url_id", "host", "skip_reason")
    if plan is not None:
        unfit = judged.where("skip_reason IS NULL").join(plan.select("url_id"), "url_id", "left_anti")
        counts = sorted(
            ((int(row["band"]), int(row["count"])) for row in unfit.groupBy("band").count().collect()), reverse=True
        )
        listed, lowest = 0, None
        for band, count in counts:
            if listed and listed + count > configuration.frontier.max_urls:
                break
            listed, lowest = listed + count, band
        missed = unfit.where(F.lit(False) if lowest is None else F.col("band") >= lowest)
        rows = rows.unionByName(missed.select("url_id", "host", F.lit(str(SkipReason.CAPACITY)).alias("skip_reason")))
    return rows.withColumns({"round_id": F.lit(round_id), "step": F.lit("frontier")})


def show_plan(step: Step, forecasts: list[PartitionForecast], summary: dict[str, Any]) -> None:
    """The plan for the operator: partitions and the predicted end."""
    budget = step.configuration.fetch.time_budget_seconds
    finish = predicted_finish(step.application.clock.now(), forecasts, budget)
    say(
        f"frontier: {summary['due']} due, {summary['planned']} planned of {summary['hosts']} hosts "
        f"in {summary['partitions']} partitions; fetching ends about {finish:%Y-%m-%d %H:%M:%S} UTC."
    )
    for forecast in sorted(forecasts, key=lambda f: -f.seconds)[:10]:
        say(
            f"frontier: partition {forecast.partition}: {forecast.requests} URLs of {forecast.groups} domains, "
            f"{forecast.seconds:.0f} s predicted, longest {forecast.longest_group or '-'}"
        )


if __name__ == "__main__":
    step_main("frontier")
