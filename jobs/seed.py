"""seed: takes the lease's run to a round, canonicalises seeds, folds people's decisions.

Writes `seeds`, `overrides`, the opening row of `rounds`, and the rejects of its own step. All of it
is rows of one process: no JVM, unless an undo is to be finished.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from recrawl.assignment import Assignment, first_unfinished_step, save_assignment, save_step_summary
from recrawl.config.form import RoundForm
from recrawl.config.model import Configuration
from recrawl.errors import RoundStateError, UsageError
from recrawl.inbox import InboxReader
from recrawl.lease import Lease
from recrawl.rank.aopic import credit_units
from recrawl.round_ledger import (
    FOLDED_STATES,
    UNFINISHED_STATES,
    Round,
    all_rounds,
    frozen_configuration,
    save_round,
)
from recrawl.rounds import moment_of
from recrawl.seed.decisions import fold_decisions
from recrawl.seed.root_set import changed_seeds
from recrawl.seed.seed_files import SeedLine, SeedProblem, parse_seed_file
from recrawl.seed.site_decisions import with_site_decisions
from recrawl.spark.application import Application, Summary, say, step_main
from recrawl.spark.undo import finish_undos, take_back
from recrawl.stored_tables import rows_of_batch
from recrawl.tables.catalog import STATE_TABLES
from recrawl.tables.vocabulary import RejectFilter, RoundKind, RoundState
from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.keys import url_id
from recrawl.urls.rule_set import RULES_KEY, rule_changes, rules_text

FROZEN_TABLES = (*STATE_TABLES, "seeds", "overrides")


@dataclass(frozen=True)
class SeedSource:
    """Seed lines and who gave them: a file's name, a person, the trigger form."""

    name: str
    content: bytes


def run(application: Application, run_id: str, form: RoundForm, lease: Lease) -> Summary:
    """Decide which round the run works on; open a new one where none is open.

    Raises:
        RoundStateError: `from_step` without an open round, other URL rules than before, or a half-done rekey.
        UsageError: a seed file that can't be read.
    """
    created = application.stored.create_missing(application.clock.now())
    if created:
        say(f"seed: created {len(created)} tables under {application.store.root}.")
    finish_undos(application, lease)
    rounds = all_rounds(application.stored)
    own = next((row for row in rounds if row.round_id == run_id), None)
    if own is not None and own.state not in UNFINISHED_STATES:
        say(f"seed: round {run_id} is {own.state}; nothing to do.")
        _assign(application, form, run_id, own, form.from_step or "seed")
        return {"round_id": run_id, "round_state": str(own.state)}
    unfinished = own or next((row for row in rounds if row.state in UNFINISHED_STATES), None)
    if unfinished is not None and unfinished is not own and unfinished.form.plan_only:
        # A plan that was shown and not taken back: nobody waits for it.
        take_back(application, unfinished)
        unfinished = None
    if unfinished is not None and unfinished["round_kind"] == RoundKind.REKEY:
        raise RoundStateError(
            f"Round {unfinished.round_id}, a rekey, has not finished.",
            "Finish it with `recrawl rekey`, or take it back with `recrawl undo`.",
        )
    if unfinished is not None:
        return _continue(application, form, run_id, unfinished)
    if form.from_step not in (None, "seed"):
        raise RoundStateError(f"There is no open round to continue from {form.from_step}.", "Leave from_step empty.")
    return _open(application, form, run_id, rounds, lease)


def _continue(application: Application, form: RoundForm, run_id: str, row: Round) -> Summary:
    if form.plan_only and not row.form.plan_only:
        raise RoundStateError(
            f"Round {row.round_id} is open; a plan can only be shown between rounds.",
            "Run once without plan_only to finish it, or with on_open_round=abandon.",
        )
    first = form.from_step
    if first is None:
        first = "seed" if row.round_id == run_id else first_unfinished_step(application.store, row.round_id)
        if row.state is RoundState.FOLDING:
            first = "rank"
    assignment = _assign(application, form, run_id, row, first)
    verb = "abandons" if assignment.abandon else "continues"
    say(f"seed: this run {verb} round {row.round_id}, which is {row.state}, from {first}.")
    save_step_summary(application.store, row.round_id, "seed", {"round_id": row.round_id})
    return {"round_id": row.round_id, "continues": row.round_id != run_id}


def _assign(application: Application, form: RoundForm, run_id: str, row: Round, first: str) -> Assignment:
    other = row.round_id != run_id
    assignment = Assignment(
        run_id=run_id,
        round_id=row.round_id,
        first_step=first,
        abandon=other and application.configuration.round.on_open_round == "abandon",
        plan_only=row.form.plan_only,
        started_at=application.clock.now(),
    )
    save_assignment(application.store, assignment)
    return assignment


def _open(application: Application, form: RoundForm, run_id: str, rounds: list[Round], lease: Lease) -> Summary:
    configuration, stored = application.configuration, application.stored
    require_same_rules(configuration, rounds)
    now = form.now or moment_of(run_id)
    overrides = _overrides(application, now)
    configuration = with_site_decisions(configuration, overrides)
    _tell_new_site_rules(configuration, rounds)
    seeds, rejects = read_seeds(configuration, form, application, now)
    changed = changed_seeds(_known_among(application, seeds), seeds)
    lease.check()
    if changed:
        stored.put("seeds", changed)
    if sorted(stored.rows("overrides"), key=_subject_and_kind) != sorted(overrides, key=_subject_and_kind):
        lease.check()
        stored.replace("overrides", overrides)
    if rejects:
        stored.replace_slice("rejects", run_id, _reject_rows(run_id, rejects), "seed")
    opening = opening_row(application, form, run_id, rounds, now, configuration)
    lease.check()
    save_round(stored, opening)
    _assign(application, form, run_id, opening, "seed")
    summary: Summary = {"round_id": run_id, "round_number": opening["round_number"], "seeds_read": len(seeds)}
    summary["seeds_rejected"] = len(rejects)
    save_step_summary(application.store, run_id, "seed", summary)
    return summary


def require_same_rules(configuration: Configuration, rounds: list[Round]) -> None:
    """Raises RoundStateError where the URL rules are not those by which the known URLs have their ids."""
    ended = [row for row in rounds if row.state in FOLDED_STATES]
    before = ended[-1]["engine_versions"].get(RULES_KEY) if ended else None
    changes = rule_changes(before, rules_text(configuration.urls)) if before else []
    if changes:
        raise RoundStateError(
            f"The URL rules are not those by which the known URLs have their ids: {', '.join(changes)}.",
            "Run `recrawl rekey` to move the known URLs to their new ids, or set urls.* as it was.",
        )


def read_seeds(
    configuration: Configuration, form: RoundForm, application: Application, now: datetime
) -> tuple[list[dict[str, Any]], list[tuple[str, RejectFilter, str]]]:
    """Rows of `seeds` and rejects (text, filter, reason) of every source: files, form, inbox.

    A seed that stands in several sources is taken from the first; the others are rejects.
    """
    canonicalizer = Canonicalizer.from_settings(configuration.urls)
    rows: dict[int, dict[str, Any]] = {}
    rejects: list[tuple[str, RejectFilter, str]] = []
    for source in _sources(configuration, form, application):
        parsed = parse_seed_file(source.content, canonicalizer.canonical)
        for problem in parsed.problems:
            _report(source, problem, rejects)
        for line in parsed.accepted:
            row = _seed_row(line, source, configuration, canonicalizer, now)
            if row["url_id"] in rows:
                reason = f"{source.name} line {line.line_number}: also in {rows[row['url_id']]['added_by']}"
                rejects.append((line.url, RejectFilter.DUPLICATE_SEED, reason))
            else:
                rows[row["url_id"]] = row
    return list(rows.values()), rejects


def _sources(configuration: Configuration, form: RoundForm, application: Application) -> list[SeedSource]:
    files, lines = form.seed_files_and_lines()
    sources: list[SeedSource] = []
    for path in [Path(name).expanduser() for name in configuration.seed.files] + files:
        try:
            sources.append(SeedSource(str(path), path.read_bytes()))
        except OSError as error:
            raise UsageError(f"The seed file {path} can't be read: {error.strerror}.") from None
    if lines:
        sources.append(SeedSource("trigger form", "\n".join(lines).encode()))
    for line in InboxReader(application.store).read().seed_lines:
        sources.append(SeedSource(line.who, line.line.encode()))
    return sources


def _report(source: SeedSource, problem: SeedProblem, rejects: list[tuple[str, RejectFilter, str]]) -> None:
    say(f"seed: {source.name} line {problem.line_number}: {problem.reason}")
    rejects.append((problem.text, problem.filter, f"{source.name} line {problem.line_number}: {problem.reason}"))


def _seed_row(
    line: SeedLine, source: SeedSource, configuration: Configuration, canonicalizer: Canonicalizer, now: datetime
) -> dict[str, Any]:
    if line.note:
        say(f"seed: {source.name} line {line.line_number}: {line.note}")
    host = host_of(line.canonical_url)
    credit = configuration.seed.default_credit if line.credit is None else line.credit
    return {
        "url_id": url_id(line.canonical_url),
        "url": line.canonical_url,
        "host": host,
        "registered_domain": registered_domain(host),
        "raw_seed": line.url,
        "credit_granted": credit_units(credit),
        "scope": str(line.scope or configuration.seed.default_scope),
        "tags": list(line.tags),
        "manual_priority": 1.0 if line.priority is None else line.priority,
        "added_at": now,
        "added_by": source.name,
        "request_url": canonicalizer.request_form(line.url),
    }


def _known_among(application: Application, rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """url_id → the stored row, of those that were read now; the table is read batch by batch."""
    wanted = {row["url_id"] for row in rows}
    if not wanted:
        return {}
    known: dict[int, dict[str, Any]] = {}
    for batch in application.stored.batches("seeds"):
        for place, identity in enumerate(batch.column("url_id").to_pylist()):
            if identity in wanted:
                known[identity] = rows_of_batch(batch.slice(place, 1))[0]
    return known


def _tell_new_site_rules(configuration: Configuration, rounds: list[Round]) -> None:
    ended = [row for row in rounds if row.state in FOLDED_STATES]
    if ended and configuration.urls.site_rules:
        before = ended[-1].configuration(configuration).urls.site_rules
        new = [line for line in configuration.urls.site_rules if line not in before]
        if new:
            say(f"seed: new URL rules of sites: {', '.join(new)}. `recrawl rekey` moves known URLs to them.")


def _overrides(application: Application, now: datetime) -> list[dict[str, Any]]:
    """The decisions in force as rows of `overrides`."""
    inbox = InboxReader(application.store).read()
    decisions = fold_decisions(inbox.events, now)
    for sentence in (*inbox.problems, *(f"{p.event_id}: {p.reason}" for p in decisions.problems)):
        say(f"seed: inbox: {sentence}")
    return [
        {
            "subject": o.subject, "override_kind": str(o.kind), "value": o.value, "reason": o.reason, "who": o.who,
            "since": o.since, "until": o.until,
        }
        for o in decisions.overrides
    ]  # fmt: skip


def _subject_and_kind(row: dict[str, Any]) -> tuple[str, str]:
    return row["subject"], row["override_kind"]


def _reject_rows(run_id: str, rejects: list[tuple[str, RejectFilter, str]]) -> list[dict[str, Any]]:
    return [
        {"round_id": run_id, "dst_url": text, "step": "seed", "filter": str(kind), "reject_reason": reason}
        for text, kind, reason in rejects
    ]


def opening_row(
    application: Application,
    form: RoundForm,
    run_id: str,
    rounds: list[Round],
    now: datetime,
    frozen: Configuration,
    kind: RoundKind = RoundKind.CRAWL,
) -> Round:
    """The row that opens a round on the crawl as it is now: what the last round left, and the tables' versions.

    Args:
        frozen: the configuration that the round keeps, with the accepted rules of sites.
    """
    last = max((r for r in rounds if r.state in FOLDED_STATES), key=lambda r: int(r["round_number"]), default=None)
    carried = {
        "known_before": "known_after",
        "cash_before": "cash_after",
        "lambda_cash": "lambda_cash",
        "lambda_index_after": "lambda_index_after",
        "payable_urls": "payable_urls",
        "total_credit": "total_credit",
    }
    return Round(
        {
            "round_id": run_id,
            "round_number": max((int(r["round_number"]) for r in rounds), default=0) + 1,
            "round_kind": str(kind),
            "round_state": str(RoundState.OPEN),
            "run_id": run_id,
            "opened_at": application.clock.now(),
            "now": now,
            "configuration": frozen_configuration(frozen, form),
            "engine_versions": {
                "recrawl": version("recrawl"),
                "pyspark": version("pyspark"),
                "delta-spark": version("delta-spark"),
                "python": platform.python_version(),
                RULES_KEY: rules_text(application.configuration.urls),
            },
            "versions_at_open": application.stored.versions(FROZEN_TABLES),
            "generation": max((int(r["generation"]) for r in rounds), default=0),
            **{column: (last[source] if last is not None else 0) for column, source in carried.items()},
        }
    )


if __name__ == "__main__":
    step_main("seed")
