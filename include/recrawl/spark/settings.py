"""Spark's settings for this configuration, as plain text: no pyspark here.

Both ways to run a job use them: the DAG's spark-submit and `recrawl round` in one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recrawl.bootstrap.places import Places
from recrawl.config.load import PROJECT_FOLDER
from recrawl.config.model import Configuration
from recrawl.errors import EnvironmentFaultError

DELTA_JARS = ("delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")
JARS_VARIABLE = "RECRAWL_JARS"

#: A small job spends its time in start-up: the quick compiler alone halves it, and a heap this
#: size needs no parallel collector. A cluster's driver keeps the JVM's own choice.
#: With the quick compiler the code cache is 48 MB by default: it fills, and methods are thrown out and compiled again.
_LOCAL_JVM_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m -Xms512m -Xmn256m "
    "-Xss4m"
)

#: Classes of earlier sessions, mapped instead of loaded (`class_archive.py`); a JVM that does not
#: fit it goes on without, and need not say so.
CLASS_ARCHIVE = Places(PROJECT_FOLDER).class_archive
_QUIET_ARCHIVE = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"

#: Set while the archive is written: where to.
_ARCHIVE_VARIABLE = "RECRAWL_WRITE_CLASS_ARCHIVE"

#: Spark's own would say several lines at each start; this one leaves only faults.
_LOGGING_OPTION = f"-Dlog4j2.configurationFile={(Path(__file__).resolve().parent / 'log4j2.properties').as_uri()}"

#: On one machine a round's queries run over thousands of rows, not billions: compiling each stage
#: to bytecode and planning it anew after each shuffle costs several times the work itself (measured:
#: docs/decisions/0014). `spark.extra` turns either on again.
_LOCAL_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Interpreted, it looks every shared expression up in a cache, row by row.
    "spark.sql.subexpressionElimination.enabled": "false",
    # Nobody looks at the plans of past queries here; as texts they are large, and making them costs time.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "2000",
    "spark.sql.ui.retainedExecutions": "2",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "100",
}


@contextmanager
def writing_class_archive(archive: Path) -> Iterator[None]:
    """Sessions that start within the block write their classes to `archive` when they end."""
    os.environ[_ARCHIVE_VARIABLE] = str(archive)
    try:
        yield
    finally:
        del os.environ[_ARCHIVE_VARIABLE]


def _archive_options() -> str:
    written = os.environ.get(_ARCHIVE_VARIABLE)
    if written:
        return f"-XX:ArchiveClassesAtExit={written} {_QUIET_ARCHIVE}"
    return f"-XX:SharedArchiveFile={CLASS_ARCHIVE} {_QUIET_ARCHIVE}" if CLASS_ARCHIVE.exists() else ""


def jars_folder() -> Path:
    """Where the Delta jars and optional others (S3) lie: `RECRAWL_JARS` or `.recrawl/jars`."""
    return Path(os.environ.get(JARS_VARIABLE) or PROJECT_FOLDER / ".recrawl" / "jars")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spark_master(configuration: Configuration) -> str:
    """The master: `spark.master`, else local with every core and three tries a task.

    `local[N]` would retry nothing: a fetch task that lost its partition could not be repeated.
    """
    return configuration.spark.master or f"local[{cores()},3]"


def spark_settings(configuration: Configuration) -> dict[str, str]:
    """Every Spark setting but the master.

    Raises:
        EnvironmentFaultError: the Delta jars are not there.
    """
    folder = jars_folder()
    missing = [name for name in DELTA_JARS if not (folder / name).is_file()]
    if missing:
        raise EnvironmentFaultError(f"The jar {folder / missing[0]} is missing.", "Run `make install` once.")
    jars = ":".join(str(path.resolve()) for path in sorted(folder.glob("*.jar")))
    local = spark_master(configuration).startswith("local")
    partitions = str(configuration.spark.shuffle_partitions or (cores() if local else 200))
    settings = {
        "spark.app.name": "recrawl",
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.memory": configuration.spark.driver_memory,
        "spark.executor.memory": configuration.spark.executor_memory,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{configuration.storage.root}/tables",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": partitions,
        "spark.sql.sources.partitionOverwriteMode": "static",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.databricks.delta.snapshotPartitions": "2" if local else "50",
        "spark.speculation": "false",
        "spark.pyspark.python": os.environ.get("PYSPARK_PYTHON") or sys.executable,
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": " ".join(
            [_LOCAL_JVM_OPTIONS, _archive_options(), _LOGGING_OPTION] if local else ["-Xss4m", _LOGGING_OPTION]
        ),
    }
    if local:
        settings |= _LOCAL_SETTINGS
        settings |= {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
    return settings | _object_store_settings(configuration) | configuration.spark.extra


def _object_store_settings(configuration: Configuration) -> dict[str, str]:
    storage = configuration.storage
    if not storage.root.startswith(("s3a://", "s3://")):
        return {}
    settings = {"spark.hadoop.fs.s3a.path.style.access": "true"}
    if storage.s3_endpoint:
        settings["spark.hadoop.fs.s3a.endpoint"] = storage.s3_endpoint
    if storage.s3_access_key:
        settings["spark.hadoop.fs.s3a.access.key"] = storage.s3_access_key
        settings["spark.hadoop.fs.s3a.secret.key"] = storage.s3_secret_key.get_secret_value()
    return settings
