"""frontier's packing: hosts of one domain (or address) together, all partitions about equally long."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from recrawl.frontier.packing import (
    LABEL_PASSES,
    MAX_DOMAINS_PER_IP,
    PartitionForecast,
    TaskPace,
    big_from_micros,
    pack,
    partition_sql,
    predicted_seconds,
    running_sum_sql,
    slice_sql,
    work_micros_sql,
)
from recrawl.frontier.zones import share_partitions, zone_sql
from recrawl.spark.application import Step


def assign_partitions(step: Step, taken: DataFrame) -> tuple[DataFrame, list[PartitionForecast]]:
    """The taken URLs with fetch_partition and predicted_seconds, and the forecast of each partition."""
    frontier = step.configuration.frontier
    pace = TaskPace(frontier.task_requests_per_second, frontier.task_bytes_per_second)
    partitions = step.configuration.fetch.slots or step.spark.sparkContext.defaultParallelism
    hosts = (
        taken.groupBy("host", "registered_domain")
        .agg(F.count("*").alias("requests"), F.max("delay_seconds").alias("delay_seconds"), F.first("ips").alias("ips"))
        .persist()
    )
    labels = _labels(step, hosts)
    groups = _groups(hosts, labels, frontier.expected_page_bytes, pace, frontier.zones).persist()
    placed = _place_by_zone(groups, partitions) if frontier.zones else _place(groups, partitions)
    rows = placed.groupBy("fetch_partition").agg(
        F.count("*").alias("groups"),
        F.sum("requests").alias("requests"),
        F.sum("bytes").alias("bytes"),
        F.max_by("group", "longest").alias("longest_group"),
        F.max("longest").alias("longest"),
    )
    forecasts = [
        PartitionForecast(
            int(row["fetch_partition"]), int(row["groups"]), int(row["requests"]), int(row["bytes"]),
            predicted_seconds(float(row["longest"]), int(row["requests"]), int(row["bytes"]), pace),
            str(row["longest_group"]),
        )
        for row in rows.collect()
    ]  # fmt: skip
    seconds = step.spark.createDataFrame(
        [(f.partition, float(f.seconds)) for f in forecasts], "fetch_partition INT, predicted_seconds DOUBLE"
    )
    by_domain = labels.join(placed.select("group", "fetch_partition"), "group").join(
        F.broadcast(seconds), "fetch_partition"
    )
    return taken.join(by_domain, "registered_domain"), forecasts


def _labels(step: Step, hosts: DataFrame) -> DataFrame:
    """(registered_domain, group): domains that share an address get one label.

    Without a gap between requests to one address there is nothing to keep apart, and every domain
    is its own group. The SQL of `recrawl.frontier.packing.groups_by_address`.
    """
    domains = hosts.select("registered_domain").distinct()
    own = domains.withColumn("group", F.col("registered_domain"))
    if step.configuration.fetch.ip_gap_seconds <= 0:
        return own
    pairs = hosts.select("registered_domain", F.explode("ips").alias("ip")).distinct()
    per_ip = Window.partitionBy("ip")
    shared = pairs.withColumn("domains", F.count("*").over(per_ip)).where(
        f"domains > 1 AND domains <= {MAX_DOMAINS_PER_IP}"
    )
    shared = shared.select("registered_domain", "ip").persist()
    if shared.isEmpty():
        return own
    labels = own
    for _ in range(LABEL_PASSES):
        least = shared.join(labels, "registered_domain").withColumn("least", F.min("group").over(per_ip))
        best = least.groupBy("registered_domain").agg(F.min("least").alias("least"))
        labels = labels.join(best, "registered_domain", "left").select(
            "registered_domain", F.expr("least(group, coalesce(least, group))").alias("group")
        )
    return labels.persist()


def _groups(
    hosts: DataFrame, labels: DataFrame, page_bytes: int, pace: TaskPace, zones: Mapping[str, str]
) -> DataFrame:
    return (
        hosts.join(labels, "registered_domain")
        .groupBy("group")
        .agg(
            F.sum("requests").alias("requests"),
            F.sum(F.col("requests") * page_bytes).alias("bytes"),
            F.max(F.col("requests") * F.col("delay_seconds")).alias("longest"),
            # Domains of one address stay together, also where zones would part them: politeness comes first.
            F.min(F.expr(zone_sql("registered_domain", zones))).alias("zone"),
        )
        .withColumn("work", F.expr(work_micros_sql("requests", "bytes", pace)))
    )


def _place_by_zone(groups: DataFrame, partitions: int) -> DataFrame:
    """`_place` for each zone in partitions of its own."""
    work = {row["zone"]: int(row["work"]) for row in groups.groupBy("zone").agg(F.sum("work").alias("work")).collect()}
    placed = [
        _place(groups.where(F.col("zone") == zone), len(its)).withColumn(
            "fetch_partition", (F.col("fetch_partition") + its.start).cast("int")
        )
        for zone, its in share_partitions(work, partitions).items()
    ]
    return reduce(DataFrame.unionByName, placed) if placed else _place(groups, partitions)


def _place(groups: DataFrame, partitions: int) -> DataFrame:
    """Each group with its fetch_partition: the big ones one by one, the rest by running sum."""
    total_row = groups.agg(F.sum("work")).first()
    total = int(total_row[0] or 0) if total_row else 0
    threshold = big_from_micros(total, partitions)
    big_rows = groups.where(F.col("work") >= threshold).select("group", "work").collect()
    big = [(str(row["group"]), int(row["work"])) for row in big_rows]
    packing = pack(big, total - sum(work for _, work in big), partitions)
    spark = groups.sparkSession
    placed = spark.createDataFrame(sorted(packing.placed.items()), "group STRING, fetch_partition INT")
    small = groups.where(F.col("work") < threshold).withColumn("slice", F.expr(slice_sql("group")))
    per_slice = small.groupBy("slice").agg(F.sum("work").alias("slice_work"))
    below = Window.orderBy("slice").rowsBetween(Window.unboundedPreceding, -1)
    # At most 4,096 rows go through this window without partition.
    offsets = per_slice.select("slice", F.coalesce(F.sum("slice_work").over(below), F.lit(0)).alias("slice_offset"))
    running = running_sum_sql("work", "group", "slice_offset")
    rest = (
        small.join(F.broadcast(offsets), "slice")
        .withColumn("running", F.expr(running))
        .withColumn("fetch_partition", F.expr(partition_sql("running", packing)))
    )
    columns = ("group", "requests", "bytes", "longest", "fetch_partition")
    return groups.join(F.broadcast(placed), "group").select(*columns).unionByName(rest.select(*columns)).persist()
