"""frontier's inputs: due URLs with their crawl value, and the terms of their hosts."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from recrawl.config.form import split_files
from recrawl.config.model import Configuration
from recrawl.errors import UsageError
from recrawl.frontier.value import crawl_value_sql
from recrawl.rank.aopic import UNITS_PER_CREDIT, effective_cash_sql, importance_sql
from recrawl.rank.change_rate import rate_per_day_sql
from recrawl.rank.listed_changes import claim_stands_sql, counted_age_days_sql
from recrawl.rank.transitions import DECIDED_STATES, payable_sql
from recrawl.rank.trap_scores import trap_factor_sql
from recrawl.spark.application import Step
from recrawl.spark.functions import timestamp_sql
from recrawl.tables.vocabulary import FrontQueue, OverrideKind, UrlState
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.keys import url_id

_CARRIED = [
    "url_id",
    "url",
    "request_url",
    "host",
    "state",
    "depth",
    "fetch_count",
    "failure_streak",
    "last_success_at",
    "next_fetch_at",
    "cash",
    "history",
    "history_at",
    "lambda_index",
    "change_events",
    "observed_days",
    "manual_priority",
    "listed_lastmod_at",
    "listed_priority",
    "quality",
    "etag",
    "last_modified",
    "last_payload_digest",
    "last_warc_file",
    "last_warc_record_id",
    "last_warc_date",
]

#: The importance of a page of which nothing is known yet: without it, pages that nobody has paid
#: would all be worth nothing, and a change of rate could not tell them apart.
_LEAST_IMPORTANCE = 1e-9


def candidates(step: Step, decisions: PeoplesDecisions) -> DataFrame:
    """Every URL that is due at the round's time (all, when forced), with queue and crawl value.

    Columns: those of `_CARRIED`, and queue, effective_cash (units), crawl_value, excluded.
    """
    form = step.round.form
    now = timestamp_sql(step.round.now)
    known = step.opening("urls").select(*_CARRIED)
    decided = ", ".join(f"'{state}'" for state in sorted(DECIDED_STATES))
    due = known.where(f"state NOT IN ({decided})")
    if not form.force:
        due = due.where(f"next_fetch_at IS NULL OR next_fetch_at <= {now}")
    both = due.unionByName(_new_seeds(step, known), allowMissingColumns=True)
    valued = _valued(both, step, now).withColumn("excluded", decisions.excluded())
    return valued.withColumn("crawl_value", F.col("crawl_value") * decisions.url_priority())


def _new_seeds(step: Step, known: DataFrame) -> DataFrame:
    """Seeds that `urls` does not know: rank adds them, so they look as they will then."""
    index = int(step.round["lambda_index_after"])
    return (
        step.opening("seeds")
        .join(known.select("url_id"), "url_id", "left_anti")
        .selectExpr(
            "url_id", "url", "request_url", "host", f"'{UrlState.NEW}' AS state", "0 AS depth", "0 AS fetch_count",
            "0 AS failure_streak", "credit_granted AS cash", "0L AS history", f"{index}L AS lambda_index",
            "manual_priority",
        )
    )  # fmt: skip


def _valued(due: DataFrame, step: Step, now: str) -> DataFrame:
    rank = step.configuration.rank
    index = f"{int(step.round['lambda_index_after'])}L"
    window = round(rank.importance_window_days * 86_400)
    payable = payable_sql("state")
    units = importance_sql(
        cash=f"CASE WHEN {payable} THEN cash ELSE 0L END",
        lambda_index=f"CASE WHEN {payable} THEN lambda_index ELSE {index} END",
        index=index,
        history="history",
        history_at="history_at",
        now=now,
        window_seconds=window,
    )
    age_days = f"(unix_micros({now}) - unix_micros(last_success_at)) / 86400000000D"
    claimed = claim_stands_sql("listed_lastmod_at", "last_success_at", now)
    value = crawl_value_sql(
        importance=f"greatest({units} / {float(UNITS_PER_CREDIT)!r}D, {_LEAST_IMPORTANCE!r}D)",
        rate=rate_per_day_sql("change_events", "observed_days", rank.first_interval_days),
        age_days=counted_age_days_sql(age_days, claimed),
        quality="quality",
        priority="manual_priority",
        listed_priority="listed_priority",
    )
    asked_for = "true" if step.round.form.only or step.round.form.force else "false"
    queue = (
        f"CASE WHEN {asked_for} OR manual_priority > 1D THEN '{FrontQueue.MANUAL}' "
        f"WHEN failure_streak > 0 THEN '{FrontQueue.RETRY}' "
        f"WHEN last_success_at IS NULL THEN '{FrontQueue.DISCOVERY}' ELSE '{FrontQueue.REFRESH}' END"
    )
    return due.withColumns(
        {
            "queue": F.expr(queue),
            "effective_cash": F.expr(effective_cash_sql("cash", "lambda_index", index, payable)),
            "crawl_value": F.expr(value),
        }
    )


@dataclass(frozen=True)
class PeoplesDecisions:
    """What people decided, by kind: (subject, value). Decisions are few, so they stand in expressions."""

    by_kind: dict[OverrideKind, list[tuple[str, str | None]]]

    @classmethod
    def read(cls, step: Step) -> PeoplesDecisions:
        """The overrides in force at the round's opening."""
        by_kind: dict[OverrideKind, list[tuple[str, str | None]]] = {kind: [] for kind in OverrideKind}
        for row in step.opening_rows("overrides"):
            by_kind[OverrideKind(row["override_kind"])].append((row["subject"], row["value"]))
        return cls(by_kind)

    def excluded(self) -> Column:
        """Whether the column `url` begins with an excluded prefix or that of an accepted trap."""
        result = F.lit(False)
        for prefix, _ in self.by_kind[OverrideKind.EXCLUDE] + self.by_kind[OverrideKind.TRAP]:
            result = result | F.col("url").startswith(prefix)
        return result

    def blocked(self) -> Column:
        """Whether the column `host` is blocked."""
        return names_host([subject for subject, _ in self.by_kind[OverrideKind.BLOCK]])

    def url_priority(self) -> Column:
        """The factor decided for the column `url`; the longest matching prefix wins."""
        chosen = F.lit(1.0)
        for subject, value in sorted(self.by_kind[OverrideKind.PRIORITY], key=lambda item: len(item[0])):
            if "://" in subject:
                chosen = F.when(F.col("url").startswith(subject), F.lit(float(value or 0))).otherwise(chosen)
        return chosen

    def value_for_host(self, kind: OverrideKind, default: float) -> Column:
        """The number decided for `host`; the decision with the longest matching name wins."""
        chosen = F.lit(float(default))
        for subject, value in sorted(self.by_kind[kind], key=lambda item: len(item[0])):
            chosen = F.when(names_host([subject]), F.lit(float(value or 0))).otherwise(chosen)
        return chosen


def names_host(subjects: list[str]) -> Column:
    """Whether the column `host`, with or without its port, or a domain that it belongs to, is among the subjects."""
    name = F.expr("regexp_replace(host, ':[0-9]+$', '')")
    result = F.lit(False)
    for subject in subjects:
        result = result | (F.col("host") == subject) | (name == subject) | name.endswith(f".{subject}")
    return result


def host_terms(step: Step, due: DataFrame, decisions: PeoplesDecisions) -> DataFrame:
    """One row a host with due URLs.

    Columns: host, registered_domain, delay_seconds, blocked, host_quota, host_priority,
    last_access_at, ips.
    """
    fetch, frontier, now = step.configuration.fetch, step.configuration.frontier, step.round.now
    known = step.opening("hosts").select(
        "host", "registered_domain", "crawl_delay_seconds", "adaptive_delay_seconds", "blocked_until",
        "quota_urls_per_round", "last_access_at", "ips", "trap_score",
    )  # fmt: skip
    seeds = step.opening("seeds").groupBy("host").agg(F.min("registered_domain").alias("seed_domain"))
    delay = f"coalesce(crawl_delay_seconds, 0D), coalesce(adaptive_delay_seconds, 0D), {fetch.min_delay_seconds!r}D"
    quota = decisions.value_for_host(OverrideKind.QUOTA, frontier.host_quota)
    return (
        due.select("host")
        .distinct()
        .join(known, "host", "left")
        .join(seeds, "host", "left")
        .withColumn("registered_domain", F.coalesce("registered_domain", "seed_domain", "host"))
        .withColumn("delay_seconds", F.expr(f"greatest({delay})"))
        .withColumn("blocked", decisions.blocked() | F.coalesce(F.col("blocked_until") > F.lit(now), F.lit(False)))
        .withColumn("decided_quota", quota)
        .withColumn("host_quota", F.expr("CAST(least(decided_quota, quota_urls_per_round) AS BIGINT)"))
        .withColumn(
            "host_priority",
            decisions.value_for_host(OverrideKind.PRIORITY, 1.0) * F.expr(trap_factor_sql("trap_score")),
        )
        .select(
            "host", "registered_domain", "delay_seconds", "blocked", "host_quota", "host_priority", "last_access_at",
            "ips",
        )
    )  # fmt: skip


def only_predicate(step: Step, configuration: Configuration) -> Column | None:
    """What the trigger form's `only` selects; None: everything.

    Raises:
        UsageError: an item that is neither host, domain nor URL.
    """
    form = step.round.form
    if not form.only:
        return None
    files, items = split_files("only", form.only)
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        items += [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    canonicalizer = Canonicalizer.from_settings(configuration.urls)
    ids: list[int] = []
    names: list[str] = []
    for item in items:
        if "://" not in item:
            names.append(item.lower())
            continue
        canonical = canonicalizer.canonical(item)
        if canonical is None:
            raise UsageError(f"only: {item!r} is not a URL.")
        ids.append(url_id(canonical))
    return F.col("url_id").isin(ids) | names_host(names)
