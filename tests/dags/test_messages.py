"""What operators read: the macros' results and the message about a failed step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from recrawl.config.form import RoundForm
from recrawl.orchestration.alerts import failure_message, reason_in

RUN = SimpleNamespace(run_after=datetime(2026, 11, 30, 3, 0, tzinfo=UTC))


def test_the_round_id_is_the_utc_time_of_the_run() -> None:
    from recrawl.orchestration.rounds import run_round_id

    assert run_round_id(RUN, {}) == "20261130T030000.000000Z"
    elsewhere = SimpleNamespace(run_after=datetime(2026, 11, 30, 5, 0, tzinfo=timezone(timedelta(hours=2))))
    assert run_round_id(elsewhere, {"round_id": None}) == "20261130T030000.000000Z"
    assert run_round_id(RUN, {"round_id": "20200101T000000.000000Z"}) == "20200101T000000.000000Z"


def test_the_form_goes_to_the_jobs_without_what_was_left_empty() -> None:
    from recrawl.orchestration.rounds import form_json

    params = {**dict.fromkeys(RoundForm.model_fields), "only": ["a.test"], "force": True, "mode": ""}
    assert RoundForm.from_json(form_json(params)) == RoundForm(only=["a.test"], force=True)
    assert form_json({}) == "{}"


def test_a_form_that_can_not_be_used_is_not_tried_again() -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from recrawl.orchestration.rounds import form_json

    with pytest.raises(AirflowFailException, match=r"from_step"):
        form_json({"from_step": "fetsh"})


def test_the_message_names_step_round_reason_and_the_ways_on() -> None:
    message = failure_message(
        {
            "task_instance": SimpleNamespace(task_id="rank"),
            "dag_run": RUN,
            "params": {},
            "exception": RuntimeError("Cannot execute: spark-submit …\nLast output:\nrecrawl: A law is broken. Undo."),
        }
    )
    assert message.startswith("The step rank of run 20261130T030000.000000Z failed: A law is broken. Undo.\n")
    for way in ("clear this task", "trigger crawl_round", "on_open_round = abandon"):
        assert way in message


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["noise", "recrawl: First. Mend.", "java.lang.RuntimeException: late"], "First. Mend."),
        (["Traceback:", "  File x", "ImportError: no module", "noise"], "ImportError: no module"),
        (
            ["org.apache.spark.SparkException: Job aborted", "\tat org.apache"],
            "org.apache.spark.SparkException: Job aborted",
        ),
        (["only noise", "more"], "only noise"),
        ([], ""),
    ],
)
def test_the_reason_is_the_jobs_own_sentence_else_the_last_exception(lines: list[str], reason: str) -> None:
    assert reason_in(lines) == reason
