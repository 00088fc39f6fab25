"""rank: AOPIC, change rates and due times; stages the round, checks the laws, folds, closes.

Writes `url_updates` and `alerts`, then the state tables, then the closing row of `rounds`. Until
the laws hold nothing that the next round reads has changed; from then on the round is only rolled
forward: every commit carries a transaction id, so that a step that was killed is simply run again.
"""

from __future__ import annotations

from typing import Any

from jobs.cash_flows import round_flows
from jobs.dedupe_seen import filters_are_used, keep_filters
from jobs.rank_alerts import find_alerts
from jobs.rank_fold import fold_all
from jobs.rank_laws import Figures, check_laws, measure
from jobs.rank_updates import url_updates
from recrawl.assignment import step_summary
from recrawl.errors import LawBrokenError
from recrawl.rank.aopic import lambda_payout
from recrawl.round_ledger import Round, save_round
from recrawl.spark.application import Step, Summary, say, step_main
from recrawl.spark.undo import take_back
from recrawl.tables.catalog import TABLES
from recrawl.tables.vocabulary import RoundState


def run(step: Step) -> Summary:
    """Stage, check, fold and close.

    Raises:
        LawBrokenError: a conservation law does not hold; `urls` is untouched.
    """
    if step.assignment.plan_only:
        take_back(step.application, step.round)
        return {"round_state": str(RoundState.UNDONE)}
    row = step.round
    if row.state is not RoundState.FOLDING:
        row = stage(step)
    fold_all(step, row)
    if filters_are_used(step.configuration.dedupe, int(row["known_after"])):
        keep_filters(step)
    closed = close(step, row)
    return {
        "round_state": str(closed.state),
        **{name: closed[name] for name in ("known_after", "new_urls", "fetched", "skipped_after_plan", "payable_urls")},
    }


def stage(step: Step) -> Round:
    """Write the after-images, check the laws on them, and mark the round as folding."""
    with round_flows(step) as flows:
        step.write("url_updates", url_updates(step, flows))
        figures = measure(step, flows)
    broken = check_laws(step.round, figures)
    if broken:
        raise LawBrokenError(f"Round {step.round_id} breaks a law of conservation: {'; '.join(broken)}.")
    say(f"rank: the laws hold: {figures.sentence()}")
    alerts = [row.asDict() for row in find_alerts(step).collect()]
    step.application.stored.replace_slice("alerts", step.round_id, alerts)
    row = step.round.with_values(round_state=str(RoundState.FOLDING), **closing_values(step, figures))
    step.lease.check()
    save_round(step.application.stored, row)
    return row


def closing_values(step: Step, figures: Figures) -> dict[str, Any]:
    """The closing columns of `rounds`: counts of every law, and Lambda after its payout (rule 6)."""
    frontier = step_summary(step.store, step.round_id, "frontier") or {}
    richest = int(str(frontier.get("richest_cash") or 0))
    raised = lambda_payout(figures.lambda_cash, figures.payable_urls, richest)
    cutoff = frontier.get("value_cutoff")
    return {
        "planned": figures.planned,
        "fetched": figures.fetched,
        "skipped_after_plan": figures.skipped,
        "new_urls": figures.new_urls,
        "known_after": figures.known_after,
        "credit_granted_in_round": figures.credit_granted,
        "cash_after": figures.cash_after,
        "lambda_cash": figures.lambda_cash - raised * figures.payable_urls,
        "lambda_index_after": int(step.round["lambda_index_after"]) + raised,
        "payable_urls": figures.payable_urls,
        "total_credit": figures.total_credit,
        "value_cutoff": None if cutoff is None else float(str(cutoff)),
        "outcomes_ok": figures.outcomes_ok,
        "outcomes_unchanged": figures.outcomes_unchanged,
        "outcomes_failed": figures.outcomes_failed,
        "warc_bytes": figures.warc_bytes,
    }


def close(step: Step, row: Round) -> Round:
    """Write the closing row: from now on readers see this round's versions."""
    state = RoundState.ABANDONED if step.assignment.abandon else RoundState.CLOSED
    closed = row.with_values(
        round_state=str(state),
        closed_at=step.application.clock.now(),
        versions_at_close=step.application.stored.versions(name for name in TABLES if name != "rounds"),
    )
    step.lease.check()
    save_round(step.application.stored, closed)
    return closed


if __name__ == "__main__":
    step_main("rank")
