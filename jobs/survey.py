"""survey: which URLs name one page, by what was captured: host aliases, case, index pages, parameters.

It reads `urls` as the last round left it and writes a slice of `proposals` beside that round's other
rows. What holds of a whole host goes to the inbox as a decision of the survey's, so that the next
round's seed freezes it and rank records it on `hosts`; parameters wait for a person.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.survey_rows import PARAMETERS_SCHEMA, parameters_of
from recrawl.config.model import Configuration
from recrawl.dedupe.sameness import LEAST_AGREEING, LEAST_AGREEING_PAGES_OF_HOSTS, enough_sql, main_hosts
from recrawl.errors import RoundStateError
from recrawl.inbox import add_event, new_event, read_events
from recrawl.round_ledger import FOLDED_STATES, all_rounds
from recrawl.rounds import round_id_of
from recrawl.spark.application import Application
from recrawl.spark.delta import in_parallel
from recrawl.tables.vocabulary import OverrideKind, UrlState

#: Who decides what the survey decides.
SURVEYOR = "survey"

#: A content under more hosts than this is nobody's page.
_MOST_HOSTS = 8

_INDEX = r"^(.*/)((?:index|default|home)\\.[a-z]{2,5})$"

Proposal = dict[str, Any]


def survey(configuration: Configuration) -> list[Proposal]:
    """Look for names of one page and store what was found; rows of `proposals`.

    Raises:
        RoundStateError: nothing has been crawled yet.
    """
    application = Application(configuration)
    owner = f"survey {round_id_of(application.clock.now())}"
    with application.lease(owner, "a survey", keep=False) as lease:
        ended = [row for row in all_rounds(application.stored) if row.state in FOLDED_STATES]
        if not ended:
            raise RoundStateError("Nothing has been crawled yet.", "Run `recrawl round` first.")
        last = ended[-1]
        versions = last["versions_at_close"]
        found = proposals(
            application.tables.read("urls", int(versions["urls"])),
            application.tables.read("hosts", int(versions["hosts"])),
        )
        rows = [{"round_id": last.round_id, **proposal} for proposal in found]
        lease.check()
        application.stored.replace_slice("proposals", last.round_id, rows)
    _decide(application, rows)
    return rows


def proposals(urls: DataFrame, hosts: DataFrame) -> list[Proposal]:
    """What the captured pages of `urls` say, by kind and subject."""
    states = ", ".join(f"'{state}'" for state in (UrlState.FETCHED, UrlState.DUPLICATE))
    captured = (
        urls.where(f"content_checksum IS NOT NULL AND state IN ({states})")
        .select("url", "host", "content_checksum")
        .withColumn("rest", F.expr("regexp_replace(url, '^[a-z]+://[^/]*', '')"))
        .withColumn("path", F.expr("substring_index(rest, '?', 1)"))
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    looks: list[Callable[[], list[Proposal]]] = [
        partial(_aliases, captured, hosts),
        partial(_blind_hosts, captured),
        partial(_index_pages, captured),
        partial(_parameters, captured),
    ]
    found = [proposal for some in in_parallel(looks) for proposal in some]
    captured.unpersist()
    return sorted(found, key=lambda proposal: (proposal["override_kind"], proposal["subject"]))


def _aliases(captured: DataFrame, hosts: DataFrame) -> list[Proposal]:
    """Pairs of hosts whose pages of the same path and query are equal."""
    pages = captured.select("host", "rest", "content_checksum").distinct()
    shared = (
        pages.groupBy("rest", "content_checksum")
        .agg(F.collect_set("host").alias("hosts"))
        .where(f"size(hosts) BETWEEN 2 AND {_MOST_HOSTS}")
        .withColumn("one", F.explode("hosts"))
        .withColumn("other", F.explode("hosts"))
        .where("one < other")
    )
    pairs = (
        shared.groupBy("one", "other")
        .agg(
            F.count("*").alias("agreeing"),
            F.count_distinct("content_checksum").alias("contents"),
            F.min("rest").alias("rest"),
        )
        .where(f"agreeing >= {LEAST_AGREEING_PAGES_OF_HOSTS}")
    )
    both = (
        pairs.select("one", "other")
        .join(pages.selectExpr("host AS one", "rest"), "one")
        .join(pages.selectExpr("host AS other", "rest"), ["other", "rest"])
        .groupBy("one", "other")
        .agg(F.count_distinct("rest").alias("compared"))
    )
    enough = enough_sql("compared", "agreeing", "contents", LEAST_AGREEING_PAGES_OF_HOSTS)
    found = {(row["one"], row["other"]): row for row in pairs.join(both, ["one", "other"]).where(enough).collect()}
    names = sorted({host for pair in found for host in pair})
    counts = hosts.where(F.col("host").isin(names)).select("host", "url_count").collect() if names else []
    mains = main_hosts(sorted(found), {row["host"]: int(row["url_count"]) for row in counts})
    evidence = {host: row for pair, row in sorted(found.items()) for host in pair}
    return [
        {
            **_proposal(OverrideKind.ALIAS, alias, evidence[alias]),
            "value": main,
            "example_url": f"http://{alias}{evidence[alias]['rest']}",
            "other_example_url": f"http://{main}{evidence[alias]['rest']}",
        }
        for alias, main in mains.items()
    ]


def _blind_hosts(captured: DataFrame) -> list[Proposal]:
    """Hosts whose paths that differ by case only are equal."""
    groups = _groups(
        captured.withColumn("same", F.expr("concat(lower(path), substr(rest, length(path) + 1))")), ["host"]
    )
    return [_proposal(OverrideKind.IGNORE_CASE, row["host"], row) for row in groups.collect()]


def _index_pages(captured: DataFrame) -> list[Proposal]:
    """File names that hold the content of their folder."""
    files = captured.where("path = rest").withColumns(
        {
            "same": F.expr(f"regexp_extract(rest, '{_INDEX}', 1)"),
            "name": F.expr(f"regexp_extract(rest, '{_INDEX}', 2)"),
        }
    )
    named = files.where("name <> ''")
    folders = captured.selectExpr("host", "rest AS same", "url", "content_checksum")
    of_names = folders.join(named.select("host", "same", "name").distinct(), ["host", "same"])
    groups = _groups(named.select(*of_names.columns).unionByName(of_names), ["host", "name"])
    return [_proposal(OverrideKind.INDEX_PAGE, f"{row['host']}/{row['name']}", row) for row in groups.collect()]


def _parameters(captured: DataFrame) -> list[Proposal]:
    """Parameters of a registered domain whose value never changes the content."""
    asked = captured.where("rest LIKE '%?%=%'").select("url", "content_checksum")
    taken = asked.mapInArrow(parameters_of, PARAMETERS_SCHEMA).withColumnRenamed("rest", "same")
    groups = _groups(taken, ["domain", "name"], share=1.0)
    return [_proposal(OverrideKind.DROP_PARAMETER, f"{row['domain']}?{row['name']}", row) for row in groups.collect()]


def _groups(pages: DataFrame, subject: list[str], share: float | None = None) -> DataFrame:
    """Of pages that may be the same (`same`) within a subject: how many groups there are and agree."""
    enough = enough_sql(
        "compared", "agreeing", "contents", LEAST_AGREEING, **({} if share is None else {"share": share})
    )
    return (
        pages.groupBy(*subject, "same")
        .agg(
            F.count_distinct("url").alias("urls"),
            F.count_distinct("content_checksum").alias("different"),
            F.min("content_checksum").alias("content"),
            F.min("url").alias("example_url"),
            F.max("url").alias("other_example_url"),
        )
        .where("urls > 1")
        .groupBy(*subject)
        .agg(
            F.count("*").alias("compared"),
            F.sum(F.expr("CAST(different = 1 AS INT)")).alias("agreeing"),
            F.count_distinct(F.expr("CASE WHEN different = 1 THEN content END")).alias("contents"),
            F.min(F.expr("CASE WHEN different = 1 THEN struct(example_url, other_example_url) END")).alias("example"),
        )
        .where(enough)
        .select("*", "example.*")
        .drop("example")
    )


def _proposal(kind: OverrideKind, subject: str, row: Any) -> Proposal:
    fields = row.asDict()
    return {
        "override_kind": str(kind),
        "subject": subject,
        "value": None,
        **{
            name: fields[name]
            for name in ("compared", "agreeing", "example_url", "other_example_url")
            if name in fields
        },
    }


def _decide(application: Application, rows: list[Proposal]) -> None:
    """Put what holds of a whole host into the inbox, unless something was decided of it before, even if lifted."""
    now = application.clock.now()
    decided = {(event.kind, event.subject) for event in read_events(application.store)}
    for row in rows:
        kind = OverrideKind(row["override_kind"])
        if kind is not OverrideKind.DROP_PARAMETER and (kind, row["subject"]) not in decided:
            reason = f"{row['agreeing']} of {row['compared']} compared pages are equal, as {row['example_url']}"
            add_event(application.store, new_event(now, SURVEYOR, kind, row["subject"], reason, row["value"]))
