"""An outage of our own uplink: nothing of it counts against hosts or URLs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recrawl.fetch.partition import PartitionSummary, PlannedUrl
from recrawl.fetch.uplink import Fault, Uplink
from tests.fetch.crawl import configuration, fetch, logged, plan_of, rows, settled_once, task_of
from tests.web import MisbehavingWeb

HOSTS = ("a.test", "b.test", "c.test")


@pytest.fixture
def web() -> Iterator[MisbehavingWeb]:
    with MisbehavingWeb(HOSTS, pages=30, own_addresses=True) as server:
        yield server


def plan_for(web: MisbehavingWeb) -> list[PlannedUrl]:
    return plan_of(web.url(host, f"/page/{number}.html") for host in HOSTS for number in range(1, 11))


def fetch_while(web: MisbehavingWeb, root: Path, happens: Callable[[], object], **changes: object) -> PartitionSummary:
    """A fetch of 30 pages in 2 s or more; `happens` is called once it has begun."""
    values = {"min_delay_seconds": 0.15, "latency_factor": 0} | changes
    settings = configuration(root, web.hosts_file(root / "hosts"), **values)

    def when_it_runs() -> None:
        logged(web, 6)
        happens()

    thread = threading.Thread(target=when_it_runs)
    thread.start()
    try:
        return fetch(task_of(settings), plan_for(web))
    finally:
        thread.join()


def test_a_short_outage_costs_time_and_nothing_else(web: MisbehavingWeb, tmp_path: Path) -> None:
    def outage() -> None:
        web.go_down()
        time.sleep(4)
        web.come_back()

    summary = fetch_while(web, tmp_path, outage, control_address=f"127.0.0.1:{web.port}")
    assert (summary.final, summary.skipped, summary.errors) == (30, 0, 0)
    settings = configuration(tmp_path)
    assert {row["outcome"] for row in rows(settings, "fetches")} == {"ok"}
    assert {row["error_streak"] for row in rows(settings, "host_visits")} == {0}
    assert settled_once(settings, plan_for(web))


def test_a_long_outage_gives_back_what_is_left(web: MisbehavingWeb, tmp_path: Path) -> None:
    settings = {"control_address": f"127.0.0.1:{web.port}", "outage_patience_seconds": 1}
    summary = fetch_while(web, tmp_path, web.go_down, **settings)
    found = configuration(tmp_path)
    assert summary.errors == 0
    assert {row["outcome"] for row in rows(found, "fetches")} == {"ok"}
    assert {row["skip_reason"] for row in rows(found, "skips")} == {"network_down"}
    visits = rows(found, "host_visits")
    assert {(row["error_streak"], row["errors"], row["blocked_until"]) for row in visits} == {(0, 0, None)}
    assert settled_once(found, plan_for(web))


def test_hosts_that_fail_while_the_control_address_answers_are_at_fault(web: MisbehavingWeb, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as control:
        address = f"127.0.0.1:{control.getsockname()[1]}"
        summary = fetch_while(web, tmp_path, web.go_down, control_address=address, max_errors_in_a_row=2)
    settings = configuration(tmp_path)
    assert summary.errors == 6
    assert [row["outcome"] for row in rows(settings, "fetches")].count("connect_error") == 6
    assert {row["skip_reason"] for row in rows(settings, "skips")} == {"host_errors"}
    assert settled_once(settings, plan_for(web))


def test_without_a_control_address_faults_count(web: MisbehavingWeb, tmp_path: Path) -> None:
    summary = fetch_while(web, tmp_path, web.go_down, max_errors_in_a_row=2)
    assert summary.errors == 6
    assert settled_once(configuration(tmp_path), plan_for(web))


def test_the_control_address_is_tried_without_waiting() -> None:
    def verdict(uplink: Uplink) -> Fault:
        deadline = time.monotonic() + 5
        while (fault := uplink.judge(time.monotonic())) is Fault.UNKNOWN and time.monotonic() < deadline:
            time.sleep(0.01)
        return fault

    with socket.create_server(("127.0.0.1", 0)) as control:
        port = control.getsockname()[1]
        uplink = Uplink(f"127.0.0.1:{port}")
        begin = time.monotonic()
        assert uplink.judge(begin) is Fault.UNKNOWN
        assert time.monotonic() - begin < 1
        assert verdict(uplink) is Fault.HOSTS
    assert verdict(uplink) is Fault.OURS
    uplink.close()


def test_most_hosts_of_the_last_minute() -> None:
    uplink = Uplink("192.0.2.1:53")
    for number in range(5):
        uplink.note(f"h{number}", 0.0, failed=number < 2)
    assert not uplink.most_fail()
    uplink.note("h3", 30.0, failed=True)
    assert uplink.most_fail()
    uplink.note("h9", 70.0, failed=False)  # all but h3 are forgotten
    assert not uplink.most_fail()
