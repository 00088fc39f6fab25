"""Politeness as the server saw it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recrawl.fetch.partition import HostRecord, KnownHost, StoredRobots
from recrawl.tables.vocabulary import RobotsOutcome
from tests.fetch.crawl import configuration, fetch, logged, plan_of, rows, settled_once, task_of
from tests.web import MisbehavingWeb

#: What a client's and a server's clocks may differ by on one machine.
_SLACK_SECONDS = 0.02


def test_gaps_hold_for_pages_robots_and_redirects(tmp_path: Path) -> None:
    with MisbehavingWeb(["a.test", "b.test", "c.test"], own_addresses=True) as web:
        web.site("b.test", robots="User-agent: recrawl\nCrawl-delay: 0.8\n")
        web.site("c.test", delay_seconds=0.2)
        hosts_file = web.hosts_file(tmp_path / "hosts")
        settings = configuration(tmp_path, hosts_file, min_delay_seconds=0.3, latency_factor=2.0)
        paths = ("/page/1.html", "/odd/chain?n=2", "/page/2.html")
        plan = plan_of(web.url(host, path) for host in ("a.test", "b.test", "c.test") for path in paths)
        summary = fetch(task_of(settings), plan)
        logged(web, summary.requests)
        audit = web.audit()
        assert summary.final == 9
        assert set(audit.max_concurrency().values()) == {1}
        gaps = audit.min_gap_seconds()
        assert gaps["a.test"] >= 0.3 - _SLACK_SECONDS
        assert gaps["b.test"] >= 0.8 - _SLACK_SECONDS
        assert gaps["c.test"] >= 0.4 - _SLACK_SECONDS  # twice its latency
        assert audit.content_before_robots() == []
        visits = {row["host"].partition(":")[0]: row for row in rows(settings, "host_visits")}
        assert visits["b.test"]["crawl_delay_seconds"] == 0.8
        assert visits["b.test"]["min_gap_ms"] >= 800
        assert all(row["delay_ms_required"] >= 300 for row in rows(settings, "fetches"))


def test_hosts_of_one_address_take_turns(tmp_path: Path) -> None:
    names = [f"h{number}.test" for number in range(4)]
    with MisbehavingWeb(names) as web:
        settings = configuration(
            tmp_path, web.hosts_file(tmp_path / "hosts"), min_delay_seconds=0.05, ip_gap_seconds=0.15, latency_factor=0
        )
        fetch(task_of(settings), plan_of(web.url(host, "/page/1.html") for host in names))
        assert len(logged(web, 8)) == 8
        assert web.audit().min_gap_seconds_by_address()["127.0.0.1"] >= 0.15 - _SLACK_SECONDS


def test_retry_after_backoff_and_the_last_round_are_honoured(tmp_path: Path) -> None:
    with MisbehavingWeb(["a.test", "b.test", "c.test"], own_addresses=True) as web:
        settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), max_backoff_seconds=1.5)
        name = f"c.test:{web.port}"
        last_access_at = datetime.now(UTC) - timedelta(seconds=1)
        known = [KnownHost(name, HostRecord(name, crawl_delay_seconds=2.0, last_access_at=last_access_at))]
        plan = plan_of(
            [
                web.url("a.test", "/odd/status?code=429&retry_after=1"),
                web.url("a.test", "/page/1.html"),
                web.url("b.test", "/odd/drop"),
                web.url("b.test", "/page/1.html"),
                web.url("c.test", "/page/1.html"),
            ]
        )
        begin = datetime.now(UTC)
        logged(web, fetch(task_of(settings), plan, known).requests)
        for host in ("a.test", "b.test"):
            failed, page = web.hits(host)[-2:]
            # 1.5 s less a quarter of jitter
            assert page.started_seconds - failed.ended_seconds >= 1.1 - _SLACK_SECONDS
        first = min(row["fetched_at"] for row in rows(settings, "robots") if row["host"].startswith("c."))
        assert datetime.fromisoformat(first) - begin >= timedelta(seconds=0.9)
        assert settled_once(settings, plan)


def test_a_crawl_delay_longer_than_the_round_gives_one_page_a_round_and_no_fault(tmp_path: Path) -> None:
    robots = "User-agent: *\nCrawl-delay: 600\n"
    with MisbehavingWeb(["slow.test"]) as web:
        web.site("slow.test", robots=robots)
        settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), max_backoff_seconds=86_400)
        plan = plan_of(web.url("slow.test", f"/page/{number}.html") for number in (1, 2, 3))
        # The first round brings the file, whose delay counts from then on.
        begin = time.monotonic()
        fetch(task_of(settings, budget_seconds=30), plan)
        assert time.monotonic() - begin < 15, "a task does not wait for what can't come before its deadline"
        assert [hit.path for hit in web.log] == ["/robots.txt"]
        assert {row["skip_reason"] for row in rows(settings, "skips")} == {"deadline"}
        assert settled_once(settings, plan)
        (visit,) = rows(settings, "host_visits")
        assert (visit["requests"], visit["deferred"], visit["errors"], visit["error_streak"]) == (1, 3, 0, 0)
        assert (visit["crawl_delay_seconds"], visit["blocked_until"]) == (600.0, None)

        # The next begins after the delay: one page, and the rest again left without a fault.
        web.clear_log()
        next_root = configuration(tmp_path / "next", web.hosts_file(tmp_path / "hosts"), max_backoff_seconds=86_400)
        now = datetime.now(UTC)
        record = HostRecord(plan[0].host, crawl_delay_seconds=600.0, last_access_at=now - timedelta(seconds=601))
        known = StoredRobots(RobotsOutcome.RULES, robots, None, now + timedelta(hours=1), now - timedelta(hours=1))
        fetch(task_of(next_root, budget_seconds=30), plan, [KnownHost(plan[0].host, record, (("http", known),))])
        assert [hit.path for hit in web.log] == ["/page/1.html"]
        (visit,) = rows(next_root, "host_visits")
        assert (visit["requests"], visit["deferred"], visit["errors"], visit["error_streak"]) == (1, 2, 0, 0)
        assert (visit["crawl_delay_seconds"], visit["blocked_until"]) == (600.0, None)
        assert settled_once(next_root, plan)
