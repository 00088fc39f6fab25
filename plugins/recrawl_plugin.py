"""The Airflow plugin: offers the macros of a round to any DAG, as `macros.recrawl.run_round_id(dag_run, params)`.

A DAG that follows crawl_round (a report, an export) names its round with them. Every part of Airflow
imports this file, so it imports little.
"""

from airflow.plugins_manager import AirflowPlugin

from recrawl.orchestration.rounds import MACROS


class RecrawlPlugin(AirflowPlugin):
    """What recrawl adds to Airflow."""

    name = "recrawl"
    macros = list(MACROS.values())  # noqa: RUF012 - Airflow declares it so
