"""The Spark session of a job."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from recrawl.bootstrap.java import java_environment
from recrawl.config.model import Configuration
from recrawl.spark.settings import spark_master, spark_settings

#: spark-submit has started the JVM already where it is set.
_GATEWAY_VARIABLE = "PYSPARK_GATEWAY_PORT"


def open_session(configuration: Configuration) -> SparkSession:
    """The session for this configuration; under spark-submit the one that it prepared.

    Raises:
        EnvironmentFaultError: there is no Java, or no Delta jars.
    """
    if _GATEWAY_VARIABLE not in os.environ:
        os.environ.update(java_environment())
    os.environ.setdefault("PYSPARK_PYTHON", spark_settings(configuration)["spark.pyspark.python"])
    builder = SparkSession.builder.master(spark_master(configuration))
    for key, value in spark_settings(configuration).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
