"""The trigger form of the UI: the fields of `RoundForm`, typed and described."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from recrawl.config.form import RoundForm
from recrawl.stages import STEPS
from recrawl.tables.vocabulary import FrontierMode

_LINES: dict[str, Any] = {"type": ["null", "array"], "items": {"type": "string"}}


def _choice(labels: dict[str, str], empty: str) -> dict[str, Any]:
    """A choice that may stay empty; `labels` says what each value means, `empty` what none means."""
    # Where some value has no label the UI takes the one of nothing chosen, and without that it shows "null".
    shown = {"null": empty} | {value: f"{value}: {label}" for value, label in labels.items()}
    return {"type": ["null", "string"], "enum": [None, *labels], "values_display": shown}


#: JSON schema of each field; the descriptions and defaults are those of the form itself.
_SCHEMAS: dict[str, dict[str, Any]] = {
    "seeds": _LINES,
    "only": _LINES,
    "force": {"type": "boolean"},
    "max_urls": {"type": ["null", "integer"], "minimum": 1},
    "time_budget_seconds": {"type": ["null", "number"], "exclusiveMinimum": 0},
    "mode": _choice({str(mode): mode.sentence for mode in FrontierMode}, "as configured (frontier.mode)"),
    "from_step": _choice({step.name: step.purpose for step in STEPS}, "the first one that is unfinished"),
    "now": {"type": ["null", "string"], "format": "date-time"},
    "plan_only": {"type": "boolean"},
    "on_open_round": _choice(
        {
            "continue": "Go on from its first unfinished step.",
            "abandon": "Keep and fold what it captured, then begin anew.",
        },
        "as configured (round.on_open_round)",
    ),
    "round_id": {"type": ["null", "string"], "pattern": r"^\d{8}T\d{6}\.\d{6}Z$"},
}


def round_params() -> dict[str, Param]:
    """The params of `crawl_round`, in the order of the form."""
    return {
        name: Param(default=field.default, title=name, description=field.description, **_SCHEMAS[name])
        for name, field in RoundForm.model_fields.items()
    }
