"""The rows of a large table that a round touches, before anything is joined to them.

A join of a round's few rows to all of `urls` sorts and sends the whole table: at 10 million URLs that
took most of a step's time. Where the table is large and the round is not, the round's ids go to
every task instead, and the table is only read.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from recrawl.assignment import step_summary
from recrawl.spark.application import Step

#: Below, Spark's own plan is at least as good.
LARGE_TABLE_ROWS = 1_000_000
#: More ids are not sent to every task: 8 bytes each, and about four times that in memory.
MOST_SENT_ROWS = 2_000_000


def is_large(step: Step) -> bool:
    """Whether `urls` is large."""
    return int(step.round["known_before"]) >= LARGE_TABLE_ROWS


def among(step: Step, rows: DataFrame, ids: DataFrame) -> DataFrame:
    """`rows`, or only those whose url_id is in `ids`: the same for a join on these ids that follows.

    Args:
        rows: of a state table, with url_id.
        ids: url_ids that the round touches, not more than a few for each planned URL.
    """
    planned = (step_summary(step.store, step.round_id, "frontier") or {}).get("planned") or 0
    if not is_large(step) or int(str(planned)) > MOST_SENT_ROWS:
        return rows
    return rows.join(F.broadcast(ids.select("url_id").distinct()), "url_id", "left_semi")
