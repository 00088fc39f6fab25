"""Every Airflow setting of the embedded default, in one place.

No airflow import here: the settings must be in the environment before the first one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from recrawl.bootstrap.java import java_environment
from recrawl.bootstrap.places import Places, running_python_folder
from recrawl.config.model import Configuration
from recrawl.spark.settings import spark_master

DEFAULT_PORT = 8080
CONNECTION_VARIABLE = "AIRFLOW_CONN_SPARK_DEFAULT"

#: What another Airflow of this user must never decide for this one.
_OURS_ALONE = ("AIRFLOW_HOME", "AIRFLOW__CORE__DAGS_FOLDER", "AIRFLOW__CORE__PLUGINS_FOLDER")


def airflow_settings(
    places: Places, port: int = DEFAULT_PORT, log_ports: tuple[int, int] = (8793, 8794)
) -> dict[str, str]:
    """The settings of the embedded Airflow: SQLite and logs in an ignored folder, loopback only.

    Args:
        places: the checkout.
        port: where the UI and the API listen.
        log_ports: where the worker's and the triggerer's logs are served.
    """
    home = places.state / "airflow"
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(places.project / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(places.project / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        # Without it tasks look for the API at port 8080, fail, and leave no log.
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(log_ports[0]),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(log_ports[1]),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        # Airflow reports its use to a third party unless told not to; a crawler calls nobody unasked.
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def spark_environment(places: Places) -> dict[str, str]:
    """What spark-submit needs besides its settings: Java, and the Python that has the packages.

    Raises:
        EnvironmentFaultError: there is no Java.
    """
    # spark-submit looks for Spark through the first `python3` on the path.
    folders = [str(running_python_folder()), os.environ.get("PATH", "")]
    return {
        **java_environment(places),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PATH": os.pathsep.join(folders),
    }


def spark_connection(configuration: Configuration) -> str:
    """Airflow's connection `spark_default`, as the JSON of its environment variable."""
    return json.dumps({"conn_type": "spark", "host": spark_master(configuration), "extra": {"deploy-mode": "client"}})


def process_environment(base: Mapping[str, str], settings: Mapping[str, str], places: Places) -> dict[str, str]:
    """The whole environment of an Airflow process.

    What the user already set for Airflow stays, save for the places, so that another Airflow on
    this machine is never touched.
    """
    kept = {name: value for name, value in base.items() if name.startswith("AIRFLOW__") and name not in _OURS_ALONE}
    return {**base, **settings, **kept, **spark_environment(places)}
