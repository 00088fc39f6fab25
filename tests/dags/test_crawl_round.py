"""The DAG as Airflow loads it: its tasks, its form, its manual, and nothing done at import."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recrawl.config.form import RoundForm
from recrawl.config.load import PROJECT_FOLDER
from recrawl.stages import STEP_NAMES, STEPS

DAGS_FOLDER = PROJECT_FOLDER / "dags"


def load() -> Any:
    """All DAGs of the project, loaded anew."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(DAGS_FOLDER))


@pytest.fixture(scope="module")
def dag() -> Any:
    """The DAG crawl_round."""
    bag = load()
    assert bag.import_errors == {}
    return bag.dags["crawl_round"]


def test_every_file_in_dags_is_a_dag_of_its_name() -> None:
    files = {path.stem for path in DAGS_FOLDER.glob("*.py")}
    assert set(load().dags) == files


def test_tasks_are_the_steps_in_order(dag: Any) -> None:
    assert [task.task_id for task in dag.topological_sort()] == list(STEP_NAMES)
    for earlier, later in itertools.pairwise(STEP_NAMES):
        assert dag.task_dict[earlier].downstream_task_ids == {later}


def test_each_task_has_its_steps_retries_and_an_end(dag: Any) -> None:
    for step in STEPS:
        task = dag.task_dict[step.name]
        assert task.retries == step.retries
        assert task.application == str(PROJECT_FOLDER / "jobs" / f"{step.name}.py")
        assert task.execution_timeout >= timedelta(hours=1)
    budget = dag.task_dict["fetch"].execution_timeout - dag.task_dict["parse"].execution_timeout
    assert budget == timedelta(seconds=10_800)


def test_one_run_at_a_time_and_no_catching_up(dag: Any) -> None:
    assert (dag.max_active_runs, dag.catchup, dag.schedule) == (1, False, None)


def test_the_manual_explains_what_operators_ask(dag: Any) -> None:
    manual = dag.doc_md
    for words in (
        "plan_only",
        "Backfill",
        "on_open_round",
        "recrawl stop",
        "/api/v2/dags/crawl_round/dagRuns",
        *STEP_NAMES,
    ):
        assert words in manual


def test_the_form_has_every_field_typed_and_described(dag: Any) -> None:
    assert list(dag.params) == list(RoundForm.model_fields)
    for name in dag.params:
        param = dag.params.get_param(name)
        assert param.description and param.schema["type"]
    # What the form shows when nothing is filled in is a form that leaves all to the configuration.
    assert RoundForm.from_mapping(dag.params.dump()) == RoundForm()


def test_each_choice_of_the_form_says_what_it_means(dag: Any) -> None:
    for name in ("mode", "from_step", "on_open_round"):
        schema = dag.params.get_param(name).schema
        assert set(schema["values_display"]) == {"null", *schema["enum"][1:]} and schema["enum"][0] is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seeds", "not a list"),
        ("max_urls", 0),
        ("max_urls", 2.5),
        ("time_budget_seconds", 0),
        ("force", "yes"),
        ("mode", "fastest-first"),
        ("from_step", "publish"),
        ("on_open_round", "ignore"),
        ("round_id", "20261130"),
    ],
)
def test_the_form_refuses_impossible_values(dag: Any, field: str, value: object) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(field).resolve(value)


def test_the_schedule_is_that_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL__ROUND__SCHEDULE", "0 3 * * *")
    assert load().dags["crawl_round"].schedule == "0 3 * * *"


def test_a_broken_configuration_is_an_import_error_that_says_what_to_mend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "recrawl.toml"
    file.write_text("[frontier]\nmax_urlz = 3\n", encoding="utf-8")
    monkeypatch.setenv("RECRAWL_CONFIG", str(file))
    errors = load().import_errors
    assert len(errors) == 1
    assert "Did you mean frontier.max_urls?" in next(iter(errors.values()))


_IMPORT_ALONE = """
import importlib.util, sys
import airflow.sdk  # its own import reads airflow.cfg
def refuse(event, arguments):
    if event in ("socket.connect", "sqlite3.connect", "subprocess.Popen", "os.system"):
        raise RuntimeError(f"{event} at import: {arguments}")
sys.addaudithook(refuse)
spec = importlib.util.spec_from_file_location("crawl_round", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
heavy = {"pyspark", "delta", "deltalake", "jobs"} & set(sys.modules)
assert not heavy, heavy
"""


def test_importing_the_dag_opens_nothing_and_loads_no_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALONE, str(DAGS_FOLDER / "crawl_round.py")],
        env={**os.environ, "PYTHONPATH": str(PROJECT_FOLDER / "include")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
