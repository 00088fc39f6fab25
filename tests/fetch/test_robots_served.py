"""robots.txt that can't be had: asked for again within the round, politely, then the host is denied for now."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recrawl.fetch.partition import HostRecord, KnownHost, StoredRobots
from recrawl.tables.vocabulary import RobotsOutcome
from tests.fetch.crawl import configuration, fetch, logged, plan_of, rows, settled_once, task_of
from tests.web import MisbehavingWeb

HOST = "a.test"


@pytest.fixture
def web() -> Iterator[MisbehavingWeb]:
    with MisbehavingWeb([HOST, "b.test"], pages=10, own_addresses=True) as server:
        yield server


def mend_after_first_try(web: MisbehavingWeb, host: str = HOST) -> threading.Thread:
    """robots.txt of the host works from the second request on."""

    def mend() -> None:
        logged(web, 1)
        web.site(host, robots="User-agent: *\nDisallow: /page/2.html\n", robots_behaviour="")

    thread = threading.Thread(target=mend)
    thread.start()
    return thread


@pytest.mark.parametrize("trouble", ["/odd/status?code=503", "/odd/status?code=429", "/odd/drop", "/odd/partial"])
def test_a_file_that_comes_at_the_second_try_binds(web: MisbehavingWeb, tmp_path: Path, trouble: str) -> None:
    web.site(HOST, robots_behaviour=trouble)
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), max_backoff_seconds=0.6)
    plan = plan_of(web.url(HOST, f"/page/{number}.html") for number in (1, 2, 3))
    thread = mend_after_first_try(web)
    fetch(task_of(settings), plan)
    thread.join()
    outcomes = {row["url"][-6:-5]: row["outcome"] for row in rows(settings, "fetches")}
    assert outcomes == {"1": "ok", "2": "robots_denied", "3": "ok"}
    (row,) = rows(settings, "robots")
    assert row["robots_outcome"] == "rules"
    first, second, *pages = sorted(web.hits(HOST), key=lambda hit: hit.started_seconds)
    assert first.path == second.path == "/robots.txt" and len(pages) == 2
    assert second.started_seconds - first.started_seconds >= 0.4  # 0.6 s less a quarter of jitter, less slack
    assert settled_once(settings, plan)


def test_tries_are_counted_and_the_host_is_denied_for_now(web: MisbehavingWeb, tmp_path: Path) -> None:
    web.site(HOST, robots=503)
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), robots_tries=4)
    plan = plan_of([web.url(HOST, "/page/1.html"), web.url(HOST, "/page/2.html"), web.url("b.test", "/page/1.html")])
    fetch(task_of(settings), plan)
    assert [hit.path for hit in web.hits(HOST)] == ["/robots.txt"] * 4
    found = {(row["host"].partition(":")[0], row["outcome"]) for row in rows(settings, "fetches")}
    assert found == {(HOST, "robots_unavailable"), ("b.test", "ok")}
    (visit,) = (row for row in rows(settings, "host_visits") if row["host"].startswith(HOST))
    assert (visit["requests"], visit["errors"], visit["error_streak"]) == (4, 4, 4)
    assert settled_once(settings, plan)


def test_a_host_given_up_for_its_robots_file_is_given_back(web: MisbehavingWeb, tmp_path: Path) -> None:
    web.site(HOST, robots_behaviour="/odd/drop")
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), robots_tries=9, max_errors_in_a_row=3)
    plan = plan_of(web.url(HOST, f"/page/{number}.html") for number in (1, 2))
    fetch(task_of(settings), plan)
    assert len(web.hits(HOST)) == 3
    assert {row["skip_reason"] for row in rows(settings, "skips")} == {"host_errors"}
    assert rows(settings, "robots")[0]["robots_outcome"] == "unreachable"
    assert settled_once(settings, plan)


def test_a_retry_after_beyond_the_deadline_ends_the_host_not_the_round(web: MisbehavingWeb, tmp_path: Path) -> None:
    web.site(HOST, robots_behaviour="/odd/status?code=503&retry_after=7200")
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), max_backoff_seconds=86_400)
    plan = plan_of(web.url(host, "/page/1.html") for host in (HOST, "b.test"))
    summary = fetch(task_of(settings, budget_seconds=600), plan)
    assert summary.seconds < 15
    (skip,) = rows(settings, "skips")
    assert (skip["host"].partition(":")[0], skip["skip_reason"]) == (HOST, "blocked")
    (visit,) = (row for row in rows(settings, "host_visits") if row["host"].startswith(HOST))
    assert datetime.fromisoformat(visit["blocked_until"]) > datetime.now(UTC) + timedelta(hours=1.9)
    assert settled_once(settings, plan)


def test_a_delay_beyond_the_deadline_is_honoured_without_waiting(web: MisbehavingWeb, tmp_path: Path) -> None:
    name = f"{HOST}:{web.port}"
    now = datetime.now(UTC)
    rules = StoredRobots(RobotsOutcome.RULES, "User-agent: *\nCrawl-delay: 3600\n", None, now + timedelta(hours=1), now)
    record = HostRecord(name, last_access_at=now - timedelta(seconds=10))
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"))
    plan = plan_of(web.url(host, "/page/1.html") for host in (HOST, "b.test"))
    summary = fetch(task_of(settings, budget_seconds=600), plan, [KnownHost(name, record, (("http", rules),))])
    assert summary.seconds < 15
    assert web.hits(HOST) == []
    assert {row["skip_reason"] for row in rows(settings, "skips")} == {"deadline"}
    assert settled_once(settings, plan)
