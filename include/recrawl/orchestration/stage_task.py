"""A step of a round as an Airflow task: one spark-submit."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import TriggerRule
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from recrawl.assignment import load_assignment, step_summary
from recrawl.bootstrap.places import Places
from recrawl.config import load_configuration
from recrawl.config.form import RoundForm
from recrawl.config.load import PROJECT_FOLDER
from recrawl.config.model import Configuration
from recrawl.errors import RecrawlError
from recrawl.orchestration.environment import CONNECTION_VARIABLE, spark_connection, spark_environment
from recrawl.orchestration.rounds import form_json, run_round_id
from recrawl.spark.settings import spark_settings
from recrawl.stages import STEPS, Step
from recrawl.storage import Store

if TYPE_CHECKING:
    from airflow.sdk import Context

JOBS_FOLDER = PROJECT_FOLDER / "jobs"
RETRY_DELAY = timedelta(seconds=30)
LONGEST_RETRY_DELAY = timedelta(minutes=10)

#: Steps that work on what was planned: nothing for them when a run only plans (`rank` takes the plan back), or
#: when nothing is due. Told before Spark starts, which is all that an empty round would wait for.
_WORK_ON_THE_PLAN = ("fetch", "parse", "dedupe")

BACKFILL_REFUSAL = (
    "A crawl can't fetch the past: this run is a backfill, and pages can only be fetched as they are today. "
    "To look at a past round use `recrawl sql --at ROUND`; to crawl now, trigger crawl_round."
)


class StageOperator(SparkSubmitOperator):
    """Runs `jobs/<step>.py` by spark-submit for the round of this DAG run.

    The settings of Spark are read when the task runs, not when the DAG is parsed. What the job
    prints, its progress every 10 s among it, is the task's log.

    Args:
        step: the step.
        jobs_folder: where the job files lie.
    """

    ui_color = "#dbeafe"

    def __init__(self, *, step: Step, jobs_folder: Path = JOBS_FOLDER, **settings: Any) -> None:
        super().__init__(
            application=str(jobs_folder / f"{step.name}.py"),
            application_args=[
                "--run",
                "{{ run_round_id(dag_run, params) }}",
                "--form",
                "{{ form_json(params) }}",
            ],
            name=f"recrawl-{step.name}",
            conn_id="spark_default",
            # The rows of a rerun are the same (rule R4), so there is no running job to go back to.
            durable=False,
            **settings,
        )
        self.step = step

    def execute(self, context: Context) -> None:
        """Run the step, or say in one line why there is nothing to run.

        Raises:
            AirflowFailException: a backfill, or something that another try would not mend.
            AirflowSkipException: the step has nothing to do in this run.
            AirflowException: the job failed; its log says why.
        """
        params, dag_run = context["params"], context["dag_run"]
        if str(getattr(dag_run.run_type, "value", dag_run.run_type)) == "backfill":
            raise AirflowFailException(BACKFILL_REFUSAL)
        run_id = run_round_id(dag_run, params)
        try:
            form = RoundForm.from_json(form_json(params))
            configuration = load_configuration(overrides=form.overrides())
            reason = reason_to_skip(self.step.name, run_id, form, configuration)
            if reason:
                self.log.info("%s: %s", self.step.name, reason)
                raise AirflowSkipException(reason)
            self.conf = submit_settings(configuration)
            self.env_vars = spark_environment(Places())
        except RecrawlError as error:
            raise AirflowFailException(str(error)) from None
        os.environ.setdefault(CONNECTION_VARIABLE, spark_connection(configuration))
        self.log.info("%s of run %s: %s", self.step.name, run_id, self.step.purpose)
        super().execute(context)


def reason_to_skip(step: str, run_id: str, form: RoundForm, configuration: Configuration) -> str:
    """Why a step has nothing to do in this run; empty where it has.

    `seed` always runs: it decides which round the run works on.
    """
    if step == STEPS[0].name:
        return ""
    if form.plan_only and step in _WORK_ON_THE_PLAN:
        return "plan_only: this run shows the plan and fetches nothing."
    store = Store(configuration.storage)
    assignment = load_assignment(store, run_id)
    if assignment is None:
        return ""
    if not assignment.covers(step):
        return f"Done before in round {assignment.round_id}; this run begins with {assignment.first_step}."
    planned = (step_summary(store, assignment.round_id, "frontier") or {}).get("planned")
    if step in _WORK_ON_THE_PLAN and planned == 0:
        return f"Nothing was planned in round {assignment.round_id}: nothing is due, or nothing was asked for."
    return ""


def submit_settings(configuration: Configuration) -> dict[str, str]:
    """Spark's settings for the command line: all but credentials, which the job reads itself.

    Raises:
        EnvironmentFaultError: the Delta jars are not there.
    """
    settings = spark_settings(configuration)
    return {name: value for name, value in settings.items() if not name.endswith((".secret.key", ".access.key"))}


def stage_tasks(configuration: Configuration, jobs_folder: Path = JOBS_FOLDER) -> list[StageOperator]:
    """One task a step, in order, chained. To be called inside a DAG."""
    tasks: list[StageOperator] = []
    for step in STEPS:
        budget_seconds = configuration.fetch.time_budget_seconds if step.name == "fetch" else 0
        task = StageOperator(
            task_id=step.name,
            step=step,
            jobs_folder=jobs_folder,
            retries=step.retries,
            retry_delay=RETRY_DELAY,
            retry_exponential_backoff=2,
            max_retry_delay=LONGEST_RETRY_DELAY,
            execution_timeout=timedelta(seconds=configuration.round.step_timeout_seconds + budget_seconds),
            # A skipped step was done before, or has nothing to do: the next one still has its turn.
            trigger_rule=TriggerRule.NONE_FAILED,
            doc_md=step.purpose,
        )
        if tasks:
            tasks[-1] >> task
        tasks.append(task)
    return tasks
