"""How Airflow runs a round: the only place under `include/` that imports airflow.

`environment` and `standalone` prepare and start Airflow and do not import it themselves; `stage_task`
turns a step into a Spark task; `round_form` is the trigger form; `single_run` runs one DAG run
without a scheduler.
"""
