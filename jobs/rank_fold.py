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

from jobs.cash_flows import identified, outlinks_of_round, site_content_sql
from recrawl.assignment import step_summary
from recrawl.errors import LawBrokenError
from recrawl.rank.trap_scores import HostNorms, counts_sql, score_sql
from recrawl.round_ledger import Round
from recrawl.spark.application import Step
from recrawl.spark.delta import bucket_sql, in_parallel
from recrawl.tables.vocabulary import OverrideKind
from recrawl.urls.site_rules import SiteRules, parsed_line

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
    joined = (
        hosts.distinct()
        .join(marked, "host", "left")
        .join(new_urls, "host", "left")
        .join(pages, "host", "left")
        .join(visits, "host", "left")
        .join(domains, "host", "left")
    )
    captures = "(coalesce(page_count, 0L) + coalesce(new_pages, 0L))"
    duplicates = "(coalesce(duplicate_count, 0L) + coalesce(new_duplicates, 0L))"
    trap_links = "(coalesce(trap_link_count, 0L) + coalesce(new_trap_links, 0L))"
    return joined.selectExpr(
        "known IS NULL AS is_new",
        f"{bucket_sql('host', step.buckets)} AS bucket",
        "host", "coalesce(registered_domain, domain) AS registered_domain",
        f"slice(array_distinct(concat(coalesce(seen_ips, array()), coalesce(ips, array()))), 1, {_MAX_IPS}) AS ips",
        "coalesce(zone, 'default') AS zone",
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
    known = step.opening("contents").selectExpr(
        "identity_checksum", "content_checksum AS first_checksum", "first_url_id", "first_round_id",
        "cluster_id AS first_cluster",
    )  # fmt: skip
    return (
        step.slice("content_seen")
        .join(known, "identity_checksum", "left")
        .where("first_url_id IS NULL OR first_url_id <> representative_url_id")
        .selectExpr(
            "first_round_id IS NULL AS is_new",
            f"CAST(pmod(identity_checksum, {step.buckets}) AS INT) AS bucket",
            "identity_checksum",
            "coalesce(first_checksum, content_checksum) AS content_checksum",
            "representative_url_id AS first_url_id",
            f"coalesce(first_round_id, '{step.round_id}') AS first_round_id",
            "coalesce(first_cluster, cluster_id) AS cluster_id",
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
