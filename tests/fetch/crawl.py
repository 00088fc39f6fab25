"""Running one fetch partition against the misbehaving web, and reading what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from recrawl.clock import SystemClock
from recrawl.config.load import load_configuration
from recrawl.config.model import Configuration
from recrawl.fetch.journal import load_journal_rows
from recrawl.fetch.partition import KnownHost, PartitionSummary, PartitionTask, PlannedUrl, run_partition
from recrawl.fetch.work import PlanItem
from recrawl.storage import Store
from recrawl.tables.vocabulary import Scope
from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.keys import url_id
from recrawl.urls.scope import ScopeSet
from tests.web import Hit, MisbehavingWeb

ROUND_ID = "20261130T030000.000000Z"

#: Politeness off, short time-outs, a back-off that a test can wait for.
FAST = {
    "allowed_private_ranges": ["127.0.0.0/8", "::1/128"],
    "min_delay_seconds": 0,
    "ip_gap_seconds": 0,
    "max_backoff_seconds": 0.05,
    "connect_timeout_seconds": 2,
    "read_timeout_seconds": 1,
    "total_timeout_seconds": 3,
}


def configuration(root: Path, hosts_file: Path | None = None, **fetch: Any) -> Configuration:
    """A configuration with its storage root in `root`, `FAST` unless said otherwise."""
    return load_configuration(
        environment={},
        overrides={
            "storage": {"root": str(root)},
            "fetch": FAST | fetch,
            "dns": {"hosts_file": str(hosts_file) if hosts_file else ""},
        },
    )


def planned(url: str, rank: int = 1, **known: Any) -> PlannedUrl:
    """A planned URL."""
    canonicalizer = Canonicalizer()
    canonical, request_url = canonicalizer.canonical(url), canonicalizer.request_form(url)
    assert canonical is not None and request_url is not None
    fields: dict[str, Any] = {"depth": 0, "max_bytes": 5 << 20} | known
    return PlannedUrl(url_id(canonical), canonical, request_url, host_of(canonical), rank, 1.0, **fields)


def plan_of(urls: Iterable[str], **known: Any) -> list[PlannedUrl]:
    """A plan, ranks by host."""
    ranks: dict[str, int] = {}
    plan = []
    for url in urls:
        item = planned(url, **known)
        ranks[item.host] = ranks.get(item.host, 0) + 1
        plan.append(planned(url, ranks[item.host], **known))
    return plan


def task_of(
    settings: Configuration,
    *,
    budget_seconds: float = 60.0,
    token: str = "first",
    scope: ScopeSet | None = None,
    blocked: Iterable[str] = (),
    excluded: Iterable[str] = (),
    drained: bool = False,
) -> PartitionTask:
    """Partition 0 of a round, everything in scope unless said otherwise."""
    return PartitionTask(
        round_id=ROUND_ID,
        partition=0,
        configuration=settings,
        deadline=datetime.now(UTC) + timedelta(seconds=budget_seconds),
        scope=scope or ScopeSet([(Scope.ANYWHERE, "http://any.test/")]),
        blocked_hosts=frozenset(blocked),
        excluded_prefixes=tuple(excluded),
        attempt_token=token,
        drained=drained,
    )


def fetch(task: PartitionTask, plan: Iterable[PlanItem], known: Iterable[KnownHost] = ()) -> PartitionSummary:
    """Run the partition; `known` is what is known of its hosts."""
    return run_partition(task, chain(known, plan), SystemClock(), Random(7))


def logged(web: MisbehavingWeb, count: int) -> list[Hit]:
    """The server's log once it has `count` requests: it writes one only after the answer has gone."""
    deadline = time.monotonic() + 2
    while len(web.log) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return web.log


def rows(settings: Configuration, table: str) -> list[dict[str, Any]]:
    """The published rows of a table."""
    return list(load_journal_rows(Store(settings.storage), ROUND_ID, table))


def final_rows(settings: Configuration) -> dict[str, dict[str, Any]]:
    """Path and query of the planned URL → its final row, for plans of one host."""
    fetches = rows(settings, "fetches")
    starts = {row["planned_url_id"]: row["url"] for row in fetches if row["hop"] == 0}
    return {"/" + starts[row["planned_url_id"]].split("/", 3)[3]: row for row in fetches if row["final"]}


def settled_once(settings: Configuration, plan: Iterable[PlannedUrl]) -> bool:
    """Whether each planned URL has exactly one final row or exactly one skip (rule R5)."""
    settled = [row["planned_url_id"] for row in rows(settings, "fetches") if row["final"]]
    settled += [row["url_id"] for row in rows(settings, "skips")]
    return sorted(settled) == sorted(item.url_id for item in plan)
