"""rekey: known URLs get the ids that the URL rules of today give them, as a round of its own kind.

Rows that fall together become one (`recrawl.rank.merging`), ids that are no more stay in
`url_aliases`, what named them (representatives, outlinks, contents, seeds) names the new ones. Staged
first, checked, then folded in one merge a table, each under a transaction id: a rekey that was
killed is run again, and `recrawl undo` takes it back like any round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.rekey_fold import content_changes, host_changes, outlink_changes, url_changes
from jobs.rekey_rows import MOVED_SCHEMA, moved_urls
from jobs.seed import opening_row
from recrawl.assignment import Assignment
from recrawl.config.form import RoundForm
from recrawl.config.model import Configuration
from recrawl.errors import LawBrokenError, RoundStateError
from recrawl.lease import Lease
from recrawl.rank.aopic import effective_cash_sql
from recrawl.rank.merging import OWN_AGAIN, merged_columns_sql
from recrawl.rank.transitions import payable_sql
from recrawl.round_ledger import FOLDED_STATES, UNFINISHED_STATES, Round, all_rounds, save_round
from recrawl.rounds import round_id_of
from recrawl.seed.site_decisions import with_decisions_of_inbox
from recrawl.spark.application import Application, Step, say
from recrawl.spark.delta import bucket_sql, in_parallel
from recrawl.spark.undo import finish_undos, seed_changes
from recrawl.tables.catalog import TABLES
from recrawl.tables.vocabulary import RoundKind, RoundState, UrlState
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.rules import RULES_VERSION

_NOTHING = ("Nothing has been crawled yet, so no URL has an id.", "Run `recrawl round` first.")

_URL_COLUMNS = [column.name for column in TABLES["urls"].columns if column.name != "bucket"]


@dataclass(frozen=True)
class RekeyFigures:
    """What was staged, measured on both sides. Cash is in units of 10^-12 credits.

    Attributes:
        moved: known URLs with another id. merged: known URLs that are no more, because another row has taken them in.
        known_after: known URLs after.
        unplaced: ids that were moved without a row to stand for them, rows staged twice, rows staged and dropped.
        credit_before, credit_staged: seed credit of the touched rows, before and after.
        cash_held, cash_staged: cash of the touched rows, before and after.
        payable_urls: payable rows N after.
    """

    moved: int
    merged: int
    known_after: int
    unplaced: int
    credit_before: int
    credit_staged: int
    cash_held: int
    cash_staged: int
    payable_urls: int

    def broken_laws(self) -> list[str]:
        """A phrase for each law that does not hold."""
        said = []
        if self.unplaced:
            said.append(f"{self.unplaced} URLs have not exactly one row")
        if self.cash_held != self.cash_staged:
            said.append(f"{self.cash_held} units of cash were held, {self.cash_staged} are staged")
        if self.credit_before != self.credit_staged:
            said.append(f"{self.credit_before} units of seed credit were granted, {self.credit_staged} are staged")
        return said


def rekey(configuration: Configuration) -> Round:
    """Move the known URLs to the ids of the rules in force; finishes a rekey that was begun. The closed round.

    Raises:
        RoundStateError: nothing has been crawled yet, or another round is open.
        LawBrokenError: the laws do not hold; nothing was changed, and the round is taken back by `recrawl undo`.
    """
    application = Application(configuration)
    round_id = round_id_of(application.clock.now())
    with application.lease(f"rekey {round_id}", "a rekey", keep=False) as lease:
        application.stored.create_missing(application.clock.now())
        finish_undos(application, lease)
        step = _step(application, _begun_or_opened(application, round_id), lease)
        if step.round.state is RoundState.OPEN:
            step = _step(application, stage(step), lease)
        fold(step)
        return close(step)


def _begun_or_opened(application: Application, round_id: str) -> Round:
    rounds = all_rounds(application.stored)
    unfinished = next((row for row in rounds if row.state in UNFINISHED_STATES), None)
    if unfinished is not None:
        if unfinished["round_kind"] != RoundKind.REKEY:
            raise RoundStateError(f"Round {unfinished.round_id} is open.", "Run `recrawl round` to finish it first.")
        say(f"rekey: goes on with {unfinished.round_id}, which is {unfinished.state}.")
        return unfinished
    if not any(row.state in FOLDED_STATES for row in rounds):
        raise RoundStateError(*_NOTHING)
    now = application.clock.now()
    frozen = with_decisions_of_inbox(application.configuration, application.store, now)
    opening = opening_row(application, RoundForm(), round_id, rounds, now, frozen, RoundKind.REKEY)
    save_round(application.stored, opening)
    return opening


@dataclass(frozen=True)
class Preview:
    """What a rekey would do: known URLs, those with another id, and some of them as (URL now, URL then)."""

    known: int
    moved: int
    examples: tuple[tuple[str, str], ...]


def preview(configuration: Configuration, shown: int) -> Preview:
    """Look at the known URLs as the last round left them, without changing anything.

    Raises:
        RoundStateError: nothing has been crawled yet.
    """
    application = Application(configuration)
    ended = [row for row in all_rounds(application.stored) if row.state in FOLDED_STATES]
    if not ended:
        raise RoundStateError(*_NOTHING)
    urls = application.tables.read("urls", int(ended[-1]["versions_at_close"]["urls"]))
    in_force = with_decisions_of_inbox(configuration, application.store, application.clock.now())
    moved = moved_of(urls, in_force).join(urls.select("url_id", "url"), "url_id").persist()
    examples = [(row["url"], row["new_url"]) for row in moved.orderBy("url").limit(shown).collect()]
    found = Preview(urls.count(), moved.count(), tuple(examples))
    moved.unpersist()
    return found


def _step(application: Application, row: Round, lease: Lease) -> Step:
    assignment = Assignment(row.round_id, row.round_id, "seed", abandon=False, plan_only=False, started_at=row.now)
    return Step(application, row, assignment, row.configuration(application.configuration), lease)


def moved_of(urls: DataFrame, configuration: Configuration) -> DataFrame:
    """`MOVED_SCHEMA` of every URL that has another id under the configuration's rules."""
    canonicalizer = Canonicalizer.from_settings(configuration.urls)
    known = urls.select("url_id", "url", "request_url")
    return known.mapInArrow(partial(moved_urls, canonicalizer=canonicalizer), MOVED_SCHEMA)


def without_collisions(moved: DataFrame, urls: DataFrame) -> DataFrame:
    """Those of `moved` whose new id no other URL has: the others stay where they are."""
    ids = moved.select("new_url_id").distinct()
    holders = urls.selectExpr("url_id AS new_url_id", "url AS new_url").join(ids, "new_url_id", "left_semi")
    colliding = (
        moved.select("new_url_id", "new_url")
        .unionByName(holders)
        .groupBy("new_url_id")
        .agg(F.count_distinct("new_url").alias("names"))
        .where("names > 1")
    )
    return moved.join(colliding, "new_url_id", "left_anti")


def stage(step: Step) -> Round:
    """Write aliases and after-images, check the laws on them, and mark the round as folding.

    Raises:
        LawBrokenError: a law does not hold; the state tables are untouched.
    """
    urls = step.opening("urls")
    found = moved_of(urls, step.configuration).persist(StorageLevel.MEMORY_AND_DISK)
    moved = without_collisions(found, urls).persist(StorageLevel.MEMORY_AND_DISK)
    step.write("url_aliases", _aliases(step, moved))
    step.write("url_updates", _after_images(step, moved))
    figures = measure(step)
    for frame in (moved, found):
        frame.unpersist()
    if broken := figures.broken_laws():
        raise LawBrokenError(f"Rekey {step.round_id} breaks a law of conservation: {'; '.join(broken)}.")
    say(
        f"rekey: {figures.moved} URLs have another id, {figures.merged} of them are one with another URL; "
        f"{figures.cash_held} units of cash held = {figures.cash_staged} staged."
    )
    row = step.round
    folding = row.with_values(
        round_state=str(RoundState.FOLDING),
        **dict.fromkeys(("planned", "fetched", "skipped_after_plan", "new_urls", "credit_granted_in_round"), 0),
        **dict.fromkeys(("outcomes_ok", "outcomes_unchanged", "outcomes_failed", "warc_bytes"), 0),
        known_after=figures.known_after,
        merged_urls=figures.merged,
        cash_after=row["cash_before"],
        payable_urls=figures.payable_urls,
    )
    step.lease.check()
    save_round(step.application.stored, folding)
    return folding


def _aliases(step: Step, moved: DataFrame) -> DataFrame:
    """Rows of `url_aliases`: ids that moved, and older aliases whose target has moved on."""
    urls = step.opening("urls").select("url_id", "url", "host")
    ended = {row.round_id for row in all_rounds(step.application.stored) if row.state in FOLDED_STATES}
    newest = F.expr("row_number() OVER (PARTITION BY url_id ORDER BY round_id DESC)")
    earlier = (
        step.tables.read("url_aliases")
        .where(F.col("round_id").isin(sorted(ended)))
        .withColumn("place", newest)
        .where("place = 1")
        .join(urls.select("url_id"), "url_id", "left_anti")
        .select("url_id", "url", "host", F.col("alias_of_url_id").alias("named"))
    )
    named = urls.withColumn("named", F.col("url_id")).unionByName(earlier)
    to = moved.selectExpr("url_id AS named", "new_url_id AS alias_of_url_id", "new_url AS alias_of_url")
    return named.join(to, "named").select(
        F.lit(step.round_id).alias("round_id"), "url_id", "url", "host", "alias_of_url_id", "alias_of_url"
    )


def _after_images(step: Step, moved: DataFrame) -> DataFrame:
    """Rows of `url_updates`: merged rows under their new ids, and rows whose representative has another id."""
    urls = step.opening("urls").drop("bucket")
    to = moved.select("url_id", "new_url_id", "new_url", "new_request_url", "new_host")
    movers = urls.join(to, "url_id")
    targets = moved.select("new_url_id").distinct()
    stayed = urls.join(moved.select("url_id"), "url_id", "left_anti")
    residents = stayed.join(targets.withColumnRenamed("new_url_id", "url_id"), "url_id", "left_semi").selectExpr(
        "*", "url_id AS new_url_id", "url AS new_url", "request_url AS new_request_url", "host AS new_host"
    )
    renamed = moved.selectExpr("url_id AS canonical_url_id", "new_url_id AS represents")
    merged = _merged(step, movers.unionByName(residents)).join(renamed, "canonical_url_id", "left")
    followers = (
        stayed.join(renamed, "canonical_url_id")
        .join(targets.withColumnRenamed("new_url_id", "url_id"), "url_id", "left_anti")
        .select(*merged.columns)
    )
    own_again = " ".join(f"WHEN '{state}' THEN '{after}'" for state, after in OWN_AGAIN.items())
    known = step.opening("urls").select("url_id", F.lit(True).alias("known"))
    return (
        merged.unionByName(followers)
        .join(known, "url_id", "left")
        .withColumn("target", F.expr("coalesce(represents, canonical_url_id)"))
        .withColumn("is_own", F.expr("coalesce(target = url_id, false)"))
        .withColumns(
            {
                "round_id": F.lit(step.round_id),
                "is_new": F.expr("known IS NULL"),
                "bucket": F.expr(bucket_sql("host", step.buckets)),
                "canonical_url_id": F.expr("CASE WHEN is_own THEN NULL ELSE target END"),
                "next_fetch_at": F.expr(
                    f"CASE WHEN is_own AND state = '{UrlState.REDIRECT}' THEN NULL ELSE next_fetch_at END"
                ),
                "canonical_rules_version": F.lit(RULES_VERSION),
                "last_round_id": F.lit(step.round_id),
            }
        )
        .withColumn("state", F.expr(f"CASE WHEN is_own THEN CASE state {own_again} ELSE state END ELSE state END"))
    )


def _merged(step: Step, members: DataFrame) -> DataFrame:
    """One row of `urls` for each new id (`recrawl.rank.merging`)."""
    rank = step.configuration.rank
    aggregates, columns = merged_columns_sql(
        _URL_COLUMNS,
        int(step.round["lambda_index_after"]),
        round(rank.importance_window_days * 86_400),
        rank.first_interval_days,
    )
    named = ("url", "host", "request_url")
    # Of two ways to ask for it the one whose row is kept stands, so it is taken along with the row.
    renamed = members.withColumns({name: F.col(f"new_{name}") for name in named})
    newest = F.expr("max(history_at) OVER (PARTITION BY new_url_id)")
    return (
        renamed.withColumn("newest_history_at", newest)
        .groupBy("new_url_id")
        .agg(*[F.expr(sql).alias(name) for name, sql in aggregates.items()])
        .selectExpr(*[f"{sql} AS {name}" for name, sql in (columns | {"url_id": "new_url_id"}).items()])
    )


def measure(step: Step) -> RekeyFigures:
    """Both sides of each law: what the opening version holds of the touched ids, and what is staged."""
    index = f"{int(step.round['lambda_index_after'])}L"
    payable = f"coalesce({payable_sql('state')}, false)"
    held = effective_cash_sql("cash", "lambda_index", index, payable)
    urls = step.opening("urls").select("url_id", "state", "cash", "lambda_index", "seed_credit")
    aliases = step.slice("url_aliases").select("url_id", "alias_of_url_id")
    staged = step.slice("url_updates").select("url_id", "is_new", "state", "cash", "lambda_index", "seed_credit")
    ids = staged.select("url_id").union(aliases.select("url_id")).distinct()
    dropped = aliases.join(staged.select("url_id"), "url_id", "left_anti").join(urls.select("url_id"), "url_id")
    homeless = aliases.selectExpr("alias_of_url_id AS url_id").join(staged.select("url_id"), "url_id", "left_anti")
    before = urls.join(ids, "url_id", "left_semi").selectExpr(
        "count(*)", f"sum({held})", "sum(seed_credit)", f"sum(CAST({payable} AS INT))"
    )
    after = staged.selectExpr(
        "count(*)", f"sum({held})", "sum(seed_credit)", f"sum(CAST({payable} AS INT))",
        "count(DISTINCT url_id)", "sum(CAST(is_new AS INT))",
    )  # fmt: skip
    moved = aliases.join(urls.select("url_id"), "url_id", "left_semi")
    counts = in_parallel([dropped.count, homeless.count, moved.count])
    sums = in_parallel([partial(_numbers, before), partial(_numbers, after)])
    (gone, lost, away), (one, two) = counts, sums
    # Every touched row is either staged under its id or dropped for another; what is new has come of dropped ones.
    unplaced = lost + (two[0] - two[4]) + abs(one[0] - gone - (two[0] - two[5]))
    return RekeyFigures(
        moved=away,
        merged=gone - two[5],
        known_after=int(step.round["known_before"]) - gone + two[5],
        unplaced=unplaced,
        credit_before=one[2],
        credit_staged=two[2],
        cash_held=one[1],
        cash_staged=two[1],
        payable_urls=int(step.round["payable_urls"]) - one[3] + two[3],
    )


def _numbers(aggregate: DataFrame) -> list[int]:
    row = aggregate.first()
    return [int(value or 0) for value in row] if row is not None else []


def fold(step: Step) -> None:
    """Fold what is staged into the state tables and the root set; running it again changes nothing.

    Raises:
        LawBrokenError: the folded table does not hold as many URLs as the law says.
    """
    row, stored = step.round, step.application.stored
    changes = {
        "urls": url_changes(step),
        "hosts": host_changes(step),
        "contents": content_changes(step),
        "outlinks": outlink_changes(step),
    }
    step.lease.check()
    generation = int(row["generation"])
    in_parallel(
        [
            partial(step.tables.rekey, table, f"rekey/{table}/{step.round_id}/{generation}", rows)
            for table, rows in changes.items()
        ]
    )
    counted = step.tables.read("urls").count()
    if counted != int(row["known_after"]):
        raise LawBrokenError(f"After the fold {counted} URLs are known, not {row['known_after']}.")
    seeds = seed_changes(step.application, row)
    step.lease.check()
    if seeds.put:
        stored.put("seeds", seeds.put)
    stored.remove("seeds", seeds.removed)


def close(step: Step) -> Round:
    """Write the closing row: from now on readers see this round's versions."""
    stored = step.application.stored
    closed: dict[str, Any] = {
        "round_state": str(RoundState.CLOSED),
        "closed_at": step.application.clock.now(),
        "versions_at_close": stored.versions(name for name in TABLES if name != "rounds"),
    }
    row = step.round.with_values(**closed)
    step.lease.check()
    save_round(stored, row)
    return row
