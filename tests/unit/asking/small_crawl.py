"""A small crawl on disk, its tables written by deltalake from the catalogue's own schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from recrawl.config.model import Storage
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES, TABLES_FOLDER
from recrawl.tables.columns import Column
from recrawl.tables.ddl import MODEL_VERSION_PROPERTY, arrow_schema
from recrawl.urls.canonical import host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.keys import bucket_of, url_id

FIRST = "20261130T030000.000000Z"
SECOND = "20261201T030000.000000Z"
THIRD = "20261202T030000.000000Z"
NOW = datetime(2026, 12, 2, 4, 0, tzinfo=UTC)

HOME = "https://example.org/"
PRIVATE = "https://example.org/private/page"
CAPPED = "https://example.org/capped"
GONE = "https://example.org/gone"


def _default(column: Column, nullable: bool) -> Any:
    if nullable:
        return None
    if column.values is not None:
        return next(iter(column.values)).value
    if column.type in ("BIGINT", "INT", "DECIMAL(38,0)"):
        return max(0, column.minimum or 0)
    simple = {"DOUBLE": 0.0, "BOOLEAN": False, "STRING": "", "TIMESTAMP": datetime(2026, 11, 30, tzinfo=UTC)}
    return simple.get(column.type, [] if column.type.startswith("ARRAY") else {})


def rows_of(table: str, given: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows with every column: those given, and a harmless value for the rest."""
    declared = TABLES[table]
    defaults = {c.name: _default(c, declared.nullable(c.name)) for c in declared.columns}
    rows = [{**defaults, **row} for row in given]
    for row in rows:
        for name, value in row.items():
            row[name] = list(value.items()) if isinstance(value, dict) else value
    return pa.Table.from_pylist(rows, schema=arrow_schema(declared))


class SmallCrawl:
    """The tables under one folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.store = Store(Storage(root=str(folder)))

    def path(self, table: str) -> str:
        return str(self.root / TABLES_FOLDER / table)

    def write(self, table: str, *rows: Mapping[str, Any], mode: str = "append", model_version: int = 1) -> int:
        """Write rows; the Delta version that they made."""
        write_deltalake(
            self.path(table),
            rows_of(table, rows),
            mode=mode,  # type: ignore[arg-type]
            partition_by=list(TABLES[table].partition_by) or None,
        )
        version = DeltaTable(self.path(table)).version()
        if version == 0:
            self._set_model_version(table, model_version)
        return version

    def _set_model_version(self, table: str, model_version: int) -> None:
        """Put the property into the table's first commit, where Spark puts it; deltalake writes none of its own."""
        commit = Path(self.path(table)) / "_delta_log" / f"{0:020}.json"
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            if "metaData" in action:
                action["metaData"]["configuration"] = {MODEL_VERSION_PROPERTY: str(model_version)}
        commit.write_text("\n".join(map(json.dumps, actions)) + "\n", encoding="utf-8")

    def url(self, url: str, **values: Any) -> dict[str, Any]:
        """A row of `urls`."""
        host = host_of(url)
        return {"url_id": url_id(url), "url": url, "host": host, "bucket": bucket_of(host, 16), **values}

    def round(self, number: int, round_id: str, state: str, **values: Any) -> dict[str, Any]:
        """A row of `rounds`."""
        return {"round_number": number, "round_id": round_id, "round_state": state, **values}


def small_crawl(folder: Path) -> SmallCrawl:
    """Two closed rounds and an open one: a page, a page that robots.txt denies, a skip, a reject."""
    crawl = SmallCrawl(folder)
    opening = crawl.write("urls", crawl.url(HOME, state="new", discovered_round=FIRST))
    first = crawl.write(
        "urls",
        crawl.url(HOME, state="fetched", fetch_count=1, discovered_round=FIRST, last_fetch_at=NOW),
        crawl.url(PRIVATE, state="denied", depth=1, discovered_round=FIRST),
        mode="overwrite",
    )
    second = crawl.write(
        "urls",
        crawl.url(HOME, state="fetched", fetch_count=2, discovered_round=FIRST, last_fetch_at=NOW),
        crawl.url(PRIVATE, state="denied", depth=1, discovered_round=FIRST),
        crawl.url(CAPPED, state="new", depth=1, discovered_round=SECOND),
        mode="overwrite",
    )
    host = {"bucket": bucket_of("example.org", 16), "host": "example.org"}
    crawl.write("hosts", {**host, "registered_domain": registered_domain("example.org"), "url_count": 3})
    crawl.write(
        "seeds",
        {
            "url_id": url_id(HOME),
            "url": HOME,
            "host": "example.org",
            "scope": "host",
            "raw_seed": HOME,
            "registered_domain": "example.org",
        },
    )
    crawl.write(
        "robots",
        {
            "round_id": FIRST, "scheme": "https", "host": "example.org", "robots_outcome": "rules", "status": 200,
            "body": "User-agent: *\nDisallow: /private/\n",
        },
    )  # fmt: skip
    tried = {"planned_url_id": url_id(HOME), "url_id": url_id(HOME), "url": HOME, "host": "example.org", "final": True}
    crawl.write("fetches", *({"round_id": r, "outcome": "ok", "status": 200, **tried} for r in (FIRST, SECOND)))
    skip = {"round_id": SECOND, "url_id": url_id(CAPPED), "step": "frontier", "host": "example.org"}
    crawl.write("skips", {**skip, "skip_reason": "capacity"})
    link = {"round_id": SECOND, "src_url": HOME, "src_url_id": url_id(HOME), "link_kind": "a"}
    crawl.write("links", {**link, "dst_url": CAPPED, "dst_url_id": url_id(CAPPED), "anchor_text": "more | here"})
    reject = {"round_id": SECOND, "dst_url": GONE, "step": "parse", "filter": "scope"}
    crawl.write("rejects", {**reject, "reject_reason": "Outside."})
    crawl.write(
        "rounds",
        crawl.round(
            1, FIRST, "closed", versions_at_open={"urls": opening}, versions_at_close={"urls": first}, fetched=1
        ),
        crawl.round(
            2, SECOND, "closed", versions_at_open={"urls": first}, versions_at_close={"urls": second}, fetched=1
        ),
        crawl.round(3, THIRD, "open", versions_at_open={"urls": second}),
    )
    return crawl
