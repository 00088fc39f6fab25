"""The conservation laws of rule R5, measured on what a round has staged.

Each side of a law comes from another table or another computation: what dedupe says was received
against what the pages gave away, what the plan holds against what was fetched or skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.cash_flows import account_moves, distributing_pages, opening_cash
from recrawl.rank.transitions import payable_sql
from recrawl.spark.application import Step
from recrawl.spark.rounds import Round
from recrawl.tables.vocabulary import Outcome


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


def measure(step: Step) -> Figures:
    """Measure both sides of every law."""
    row, updates = step.round, step.slice("url_updates").persist(StorageLevel.MEMORY_AND_DISK)
    planned, fetched, skipped, not_once = _planned(step)
    cash = opening_cash(step).persist(StorageLevel.MEMORY_AND_DISK)
    held, granted, payable_before = _held(step, updates, cash)
    staged = updates.agg(
        F.count("*"), F.countDistinct("url_id"), F.sum(F.col("is_new").cast("int")), F.sum("cash"),
        F.sum(F.expr(f"CAST({payable_sql('state')} AS INT)")),
    )  # fmt: skip
    rows, distinct, new_urls, cash_staged, payable_after = _numbers(staged)
    misjudged = updates.join(step.opening("urls").select("url_id", F.lit(True).alias("known")), "url_id", "left").where(
        "is_new = coalesce(known, false)"
    )
    to_lambda = _to_lambda(step, updates, cash)
    outcomes = {str(r["outcome"]): int(r["count"]) for r in _final(step).groupBy("outcome").count().collect()}
    unchanged = _numbers(step.slice("pages").where("change_verdict = 'unchanged'").agg(F.count("*")))[0]
    answered = outcomes.get(Outcome.OK, 0) + outcomes.get(Outcome.NOT_MODIFIED, 0)
    figures = Figures(
        planned=planned,
        fetched=fetched,
        skipped=skipped,
        not_once=not_once,
        new_urls=new_urls,
        known_after=int(row["known_before"]) + new_urls,
        misjudged_new=misjudged.count() + rows - distinct,
        cash_held=held,
        cash_staged=cash_staged,
        cash_to_lambda=to_lambda,
        credit_granted=granted,
        cash_after=int(row["cash_before"]) - (held - granted) + cash_staged + to_lambda,
        lambda_cash=int(row["lambda_cash"]) + to_lambda,
        payable_urls=int(row["payable_urls"]) - payable_before + payable_after,
        total_credit=int(row["total_credit"]) + granted,
        outcomes_ok=answered - unchanged,
        outcomes_unchanged=unchanged,
        outcomes_failed=sum(outcomes.values()) - answered - outcomes.get(Outcome.REDIRECT, 0),
        warc_bytes=_numbers(step.slice("warc_files").agg(F.sum("bytes")))[0],
    )
    updates.unpersist()
    cash.unpersist()
    return figures


def _final(step: Step) -> DataFrame:
    return step.slice("fetches").where("final")


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


def _held(step: Step, updates: DataFrame, cash: DataFrame) -> tuple[int, int, int]:
    """What touched rows held with their credit, that credit, and how many of them were payable."""
    before = step.opening("urls").select("url_id", F.expr(f"CAST({payable_sql('state')} AS INT)").alias("was_payable"))
    touched = updates.select("url_id").join(cash, "url_id", "left").join(before, "url_id", "left")
    held, granted, payable = _numbers(touched.agg(F.sum("effective_cash"), F.sum("credit_due"), F.sum("was_payable")))
    return held, granted, payable


def _to_lambda(step: Step, updates: DataFrame, cash: DataFrame) -> int:
    """What Lambda gets: remainders and its share, cash without a taker, and all that dead rows hold or are sent."""
    pages = distributing_pages(step, cash.select("url_id", "effective_cash"))
    of_pages = _numbers(pages.agg(F.sum(F.expr("effective_cash - kept_outlink_count * share"))))[0]
    moves = account_moves(step).join(cash, "url_id", "left")
    of_moves = _numbers(moves.where("target_url_id IS NULL").agg(F.sum("effective_cash")))[0]
    emptied = pages.select("url_id").union(moves.select("url_id")).distinct().withColumn("emptied", F.lit(True))
    received = step.slice("discovered").select("url_id", "cash_received")
    dead = (
        updates.where(f"NOT {payable_sql('state')}")
        .select("url_id")
        .join(cash, "url_id", "left")
        .join(emptied, "url_id", "left")
        .join(received, "url_id", "left")
    )
    kept = "CASE WHEN emptied THEN 0L ELSE coalesce(effective_cash, 0L) END"
    of_dead = _numbers(dead.agg(F.sum(F.expr(f"{kept} + coalesce(cash_received, 0L)"))))[0]
    return of_pages + of_moves + of_dead


def _numbers(aggregate: DataFrame) -> list[int]:
    row = aggregate.first()
    return [int(value or 0) for value in row] if row is not None else []
