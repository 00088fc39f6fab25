"""Near-duplicates: contents of a round whose texts are almost those of other contents.

Parse leaves a signature of each content that it had not seen before in `signatures`, a slice a round.
Here the round's own are compared with all of them, and only where two share a band; the similarity of
the signatures confirms. A content joins the cluster of the stored content that is most like it, else
one with others of its round, else one of its own. Nothing of earlier rounds is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from recrawl.dedupe.similarity import MAX_CONTENTS_PER_BAND, NEAR_SIMILARITY, similarity_sql
from recrawl.spark.application import Step

_EARLIEST = "min(named_struct('round', round_id, 'url', url_id, 'bands', bands, 'words', signature))"


@contextmanager
def near_clusters(step: Step) -> Iterator[tuple[DataFrame, Callable[[], int]]]:
    """((identity_checksum, cluster_id) of the round's new contents, the number of over-full bands left aside).

    What is computed once is kept for the block.
    """
    signatures = step.tables.read("signatures").where(f"round_id <= '{step.round_id}'")
    contents = step.opening("contents").select("identity_checksum", "cluster_id")
    new = step.slice("signatures").join(contents, "identity_checksum", "left_anti")
    own = distinct_signatures(new).persist(StorageLevel.MEMORY_AND_DISK)
    earlier = signatures.where(f"round_id < '{step.round_id}'")
    stored = earlier.join(contents, "identity_checksum", "left_semi")
    shared = shared_bands(own, stored).persist(StorageLevel.MEMORY_AND_DISK)
    pairs = candidates(shared).persist(StorageLevel.MEMORY_AND_DISK)
    others = pairs.select(F.col("other").alias("identity_checksum")).distinct()
    theirs = distinct_signatures(signatures.join(others, "identity_checksum", "left_semi"))
    first = first_clusters(own, neighbours(pairs, own, theirs), contents).persist(StorageLevel.MEMORY_AND_DISK)

    def over_full() -> int:
        return shared.where("over_full").select("band").distinct().count()

    try:
        yield of_clusters(first), over_full
    finally:
        for frame in (first, pairs, shared, own):
            frame.unpersist()


def distinct_signatures(signatures: DataFrame) -> DataFrame:
    """(identity_checksum, bands, signature): the first one of each content."""
    first = signatures.groupBy("identity_checksum").agg(F.expr(_EARLIEST).alias("first"))
    return first.selectExpr("identity_checksum", "first.bands AS bands", "first.words AS signature")


def shared_bands(own: DataFrame, stored: DataFrame) -> DataFrame:
    """(band, members, over_full, identity_checksum, stored): contents under each band of the round's own.

    Args:
        own: the round's `distinct_signatures`.
        stored: (identity_checksum, bands) of earlier rounds, without those in `own`; may repeat itself.
    """
    exploded = own.selectExpr("explode(bands) AS band", "identity_checksum", "false AS stored")
    wanted = exploded.select("band").distinct()
    others = stored.selectExpr("explode(bands) AS band", "identity_checksum", "true AS stored")
    members = exploded.unionByName(others.join(wanted, "band", "left_semi")).distinct()
    sizes = members.groupBy("band").agg(F.count("*").alias("members")).where("members > 1")
    return members.join(sizes, "band").withColumn("over_full", F.expr(f"members > {MAX_CONTENTS_PER_BAND}"))


def candidates(shared: DataFrame) -> DataFrame:
    """(identity_checksum, other, stored): distinct pairs that share a band that is not over-full.

    Args:
        shared: `shared_bands`.
    """
    usable = shared.where("NOT over_full")
    others = usable.select("band", F.col("identity_checksum").alias("other"), "stored")
    return (
        usable.where("NOT stored")
        .select("band", "identity_checksum")
        .join(others, "band")
        .where("identity_checksum <> other")
        .select("identity_checksum", "other", "stored")
        .distinct()
    )


def neighbours(pairs: DataFrame, own: DataFrame, signatures: DataFrame) -> DataFrame:
    """`pairs` that are near-duplicates, with their `likeness`.

    Args:
        pairs: `candidates`.
        own: the round's `distinct_signatures`.
        signatures: (identity_checksum, signature) of all contents.
    """
    mine = own.select("identity_checksum", F.col("signature").alias("own_signature"))
    theirs = signatures.select(F.col("identity_checksum").alias("other"), F.col("signature").alias("other_signature"))
    return (
        pairs.join(mine, "identity_checksum")
        .join(theirs, "other")
        .withColumn("likeness", F.expr(similarity_sql("own_signature", "other_signature")))
        .where(f"likeness >= {NEAR_SIMILARITY}")
        .select("identity_checksum", "other", "stored", "likeness")
    )


def first_clusters(own: DataFrame, near: DataFrame, contents: DataFrame) -> DataFrame:
    """(identity_checksum, cluster_id) of the round's own contents, by their neighbours alone.

    The cluster of the most alike stored content; else the smallest checksum among a content and its
    neighbours of the round.

    Args:
        own: the round's `distinct_signatures`.
        near: `neighbours`.
        contents: (identity_checksum, cluster_id) of `contents` at the opening version.
    """
    clusters = contents.select(F.col("identity_checksum").alias("other"), "cluster_id")
    best = "max(CASE WHEN stored THEN named_struct('likeness', likeness, 'cluster', coalesce(cluster_id, other)) END)"
    of_near = (
        near.join(clusters, "other", "left")
        .groupBy("identity_checksum")
        .agg(F.expr(best).alias("best"), F.expr("min(CASE WHEN NOT stored THEN other END)").alias("least_other"))
    )
    return (
        own.select("identity_checksum")
        .join(of_near, "identity_checksum", "left")
        .selectExpr(
            "identity_checksum",
            "coalesce(best.cluster, least(identity_checksum, least_other), identity_checksum) AS cluster_id",
        )
    )


def of_clusters(first: DataFrame) -> DataFrame:
    """`first_clusters` with the cluster of the content that names a cluster: chains of two steps hold together."""
    second = first.selectExpr("identity_checksum AS cluster_id", "cluster_id AS cluster_of_cluster")
    return first.join(second, "cluster_id", "left").selectExpr(
        "identity_checksum", "coalesce(cluster_of_cluster, cluster_id) AS cluster_id"
    )
