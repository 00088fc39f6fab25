"""What an operator reads first when a step has failed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from recrawl.config.form import RoundForm
from recrawl.errors import RecrawlError
from recrawl.rounds import round_id_of

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger("recrawl.alerts")


def explain_failure(context: Context) -> None:
    """Callback of a failed task: one message that says what stands still and what to do."""
    log.error("%s", failure_message(context))


def failure_message(context: Context | dict[str, Any]) -> str:
    """The message about a failed step: what, which round, why, and the three ways on."""
    step = context["task_instance"].task_id
    reason = context.get("exception")
    first_line = str(reason).strip().splitlines()[0] if reason and str(reason).strip() else "the log above tells why"
    return (
        f"The step {step} of run {_round_id(context)} failed: {first_line}\n"
        "A round that was open stays open; what the next round reads has not changed, unless `rank` was folding, which "
        "is only rolled forward. Ways on: clear this task to try it again; trigger crawl_round, which goes on from the "
        "first unfinished step; or trigger it with on_open_round = abandon, which keeps what was captured."
    )


def _round_id(context: Context | dict[str, Any]) -> str:
    try:
        form = RoundForm.from_mapping(context["params"])
    except RecrawlError:
        return "(its form can't be used)"
    return form.round_id or round_id_of(context["dag_run"].run_after)
