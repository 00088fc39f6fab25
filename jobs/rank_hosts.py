"""rank's after-images of `hosts`: what the round's visits, pages and new URLs add to what was known."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.cash_flows import identified, site_content_sql
from recrawl.assignment import step_summary
from recrawl.frontier.zones import zone_sql
from recrawl.rank.trap_scores import HostNorms, counts_sql, score_sql
from recrawl.spark.application import Step
from recrawl.spark.delta import bucket_sql
from recrawl.tables.vocabulary import OverrideKind
from recrawl.urls.site_rules import SiteRules, parsed_line

#: Addresses of a host that are remembered.
_MAX_IPS = 16

#: Columns of `hosts` that a visit brings.
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


def host_changes(step: Step) -> DataFrame:
    """After-images of hosts that were visited, got new URLs or other rules."""
    captures = "(coalesce(page_count, 0L) + coalesce(new_pages, 0L))"
    duplicates = "(coalesce(duplicate_count, 0L) + coalesce(new_duplicates, 0L))"
    trap_links = "(coalesce(trap_link_count, 0L) + coalesce(new_trap_links, 0L))"
    return _touched(step).selectExpr(
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
        f"{captures} AS page_count", f"{duplicates} AS duplicate_count", f"{trap_links} AS trap_link_count",
        f"{score_sql(host_norms(step), captures, duplicates, trap_links)} AS trap_score",
        "quota_urls_per_round", "mirror_of",
        "coalesce(case_insensitive, false) AS case_insensitive",
        "coalesce(index_names, CAST(array() AS ARRAY<STRING>)) AS index_names",
    )  # fmt: skip


def _touched(step: Step) -> DataFrame:
    """Hosts that were visited, got new URLs or other rules, each with what every source says of it."""
    new_urls = step.slice("url_updates").where("is_new").groupBy("host").agg(F.count("*").alias("new_urls"))
    seen = step.slice("content_seen").select("identity_checksum", "representative_url_id")
    pages = (
        identified(step.slice("pages"))
        .where(site_content_sql())
        .join(seen, "identity_checksum", "left")
        .groupBy("host")
        .agg(
            F.count("*").alias("new_pages"),
            F.sum(F.expr("CAST(coalesce(representative_url_id <> url_id, false) AS INT)")).alias("new_duplicates"),
            F.sum("trap_link_count").alias("new_trap_links"),
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
    hosts = new_urls.select("host").union(visits.select("host")).union(pages.select("host"))
    marked, newly_marked = _with_site_marks(step, known)
    if newly_marked is not None:
        hosts = hosts.union(newly_marked)
    return (
        hosts.distinct()
        .join(marked, "host", "left")
        .join(new_urls, "host", "left")
        .join(pages, "host", "left")
        .join(visits, "host", "left")
        .join(domains, "host", "left")
    )


def host_norms(step: Step) -> HostNorms | None:
    """What was usual among hosts when the round opened; None where no host has captures enough, or none is judged."""
    if (step_summary(step.store, step.round_id, "frontier") or {}).get("planned") == 0:
        return None
    rows = step.application.stored.query("hosts", counts_sql("t"), step.round.version_at_open("hosts"))
    return HostNorms.of_counts(
        (int(row["of_size"]), int(row["duplicate_bin"]), int(row["trap_bin"]), int(row["hosts"])) for row in rows
    )


#: What the rules of sites say of a host.
_MARKS = ("mirror_of", "case_insensitive", "index_names")


def site_marks(step: Step) -> DataFrame:
    """(host, mirror_of, case_insensitive, index_names) of hosts with rules of their own; the rules are few."""
    rules = [parsed_line(line) for line in step.configuration.urls.site_rules]
    hosts = {rule.subject.partition("/")[0] for rule in rules if rule.kind is not OverrideKind.DROP_PARAMETER}
    aliases = SiteRules(rules).aliases
    blind = {rule.subject for rule in rules if rule.kind is OverrideKind.IGNORE_CASE}
    indexes = [rule.subject.partition("/") for rule in rules if rule.kind is OverrideKind.INDEX_PAGE]
    rows = [
        (host, aliases.get(host), host in blind, sorted({name for of, _, name in indexes if of == host}))
        for host in sorted(hosts)
    ]
    schema = "host STRING, mirror_of STRING, case_insensitive BOOLEAN, index_names ARRAY<STRING>"
    return step.spark.createDataFrame(rows, schema)


def _with_site_marks(step: Step, known: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """Known hosts with what the rules of sites say of them now, and those whose row does not say it yet.

    Where there are no rules, the second is None: a round without them pays for no join.
    """
    if not step.configuration.urls.site_rules:
        return known.withColumns({name: F.lit(None) for name in _MARKS}), None
    marks = site_marks(step)
    now = marks.selectExpr("host", *[f"{name} AS now_{name}" for name in _MARKS])
    same = " AND ".join(f"{name} <=> now_{name}" for name in _MARKS)
    newly_marked = known.join(now, "host").where(f"NOT ({same})").select("host")
    return known.drop(*_MARKS).join(marks, "host", "left"), newly_marked
