"""What an operator reads first when a step has failed."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from recrawl.config.form import RoundForm
from recrawl.errors import RecrawlError
from recrawl.rounds import round_id_of

if TYPE_CHECKING:
    from airflow.sdk import Context

_SENTENCE = re.compile(r"\brecrawl: (.+)")
_EXCEPTION = re.compile(r"(?:[\w$]+\.)*\w*(?:Error|Exception|Interrupt)\b(?:: |$)")
_LONGEST_REASON = 400

log = logging.getLogger("recrawl.alerts")


def explain_failure(context: Context) -> None:
    """Callback of a failed task: one message that says what stands still and what to do."""
    log.error("%s", failure_message(context))


def failure_message(context: Context | dict[str, Any]) -> str:
    """The message about a failed step: what, which round, why, and the three ways on."""
    step = context["task_instance"].task_id
    reason = reason_in(str(context.get("exception") or "").splitlines()) or "the log above tells why."
    return (
        f"The step {step} of run {_round_id(context)} failed: {reason}\n"
        "A round that was open stays open; what the next round reads has not changed, unless `rank` was folding, which "
        "is only rolled forward. Ways on: clear this task to try it again; trigger crawl_round, which goes on from the "
        "first unfinished step; or trigger it with on_open_round = abandon, which keeps what was captured."
    )


def reason_in(lines: Iterable[str]) -> str:
    """Why a job failed, from what it printed: its own sentence, else the last exception; empty without any."""
    sentence = exception = first = ""
    for line in lines:
        text = line.strip()
        first = first or text
        said, raised = _SENTENCE.search(text), _EXCEPTION.match(text)
        sentence = said[1] if said else sentence
        exception = text if raised else exception
    reason = sentence or exception or first
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]} …"


def _round_id(context: Context | dict[str, Any]) -> str:
    try:
        form = RoundForm.from_mapping(context["params"])
    except RecrawlError:
        return "(its form can't be used)"
    return form.round_id or round_id_of(context["dag_run"].run_after)
