"""The Spark session of a job."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from recrawl.config.model import Configuration
from recrawl.spark.settings import spark_master, spark_settings


def open_session(configuration: Configuration) -> SparkSession:
    """The session for this configuration; under spark-submit the one that it prepared."""
    os.environ.setdefault("PYSPARK_PYTHON", spark_settings(configuration)["spark.pyspark.python"])
    builder = SparkSession.builder.master(spark_master(configuration))
    for key, value in spark_settings(configuration).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
