"""`python -m recrawl.orchestration.single_run CONF`: one DAG run in this process, no scheduler.

The run is recorded in Airflow's database, so the UI shows it afterwards. The environment must
hold `environment.airflow_settings` already.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

DAG_ID = "crawl_round"


def run_dag(conf: dict[str, Any], dag_id: str = DAG_ID) -> str:
    """Run the DAG once to its end; the state of the run: `success` or `failed`.

    Raises:
        LookupError: the DAG can't be imported; the text says why.
    """
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils import db

    # Creates the database, or brings one of an older version up to date; else a quick look.
    db.initdb()
    _give_up_cut_off_runs(dag_id)
    file = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"]) / f"{dag_id}.py"
    bag = DagBag(dag_folder=str(file))
    if dag_id not in bag.dags:
        raise LookupError(f"The DAG {dag_id} can't be imported: {bag.import_errors or 'no such DAG'}")
    run = bag.dags[dag_id].test(run_conf=conf)
    return str(getattr(run.state, "value", run.state))


def _give_up_cut_off_runs(dag_id: str) -> None:
    """Mark runs of earlier calls that were cut off as failed: a scheduler started later would take them up.

    The crawl's own round is another matter: it is found open and continued.
    """
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState, State, TaskInstanceState
    from airflow.utils.types import DagRunTriggeredByType
    from sqlalchemy import select

    with create_session() as session:
        unfinished = (DagRunState.RUNNING, DagRunState.QUEUED)
        chosen = select(DagRun).where(
            DagRun.dag_id == dag_id,
            DagRun.state.in_(unfinished),
            DagRun.triggered_by == DagRunTriggeredByType.TEST,
        )
        for run in session.scalars(chosen).all():
            run.state = DagRunState.FAILED
            tasks = select(TaskInstance).where(TaskInstance.dag_id == dag_id, TaskInstance.run_id == run.run_id)
            for task in session.scalars(tasks).all():
                if task.state not in State.finished:
                    task.state = TaskInstanceState.FAILED


def main() -> int:
    """Run with the form given as JSON; 0 when the run succeeded."""
    state = run_dag(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    print(f"The DAG run ended: {state}", flush=True)
    return 0 if state == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
