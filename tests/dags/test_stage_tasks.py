"""Stage tasks as Airflow runs them: `dag.test` with the project's operator, hook and form, and small jobs."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recrawl.assignment import Assignment, save_assignment, save_step_summary
from recrawl.config import load_configuration
from recrawl.config.form import RoundForm
from recrawl.rounds import round_id_of
from recrawl.stages import STEP_NAMES, STEPS
from recrawl.storage import Store

# Airflow's hook leaves the pipe of spark-submit to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")

RUN_ID = "20261130T030000.000000Z"

_JOB = """
import json, pathlib, sys
folder = pathlib.Path({folder!r})
calls = folder / "calls.jsonl"
with calls.open("a") as file:
    file.write(json.dumps([{step!r}, *sys.argv[1:]]) + chr(10))
print("12:00:00 {step}: 3 of 5 done", flush=True)
failures = folder / "fail-{step}"
left = int(failures.read_text()) if failures.exists() else 0
if left:
    failures.write_text(str(left - 1))
    print("recrawl: The uplink is down. Plug it in.", file=sys.stderr)
    sys.exit(1)
"""

_DAG = """
from datetime import datetime, timedelta, UTC
from pathlib import Path
from airflow.sdk import DAG
from recrawl.config import load_configuration
from recrawl.orchestration.alerts import explain_failure
from recrawl.orchestration.round_form import round_params
from recrawl.orchestration.rounds import MACROS
from recrawl.orchestration.stage_task import stage_tasks

with DAG("small_round", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC), params=round_params(),
         user_defined_macros=MACROS, default_args={{"on_failure_callback": explain_failure}}) as dag:
    for task in stage_tasks(load_configuration(), Path({folder!r})):
        task.retry_delay = timedelta(seconds=0)
        task.retry_exponential_backoff = 0
"""


@pytest.fixture
def small_round(
    airflow_database: None, launcher: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, Path]]:
    """A DAG of the project's stage tasks over jobs that only note how they were called; and their folder."""
    from airflow.dag_processing.dagbag import DagBag

    from tests.dags.conftest import DAGS

    monkeypatch.setenv("RECRAWL__STORAGE__ROOT", str(tmp_path / "crawl"))
    for step in STEP_NAMES:
        (tmp_path / f"{step}.py").write_text(_JOB.format(folder=str(tmp_path), step=step), encoding="utf-8")
    file = DAGS / "small_round.py"
    file.write_text(_DAG.format(folder=str(tmp_path)), encoding="utf-8")
    yield DagBag(dag_folder=str(file)).dags["small_round"], tmp_path
    file.unlink()
    # While the mark above still holds.
    gc.collect()


def calls(folder: Path) -> list[list[str]]:
    """How the jobs were called, in order."""
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()]


def states(run: Any) -> dict[str, str]:
    """The state of each task of a run."""
    return {task.task_id: str(task.state) for task in run.get_task_instances()}


def test_each_step_gets_the_round_of_the_run_and_the_form(
    small_round: tuple[Any, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    dag, folder = small_round
    run = dag.test(run_conf={"max_urls": 7, "seeds": ["http://a.test/"], "mode": None})
    assert run.state == "success"
    form = RoundForm(max_urls=7, seeds=["http://a.test/"])
    assert [call[0] for call in calls(folder)] == list(STEP_NAMES)
    for _, run_option, round_id, form_option, text in calls(folder):
        assert (run_option, round_id, form_option) == ("--run", round_id_of(run.run_after), "--form")
        assert RoundForm.from_json(text) == form
    # What a job prints is in the task's log.
    assert "fetch: 3 of 5 done" in "".join(capfd.readouterr())


def test_a_round_id_in_the_form_wins(small_round: tuple[Any, Path]) -> None:
    dag, folder = small_round
    dag.test(run_conf={"round_id": RUN_ID})
    assert {call[2] for call in calls(folder)} == {RUN_ID}


def test_a_step_that_fails_once_is_tried_again(small_round: tuple[Any, Path]) -> None:
    dag, folder = small_round
    (folder / "fail-fetch").write_text("1", encoding="utf-8")
    run = dag.test()
    assert run.state == "success"
    assert [call[0] for call in calls(folder)].count("fetch") == 2
    assert {call[2] for call in calls(folder)} == {round_id_of(run.run_after)}


def test_a_step_that_keeps_failing_stops_the_round_and_says_why(
    small_round: tuple[Any, Path], caplog: pytest.LogCaptureFixture
) -> None:
    dag, folder = small_round
    retries = next(step.retries for step in STEPS if step.name == "parse")
    (folder / "fail-parse").write_text("9", encoding="utf-8")
    run = dag.test()
    assert run.state == "failed"
    assert [call[0] for call in calls(folder)].count("parse") == retries + 1
    assert states(run)["rank"] == "upstream_failed"
    assert "failed: The uplink is down. Plug it in." in caplog.text


def test_plan_only_skips_what_fetches_and_lets_rank_take_the_plan_back(small_round: tuple[Any, Path]) -> None:
    dag, folder = small_round
    run = dag.test(run_conf={"plan_only": True})
    assert run.state == "success"
    assert [call[0] for call in calls(folder)] == ["seed", "frontier", "rank"]
    assert states(run)["fetch"] == "skipped"


def test_an_unknown_field_fails_at_once_and_names_the_nearest(
    small_round: tuple[Any, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    dag, folder = small_round
    run = dag.test(run_conf={"max_urlz": 7})
    assert run.state == "failed"
    assert not (folder / "calls.jsonl").exists()
    assert "Did you mean max_urls?" in "".join(capfd.readouterr())


def test_steps_done_before_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recrawl.orchestration.stage_task import reason_to_skip

    monkeypatch.setenv("RECRAWL__STORAGE__ROOT", str(tmp_path))
    configuration = load_configuration()
    open_round = "20261129T030000.000000Z"
    save_assignment(
        Store(configuration.storage),
        Assignment(
            RUN_ID, open_round, "parse", abandon=False, plan_only=False, started_at=datetime(2026, 11, 30, tzinfo=UTC)
        ),
    )
    reasons = {step: reason_to_skip(step, RUN_ID, RoundForm(), configuration) for step in STEP_NAMES}
    assert [step for step, reason in reasons.items() if reason] == ["frontier", "fetch"]
    assert open_round in reasons["fetch"]
    # A run that seed has not seen yet skips nothing.
    assert reason_to_skip("parse", "20261201T030000.000000Z", RoundForm(), configuration) == ""


def test_an_empty_plan_starts_no_spark_for_what_works_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recrawl.orchestration.stage_task import reason_to_skip

    monkeypatch.setenv("RECRAWL__STORAGE__ROOT", str(tmp_path))
    configuration = load_configuration()
    store = Store(configuration.storage)
    started_at = datetime(2026, 11, 30, tzinfo=UTC)
    save_assignment(store, Assignment(RUN_ID, RUN_ID, "seed", abandon=False, plan_only=False, started_at=started_at))
    skipped = {}
    for planned in (None, 0, 3):
        if planned is not None:
            save_step_summary(store, RUN_ID, "frontier", {"planned": planned})
        skipped[planned] = [step for step in STEP_NAMES if reason_to_skip(step, RUN_ID, RoundForm(), configuration)]
    assert skipped == {None: [], 0: ["fetch", "parse", "dedupe"], 3: []}


@pytest.mark.parametrize("step", STEP_NAMES)
def test_a_backfill_is_refused_with_what_to_use(small_round: tuple[Any, Path], step: str) -> None:
    from airflow.sdk.api.datamodels._generated import DagRunType
    from airflow.sdk.exceptions import AirflowFailException

    dag, folder = small_round
    run = SimpleNamespace(run_type=DagRunType.BACKFILL, run_after=datetime(2026, 11, 1, tzinfo=UTC))
    with pytest.raises(AirflowFailException, match=r"can't fetch the past.*recrawl sql --at ROUND"):
        dag.task_dict[step].execute({"dag_run": run, "params": {}})
    assert not (folder / "calls.jsonl").exists()


def test_credentials_are_not_on_the_command_line(launcher: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from recrawl.orchestration.stage_task import submit_settings

    monkeypatch.setenv("RECRAWL__STORAGE__ROOT", "s3a://crawl/one")
    monkeypatch.setenv("RECRAWL__STORAGE__S3_ACCESS_KEY", "the-access-key")
    monkeypatch.setenv("RECRAWL__STORAGE__S3_SECRET_KEY", "the-secret-key")
    text = json.dumps(submit_settings(load_configuration()))
    assert "path.style.access" in text
    assert "the-access-key" not in text and "the-secret-key" not in text
