"""The database `crawl` for Spark SQL: one name for each table, in an in-memory catalogue.

No metastore is needed, so any number of people may ask at once; and nothing is written, because
only the holder of the lease may (rule R7).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType

from recrawl.config.model import Urls
from recrawl.errors import UsageError
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES, TABLES_FOLDER
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.keys import url_id

if TYPE_CHECKING:
    import pyarrow as pa

DATABASE = "crawl"

_READING = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*"
    r"(?:select|with|values|from|table|explain|show|describe|desc|use|set"
    r"|create\s+(?:or\s+replace\s+)?temp(?:orary)?\s+view)\b",
    re.IGNORECASE | re.DOTALL,
)
#: What may hide behind WITH or FROM.
_WRITING_PLAN = re.compile(r"Insert|Delete|Update|Merge|Overwrite|Append|Write")


def open_sql(spark: SparkSession, store: Store, at_versions: Mapping[str, int] | None, urls: Urls) -> list[str]:
    """Define `crawl.<table>` for every table that exists, and the function `url_id`.

    Args:
        at_versions: the Delta version of tables that are not shown as they are now.
        urls: the rules that `url_id` canonicalises with.

    Returns:
        The tables defined.
    """
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE} LOCATION '{store.uri(TABLES_FOLDER)}'")
    defined = []
    for name, table in TABLES.items():
        if not store.exists(f"{TABLES_FOLDER}/{name}/_delta_log"):
            continue
        location = store.uri(f"{TABLES_FOLDER}/{name}")
        version = (at_versions or {}).get(name)
        if version is None:
            spark.sql(f"CREATE TABLE IF NOT EXISTS {DATABASE}.{name} USING DELTA LOCATION '{location}'")
        else:
            comment = table.sentence.replace("'", "\\'")
            spark.sql(
                f"CREATE OR REPLACE VIEW {DATABASE}.{name} COMMENT '{comment}' AS "
                f"SELECT * FROM delta.`{location}` VERSION AS OF {version}"
            )
        defined.append(name)
    _register_url_id(spark, urls)
    spark.sql(f"USE {DATABASE}")
    # It writes each refused statement to standard error with the JVM's stack, besides raising it.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    return defined


def _register_url_id(spark: SparkSession, urls: Urls) -> None:
    canonicalizer = Canonicalizer.from_settings(urls)

    def identity(url: str | None) -> int | None:
        canonical = None if url is None else canonicalizer.canonical(url)
        return None if canonical is None else url_id(canonical)

    spark.udf.register("url_id", identity, LongType())


def query(spark: SparkSession, text: str) -> pa.Table:
    """The rows of one statement as Arrow, times in UTC.

    Raises:
        UsageError: a statement that writes, or one that Spark refuses (its message, without the plan).
    """
    statement = text.strip().rstrip(";")
    if not _READING.match(statement):
        raise UsageError("Only reading statements are answered: SELECT, WITH, SHOW, DESCRIBE, EXPLAIN and their like.")
    try:
        if any(_WRITING_PLAN.search(name) for name in _plan_nodes(spark, statement)):
            raise UsageError("The statement writes; only the steps of a round may.")
        return spark.sql(statement).toArrow()
    except PySparkException as error:
        message = str(error).strip().partition("\n")[0].rstrip(";")
        raise UsageError(f"The query can't be answered: {message}") from None


def _plan_nodes(spark: SparkSession, statement: str) -> Iterator[str]:
    """The names of the nodes of a statement's plan, as Spark's parser builds it."""
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    pending: list[Any] = [plan]
    while pending:
        node = pending.pop()
        yield node.getClass().getSimpleName()
        children = node.children()
        pending += [children.apply(i) for i in range(children.size())]
