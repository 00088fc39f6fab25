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
    file = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"]) / f"{dag_id}.py"
    bag = DagBag(dag_folder=str(file))
    if dag_id not in bag.dags:
        raise LookupError(f"The DAG {dag_id} can't be imported: {bag.import_errors or 'no such DAG'}")
    run = bag.dags[dag_id].test(run_conf=conf)
    return str(getattr(run.state, "value", run.state))


def main() -> int:
    """Run with the form given as JSON; 0 when the run succeeded."""
    state = run_dag(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    print(f"The DAG run ended: {state}", flush=True)
    return 0 if state == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
