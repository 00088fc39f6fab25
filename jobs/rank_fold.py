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

from jobs.cash_flows import outlinks_of_round
from jobs.rank_hosts import host_changes
from recrawl.errors import LawBrokenError
from recrawl.round_ledger import Round
from recrawl.spark.application import Step
from recrawl.spark.delta import bucket_sql, in_parallel


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
