"""The conservation laws of rule R5, measured on what a round has staged.

Each side of a law comes from another table or another computation: what dedupe says was received
against what the pages gave away, what the plan holds against what was fetched or skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.cash_flows import RoundFlows, held_sql, site_content_sql
from recrawl.rank.transitions import payable_sql
from recrawl.round_ledger import Round
from recrawl.spark.application import Step
from recrawl.spark.delta import in_parallel
from recrawl.tables.vocabulary import ChangeVerdict, Outcome


@dataclass(frozen=True)
class Figures:
    """What was measured. Cash is in units of 10^-12 credits.

    Attributes:
        planned, fetched, skipped: URLs of the plan; with a final row; with a skip of the step fetch.
        not_once: planned URLs whose final rows and skips are not exactly one, and rows never planned.
        new_urls, known_after: URLs that became known, all known URLs.
        misjudged_new: staged rows whose `is_new` contradicts `urls`, and ids staged twice.
        cash_held: what the touched rows held at the opening, with the credit due to them.
        cash_staged: what their after-images hold.
        cash_to_lambda: what Lambda got of them, by the rules.
        credit_granted: seed credit of this round.
        cash_after: payable rows and Lambda after the round.
        lambda_cash: Lambda before its payout. payable_urls, total_credit: N and K after the round.
    """

    planned: int
    fetched: int
    skipped: int
    not_once: int
    new_urls: int
    known_after: int
    misjudged_new: int
    cash_held: int
    cash_staged: int
    cash_to_lambda: int
    credit_granted: int
    cash_after: int
    lambda_cash: int
    payable_urls: int
    total_credit: int
    outcomes_ok: int
    outcomes_unchanged: int
    outcomes_failed: int
    warc_bytes: int

    def sentence(self) -> str:
        """The laws in one line."""
        return (
            f"{self.planned} planned = {self.fetched} fetched + {self.skipped} skipped; "
            f"{self.known_after - self.new_urls} known + {self.new_urls} new = {self.known_after}; "
            f"{self.cash_held} units held = {self.cash_staged} staged + {self.cash_to_lambda} to Lambda."
        )


def check_laws(row: Round, figures: Figures) -> list[str]:
    """The sentences of the laws that do not hold; empty: all hold."""
    broken: list[str] = []
    if figures.not_once or figures.planned != figures.fetched + figures.skipped:
        broken.append(
            f"{figures.planned} URLs were planned, {figures.fetched} have a final row and {figures.skipped} a skip; "
            f"{figures.not_once} have not exactly one"
        )
    if figures.misjudged_new:
        broken.append(f"{figures.misjudged_new} staged URLs are new and known at once, or staged twice")
    if figures.cash_held != figures.cash_staged + figures.cash_to_lambda:
        broken.append(
            f"{figures.cash_held} units of cash were held, {figures.cash_staged} are staged and "
            f"{figures.cash_to_lambda} went to Lambda"
        )
    if int(row["cash_before"]) + figures.credit_granted != figures.cash_after:
        broken.append(
            f"cash was {row['cash_before']}, {figures.credit_granted} were granted, but {figures.cash_after} are there"
        )
    if figures.cash_after != figures.total_credit:
        broken.append(f"{figures.total_credit} units of credit were ever granted, {figures.cash_after} are there")
    return broken


def measure(step: Step, flows: RoundFlows) -> Figures:
    """Measure both sides of every law."""
    row = step.round
    independent: list[Callable[[], Any]] = [
        lambda: _staged(step, flows),
        lambda: _planned(step),
        lambda: _outcomes(step),
        lambda: _verdicts(step),
    ]
    staged, (planned, fetched, skipped, not_once), outcomes, (unchanged, withheld) = in_parallel(independent)
    answered = outcomes.get(Outcome.OK, 0) + outcomes.get(Outcome.NOT_MODIFIED, 0)
    to_lambda = staged["of_pages"] + staged["of_moves"] + staged["of_dead"]
    return Figures(
        planned=planned,
        fetched=fetched,
        skipped=skipped,
        not_once=not_once,
        new_urls=staged["new_urls"],
        known_after=int(row["known_before"]) + staged["new_urls"],
        misjudged_new=staged["misjudged"] + staged["rows"] - staged["ids"],
        cash_held=staged["held"],
        cash_staged=staged["cash"],
        cash_to_lambda=to_lambda,
        credit_granted=staged["granted"],
        cash_after=int(row["cash_before"]) - (staged["held"] - staged["granted"]) + staged["cash"] + to_lambda,
        lambda_cash=int(row["lambda_cash"]) + to_lambda,
        payable_urls=int(row["payable_urls"]) - staged["payable_before"] + staged["payable_after"],
        total_credit=int(row["total_credit"]) + staged["granted"],
        outcomes_ok=answered - unchanged - withheld,
        outcomes_unchanged=unchanged,
        outcomes_failed=sum(outcomes.values()) - answered - outcomes.get(Outcome.REDIRECT, 0) + withheld,
        warc_bytes=_numbers(step.slice("warc_files").agg(F.sum("bytes")))[0],
    )


def _final(step: Step) -> DataFrame:
    return step.slice("fetches").where("final")


def _outcomes(step: Step) -> dict[str, int]:
    counts = _final(step).groupBy("outcome").count().collect()
    return {str(row["outcome"]): int(row["count"]) for row in counts}


def _verdicts(step: Step) -> list[int]:
    """Pages that were unchanged, and pages that the site withheld."""
    return _numbers(
        step.slice("pages").agg(
            F.sum(F.expr(f"CAST(change_verdict IN ('{ChangeVerdict.UNCHANGED}', '{ChangeVerdict.COSMETIC}') AS INT)")),
            F.sum(F.expr(f"CAST(NOT {site_content_sql()} AS INT)")),
        )
    )


def _planned(step: Step) -> tuple[int, int, int, int]:
    plan = step.slice("fetch_plan").select("url_id", F.lit(1).alias("plans"))
    finals = _final(step).groupBy(F.col("planned_url_id").alias("url_id")).agg(F.count("*").alias("finals"))
    skips = step.slice("skips").where("step = 'fetch'").groupBy("url_id").agg(F.count("*").alias("skips"))
    joined = plan.join(finals, "url_id", "full").join(skips, "url_id", "full").na.fill(0)
    row = _numbers(
        joined.agg(
            F.sum("plans"), F.sum("finals"), F.sum("skips"), F.sum(F.expr("CAST(plans <> finals + skips AS INT)"))
        )
    )
    return row[0], row[1], row[2], row[3]


def _staged(step: Step, flows: RoundFlows) -> dict[str, int]:
    """One pass over the staged rows beside their opening rows and what dedupe says they received.

    Lambda gets remainders and its share (of_pages), cash without a taker (of_moves), and all that
    dead rows hold or are sent (of_dead).
    """
    credit_due, held = held_sql(step)
    staged = step.slice("url_updates").selectExpr("url_id", "is_new", "cash AS staged_cash", "state AS staged_state")
    urls = step.opening("urls").select(
        "url_id", "state", "cash", "lambda_index", "seed_credit", F.lit(True).alias("known")
    )
    seeds = step.opening("seeds").select("url_id", "credit_granted")
    giving = flows.giving.selectExpr("url_id", "effective_cash - kept_outlink_count * share AS remainder")
    moves = flows.moves.selectExpr("url_id", "true AS moved", "target_url_id")
    received = step.slice("discovered").select("url_id", "cash_received")
    joined = staged
    for other in (urls, seeds, giving, moves, received):
        joined = joined.join(other, "url_id", "left")
    dead = f"NOT {payable_sql('staged_state')}"
    emptied = "remainder IS NOT NULL OR moved"
    aggregate = joined.withColumn("credit_due", F.expr(credit_due)).withColumn("held", F.expr(held)).selectExpr(
        "count(*) AS rows", "count(DISTINCT url_id) AS ids", "sum(CAST(is_new AS INT)) AS new_urls",
        "sum(CAST(is_new = coalesce(known, false) AS INT)) AS misjudged",
        "sum(staged_cash) AS cash", "sum(held) AS held", "sum(credit_due) AS granted",
        f"sum(CAST({payable_sql('staged_state')} AS INT)) AS payable_after",
        f"sum(CAST(coalesce({payable_sql('state')}, false) AS INT)) AS payable_before",
        "sum(remainder) AS of_pages",
        "sum(CASE WHEN moved AND target_url_id IS NULL THEN held END) AS of_moves",
        f"sum(CASE WHEN {dead} THEN CASE WHEN {emptied} THEN 0L ELSE held END + coalesce(cash_received, 0L) END) "
        "AS of_dead",
    )  # fmt: skip
    return dict(zip(aggregate.columns, _numbers(aggregate), strict=True))


def _numbers(aggregate: DataFrame) -> list[int]:
    row = aggregate.first()
    return [int(value or 0) for value in row] if row is not None else []
