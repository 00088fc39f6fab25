"""From a DAG run to a round: its id and its form, as macros of the DAG's templates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from airflow.sdk.exceptions import AirflowFailException

from recrawl.config.form import RoundForm
from recrawl.errors import RecrawlError
from recrawl.rounds import round_id_of


class Run(Protocol):
    """What is asked of a DAG run."""

    run_after: datetime


def run_round_id(dag_run: Run, params: Mapping[str, Any]) -> str:
    """The round id of a run: `round_id` of the form, else the time of the run.

    `run_after` is the one time that every kind of run has, and that retry, clear and reprocess keep.

    Raises:
        AirflowFailException: the form can't be used; trying again would not help.
    """
    form = _form(params)
    return form.round_id or round_id_of(dag_run.run_after)


def form_json(params: Mapping[str, Any]) -> str:
    """The trigger form as JSON without what was left empty.

    Raises:
        AirflowFailException: the form can't be used.
    """
    return _form(params).to_json()


def _form(params: Mapping[str, Any]) -> RoundForm:
    try:
        return RoundForm.from_mapping(params)
    except RecrawlError as error:
        raise AirflowFailException(str(error)) from None


MACROS = {"run_round_id": run_round_id, "form_json": form_json}
