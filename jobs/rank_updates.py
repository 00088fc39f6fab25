"""rank's after-images: one row of `urls` as it will be, for every URL that the round touched.

Touched are URLs with a row in `fetches`, link targets, and seeds with credit due. Formulas are
those of `recrawl.rank`, rendered as SQL next to their Python.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.cash_flows import RoundFlows, held_sql, site_content_sql
from recrawl.assignment import step_summary
from recrawl.frontier.value import listing_factor_sql, quality_factor_sql
from recrawl.rank.aopic import history_after_capture_sql
from recrawl.rank.change_rate import observed_days_sql, observed_events_sql, rate_per_day_sql
from recrawl.rank.listed_changes import claim_stands_sql, due_after_claim_sql
from recrawl.rank.schedule import IntervalLimits, interval_days_sql, next_fetch_at_sql, policy_interval_days_sql
from recrawl.rank.transitions import (
    ContentVerdict,
    failure_streak_after_sql,
    next_state_sql,
    payable_sql,
    succeeded_sql,
)
from recrawl.spark.application import Step
from recrawl.spark.delta import bucket_sql
from recrawl.spark.functions import timestamp_sql
from recrawl.tables.vocabulary import ChangeVerdict, Outcome, ParseOutcome, UrlState
from recrawl.urls.canonical import RULES_VERSION

#: Tries of a gone or refused page count only if they lie this far apart.
_SPACING_SECONDS = 20 * 3_600

#: An answer whose content says what its status did not counts as that status.
_SAID_BY_CONTENT = (
    f"WHEN '{ParseOutcome.REFUSED}' THEN '{Outcome.FORBIDDEN}' "
    f"WHEN '{ParseOutcome.SOFT_404}' THEN '{Outcome.NOT_FOUND}'"
)

_KNOWN = [
    "url_id",
    "url",
    "host",
    "request_url",
    "state",
    "depth",
    "seed_tag",
    "discovered_round",
    "fetch_count",
    "change_count",
    "failure_streak",
    "last_fetch_at",
    "last_success_at",
    "last_change_at",
    "next_fetch_at",
    "last_status",
    "last_outcome",
    "change_events",
    "observed_days",
    "cash",
    "history",
    "history_at",
    "lambda_index",
    "seed_credit",
    "inlinks",
    "content_checksum",
    "text_checksum",
    "content_round_id",
    "etag",
    "last_modified",
    "last_payload_digest",
    "last_warc_file",
    "last_warc_record_id",
    "last_warc_date",
    "canonical_url_id",
    "manual_priority",
    "listed_lastmod_at",
    "listed_priority",
    "quality",
]


def url_updates(step: Step, flows: RoundFlows) -> DataFrame:
    """Rows of `url_updates`."""
    touched = _touched(step)
    stated = _with_state(touched, step, flows)
    settled = _with_accounts(stated, step, flows)
    scheduled = _with_schedule(settled, step)
    return _renamed(scheduled, step)


def _touched(step: Step) -> DataFrame:
    """Every touched URL with what each source says of it: opening row, last try, page, target, seed."""
    visits, pages, targets, seeds = _last_tries(step), _pages(step), _targets(step), _seeds(step)
    known = step.opening("urls").select(*_KNOWN)
    credit_due, held = held_sql(step)
    owed = (
        seeds.select("url_id", "credit_granted")
        .join(known.select("url_id", "seed_credit"), "url_id", "left")
        .where(f"{credit_due} > 0")
    )
    now = timestamp_sql(step.round.now)
    ids = visits.select("url_id").union(targets.select("url_id")).union(owed.select("url_id"))
    return (
        ids.distinct()
        .join(known, "url_id", "left")
        .join(visits, "url_id", "left")
        .join(pages, "url_id", "left")
        .join(targets, "url_id", "left")
        .join(seeds, "url_id", "left")
        .withColumns(
            {
                "is_new": F.col("url").isNull(),
                "credit_due": F.expr(credit_due),
                "effective_cash": F.expr(held),
                "url": F.coalesce("url", "seed_url", "target_url", "tried_url"),
                "host": F.coalesce("host", "seed_host", "target_host", "tried_host"),
                "request_url": F.coalesce("request_url", "seed_request_url", "target_request_url"),
                "state": F.expr(f"coalesce(state, '{UrlState.NEW}')"),
                "depth": F.expr("coalesce(least(depth, seed_depth, min_depth, page_depth), 0)"),
                "tried": F.col("outcome").isNotNull(),
                "outcome": F.expr(f"CASE parse_outcome {_SAID_BY_CONTENT} ELSE outcome END"),
                "modified_at": F.expr("try_to_timestamp(substring(new_last_modified, 6, 20), 'dd MMM yyyy HH:mm:ss')"),
                # What is said of the future is no news, and would hide what is said later.
                "listed_at": F.expr(
                    f"greatest(listed_lastmod_at, CASE WHEN new_lastmod_at <= {now} THEN new_lastmod_at END)"
                ),
                "listed_weight": F.coalesce("new_listed_priority", "listed_priority"),
                "quality_after": F.coalesce("page_quality", "quality"),
            }
        )
    )


def _last_tries(step: Step) -> DataFrame:
    """The last row in `fetches` of each URL, with what it said."""
    last = F.expr("row_number() OVER (PARTITION BY url_id ORDER BY attempt DESC, hop DESC, planned_url_id)")
    columns = {
        "url": "tried_url", "host": "tried_host", "outcome": "outcome", "status": "status", "ended_at": "ended_at",
        "etag": "new_etag", "last_modified": "new_last_modified", "payload_digest": "payload_digest",
        "warc_file": "warc_file", "warc_record_id": "warc_record_id", "started_at": "started_at", "revisit": "revisit",
    }  # fmt: skip
    return (
        step.slice("fetches")
        .withColumn("place", last)
        .where("place = 1")
        .select("url_id", *[F.col(name).alias(alias) for name, alias in columns.items()])
    )


def _pages(step: Step) -> DataFrame:
    """What the captures say; a page in place of the site's own (refused, soft 404) is none."""
    return step.slice("pages").selectExpr(
        "url_id", "parse_outcome", f"CASE WHEN {site_content_sql()} THEN change_verdict END AS change_verdict",
        f"CASE WHEN {site_content_sql()} THEN quality END AS page_quality",
        "content_checksum AS page_checksum", "text_checksum AS page_text_checksum",
        "content_round_id AS page_content_round",
        "depth AS page_depth", "seed_tag AS page_tag",
    )  # fmt: skip


def _targets(step: Step) -> DataFrame:
    return step.slice("discovered").selectExpr(
        "url_id", "url AS target_url", "host AS target_host", "request_url AS target_request_url", "cash_received",
        "inlinks AS new_inlinks", "min_depth", "due_at_once", "seed_tag AS target_tag",
        "listed_lastmod_at AS new_lastmod_at", "listed_priority AS new_listed_priority",
    )  # fmt: skip


def _seeds(step: Step) -> DataFrame:
    return step.opening("seeds").selectExpr(
        "url_id", "url AS seed_url", "host AS seed_host", "request_url AS seed_request_url", "0 AS seed_depth",
        "array_join(tags, ',') AS own_tags", "manual_priority AS seed_priority", "credit_granted",
    )  # fmt: skip


def _with_state(rows: DataFrame, step: Step, flows: RoundFlows) -> DataFrame:
    """next_state, streak, representative and verdict."""
    rank = step.configuration.rank
    now = timestamp_sql(step.round.now)
    moves = flows.moves.selectExpr("url_id", "target_url_id AS move_target", "true AS moved")
    streak = failure_streak_after_sql(
        "failure_streak", "last_outcome", "outcome", state="state", last_fetch_at="last_fetch_at", now=now,
        spacing_seconds=_SPACING_SECONDS,
    )  # fmt: skip
    state = next_state_sql(
        "state",
        "outcome",
        failure_streak="streak_after",
        gone_after_failures=rank.gone_after_failures,
        verdict="verdict",
    )
    return (
        rows.join(moves, "url_id", "left")
        .withColumns(
            {
                "verdict": F.expr(
                    f"CASE WHEN moved AND change_verdict IS NOT NULL THEN '{ContentVerdict.DUPLICATE}' "
                    f"ELSE '{ContentVerdict.OWN}' END"
                ),
                "streak_after": F.expr(f"CASE WHEN tried THEN {streak} ELSE failure_streak END"),
                "succeeded": F.expr(f"tried AND {succeeded_sql('state', 'outcome')}"),
            }
        )
        .withColumn("next_state", F.expr(f"CASE WHEN tried THEN {state} ELSE state END"))
    )


def _with_accounts(rows: DataFrame, step: Step, flows: RoundFlows) -> DataFrame:
    """cash, history, lambda_index after rules 1 to 5, and what went to Lambda of each row."""
    window = round(step.configuration.rank.importance_window_days * 86_400)
    index = f"{int(step.round['lambda_index_after'])}L"
    giving = flows.giving.select("url_id", F.lit(True).alias("distributes"))
    payable = payable_sql("next_state")
    now = timestamp_sql(step.round.now)
    history = history_after_capture_sql("history", "history_at", "effective_cash", now, window)
    emptied = "coalesce(distributes, false) OR coalesce(moved, false)"
    return (
        rows.join(giving, "url_id", "left")
        .withColumns(
            {
                "payable": F.expr(payable),
                "received": F.expr("coalesce(cash_received, 0L)"),
                "kept_cash": F.expr(f"CASE WHEN {emptied} THEN 0L ELSE effective_cash END"),
                "history_after": F.expr(f"CASE WHEN distributes THEN {history} ELSE coalesce(history, 0L) END"),
                "history_at_after": F.expr(f"CASE WHEN distributes THEN {now} ELSE history_at END"),
            }
        )
        .withColumns(
            {
                "cash_after": F.expr("CASE WHEN payable THEN kept_cash + received ELSE 0L END"),
                "index_after": F.expr(f"CASE WHEN payable THEN {index} ELSE 0L END"),
            }
        )
    )


def _with_schedule(rows: DataFrame, step: Step) -> DataFrame:
    """Change rate and due time."""
    rank = step.configuration.rank
    limits = IntervalLimits(rank.first_interval_days, rank.min_interval_seconds / 86_400, rank.max_interval_days)
    changed = f"change_verdict = '{ChangeVerdict.CHANGED}'"
    visited = "change_verdict IS NOT NULL"
    modified = "coalesce(modified_at, listed_at)"
    events = observed_events_sql(
        change_events="change_events", observed_days="observed_days", changed=changed,
        previous_visit_at="last_success_at", visited_at="ended_at", first_interval_days=rank.first_interval_days,
        last_modified_at=modified,
    )  # fmt: skip
    days = observed_days_sql(
        observed_days="observed_days", changed=changed, previous_visit_at="last_success_at", visited_at="ended_at",
        last_modified_at=modified,
    )  # fmt: skip
    interval = interval_days_sql(
        state="state", next_state="next_state", outcome="outcome", last_outcome="last_outcome",
        streak_before="failure_streak", streak="streak_after", first_success="last_success_at IS NULL",
        policy_days="policy_days", limits=limits,
    )  # fmt: skip
    cutoff = _cutoff(step)
    policy = policy_interval_days_sql("rate", "weight", None if cutoff is None else f"{cutoff!r}D", limits)
    due = next_fetch_at_sql("ended_at", "interval_days", "url_id", limits)
    said = f"({quality_factor_sql('quality_after')}) * ({listing_factor_sql('listed_weight')})"
    now = timestamp_sql(step.round.now)
    newly_claimed = (
        f"failure_streak = 0 AND next_fetch_at IS NOT NULL AND {claim_stands_sql('listed_at', 'last_success_at', now)} "
        f"AND NOT {claim_stands_sql('listed_lastmod_at', 'last_success_at', now)}"
    )
    return (
        rows.withColumns(
            {
                "events_after": F.expr(f"CASE WHEN {visited} THEN {events} ELSE coalesce(change_events, 0D) END"),
                "days_after": F.expr(f"CASE WHEN {visited} THEN {days} ELSE coalesce(observed_days, 0D) END"),
                "weight": F.expr(f"(history_after + cash_after) / 1e12D * {said}"),
            }
        )
        .withColumn("rate", F.expr(rate_per_day_sql("events_after", "days_after", rank.first_interval_days)))
        .withColumn("policy_days", F.expr(policy))
        .withColumn("interval_days", F.expr(f"CASE WHEN tried THEN {interval} END"))
        .withColumn(
            "due_after",
            F.expr(
                f"CASE WHEN tried THEN {due} WHEN due_at_once THEN NULL "
                f"WHEN {newly_claimed} THEN {due_after_claim_sql('last_success_at', 'next_fetch_at', limits)} "
                "ELSE next_fetch_at END"
            ),
        )
    )


def _cutoff(step: Step) -> float | None:
    value = (step_summary(step.store, step.round_id, "frontier") or {}).get("value_cutoff")
    return None if value is None else float(str(value))


def _renamed(rows: DataFrame, step: Step) -> DataFrame:
    """The columns of `urls` after the round."""
    captured = "change_verdict IS NOT NULL"
    changed = f"coalesce(change_verdict = '{ChangeVerdict.CHANGED}', false)"
    fresh = f"change_verdict IN ('{ChangeVerdict.FIRST}', '{ChangeVerdict.CHANGED}')"
    full = f"outcome = '{Outcome.OK}' AND NOT coalesce(revisit, false) AND warc_file IS NOT NULL"
    return rows.selectExpr(
        f"'{step.round_id}' AS round_id",
        "is_new",
        f"{bucket_sql('host', step.buckets)} AS bucket",
        "url_id", "url", "host", "request_url",
        "next_state AS state", "depth",
        "coalesce(nullif(seed_tag, ''), own_tags, page_tag, target_tag, '') AS seed_tag",
        f"coalesce(discovered_round, '{step.round_id}') AS discovered_round",
        "coalesce(fetch_count, 0) + CAST(succeeded AS INT) AS fetch_count",
        f"coalesce(change_count, 0) + CAST({changed} AS INT) AS change_count",
        "coalesce(streak_after, 0) AS failure_streak",
        "coalesce(ended_at, last_fetch_at) AS last_fetch_at",
        "CASE WHEN succeeded THEN ended_at ELSE last_success_at END AS last_success_at",
        f"CASE WHEN {fresh} THEN ended_at ELSE last_change_at END AS last_change_at",
        "due_after AS next_fetch_at",
        "CASE WHEN tried THEN status ELSE last_status END AS last_status",
        "coalesce(outcome, last_outcome) AS last_outcome",
        "rate AS change_rate_per_day", "events_after AS change_events", "days_after AS observed_days",
        "cash_after AS cash", "history_after AS history",
        "history_at_after AS history_at",
        "index_after AS lambda_index",
        "coalesce(seed_credit, 0L) + credit_due AS seed_credit",
        "coalesce(inlinks, 0L) + coalesce(new_inlinks, 0L) AS inlinks",
        f"CASE WHEN {captured} THEN page_checksum ELSE content_checksum END AS content_checksum",
        f"CASE WHEN {captured} THEN page_text_checksum ELSE text_checksum END AS text_checksum",
        f"CASE WHEN {captured} THEN coalesce(page_content_round, content_round_id) ELSE content_round_id END "
        "AS content_round_id",
        f"CASE WHEN {captured} THEN coalesce(new_etag, etag) ELSE etag END AS etag",
        f"CASE WHEN {captured} THEN coalesce(new_last_modified, last_modified) ELSE last_modified END AS last_modified",
        f"CASE WHEN {full} THEN payload_digest ELSE last_payload_digest END AS last_payload_digest",
        f"CASE WHEN {full} THEN warc_file ELSE last_warc_file END AS last_warc_file",
        f"CASE WHEN {full} THEN warc_record_id ELSE last_warc_record_id END AS last_warc_record_id",
        f"CASE WHEN {full} THEN started_at ELSE last_warc_date END AS last_warc_date",
        "CASE WHEN moved THEN move_target WHEN succeeded THEN NULL ELSE canonical_url_id END AS canonical_url_id",
        f"{RULES_VERSION} AS canonical_rules_version",
        "coalesce(seed_priority, manual_priority, 1D) AS manual_priority",
        f"'{step.round_id}' AS last_round_id",
        "listed_at AS listed_lastmod_at", "listed_weight AS listed_priority", "quality_after AS quality",
    )  # fmt: skip
