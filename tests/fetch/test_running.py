"""What reaches a fetch while it runs: a stop, a block, a newer attempt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recrawl.errors import PartitionLostError
from recrawl.fetch.loop import _LONGEST_WAIT_SECONDS
from recrawl.fetch.loop import CHECK_SECONDS as _CHECK_SECONDS
from recrawl.fetch.partition import PartitionSummary, PlannedUrl
from recrawl.inbox import add_event, new_event, request_stop
from recrawl.storage import Store
from recrawl.tables.vocabulary import OverrideKind
from tests.fetch.crawl import ROUND_ID, configuration, fetch, logged, plan_of, rows, settled_once, task_of
from tests.web import MisbehavingWeb


@pytest.fixture
def web() -> Iterator[MisbehavingWeb]:
    with MisbehavingWeb(["a.test", "b.test"], pages=60, own_addresses=True) as server:
        yield server


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.fetch.loop.CHECK_SECONDS", 0.2)


def plan_for(web: MisbehavingWeb) -> list[PlannedUrl]:
    return plan_of(web.url(host, f"/page/{number}.html") for host in ("a.test", "b.test") for number in range(1, 60))


def fetch_while(web: MisbehavingWeb, root: Path, interfere: Callable[[Store], object]) -> PartitionSummary:
    """A fetch of 118 pages that would take 9 s; `interfere` is called once it has begun."""
    settings = configuration(root, web.hosts_file(root / "hosts"), min_delay_seconds=0.15, latency_factor=0)

    def when_it_runs() -> None:
        logged(web, 4)
        interfere(Store(settings.storage))

    thread = threading.Thread(target=when_it_runs)
    thread.start()
    try:
        return fetch(task_of(settings), plan_for(web))
    finally:
        thread.join()


def test_a_stop_drains(web: MisbehavingWeb, tmp_path: Path) -> None:
    summary = fetch_while(web, tmp_path, lambda store: request_stop(store, ROUND_ID, "me", "enough", datetime.now(UTC)))
    settings = configuration(tmp_path)
    assert summary.seconds < 5
    assert 0 < summary.final < 118
    assert {row["skip_reason"] for row in rows(settings, "skips")} == {"operator"}
    assert settled_once(settings, plan_for(web))


def test_a_block_gives_one_host_back(web: MisbehavingWeb, tmp_path: Path) -> None:
    def block(store: Store) -> None:
        now = datetime.now(UTC)
        add_event(store, new_event(now, "me", OverrideKind.BLOCK, "a.test", "asked to"))
        threading.Timer(1.0, lambda: request_stop(store, ROUND_ID, "me", "enough", datetime.now(UTC))).start()

    fetch_while(web, tmp_path, block)
    settings = configuration(tmp_path)
    skipped = {(row["host"].partition(":")[0], row["skip_reason"]) for row in rows(settings, "skips")}
    assert skipped == {("a.test", "blocked"), ("b.test", "operator")}
    assert len(web.hits("a.test")) < len(web.hits("b.test"))
    assert settled_once(settings, plan_for(web))


def test_an_excluded_prefix_is_not_asked_for_any_more(web: MisbehavingWeb, tmp_path: Path) -> None:
    web.change("b.test", "/page/58.html", status=302, headers=[("Location", "/page/1.html?x=1")])

    def exclude(store: Store) -> None:
        now = datetime.now(UTC)
        add_event(store, new_event(now, "me", OverrideKind.EXCLUDE, web.url("a.test", "/page/"), "asked to"))
        add_event(store, new_event(now, "me", OverrideKind.EXCLUDE, web.url("b.test", "/page/2"), "a mistake"))
        add_event(store, new_event(now, "me", OverrideKind.LIFT, web.url("b.test", "/page/2"), "", "exclude"))
        threading.Timer(1.5, lambda: request_stop(store, ROUND_ID, "me", "enough", datetime.now(UTC))).start()

    fetch_while(web, tmp_path, exclude)
    settings = configuration(tmp_path)
    skips = rows(settings, "skips")
    excluded = {row["url_id"] for row in skips if row["skip_reason"] == "excluded"}
    assert excluded <= {item.url_id for item in plan_for(web) if item.host.startswith("a.test")}
    assert len(excluded) > 40
    assert len(web.hits("a.test")) < len(web.hits("b.test"))
    assert settled_once(settings, plan_for(web))


def test_redirects_into_an_excluded_prefix_are_not_followed(web: MisbehavingWeb, tmp_path: Path) -> None:
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"))
    plan = plan_of([web.url("a.test", "/odd/chain?n=1"), web.url("a.test", "/secret/1")])
    fetch(task_of(settings, excluded=[web.url("a.test", "/page/1"), web.url("a.test", "/secret/")]), plan)
    (row,) = rows(settings, "fetches")
    assert (row["outcome"], row["final"]) == ("redirect", True)
    assert "excluded" in row["detail"]
    assert [skip["skip_reason"] for skip in rows(settings, "skips")] == ["excluded"]
    assert settled_once(settings, plan)


@pytest.mark.parametrize("engine", ["curl", pytest.param("requests", marks=pytest.mark.long)])
def test_the_deadline_drains_within_fifteen_seconds(web: MisbehavingWeb, tmp_path: Path, engine: str) -> None:
    settings = configuration(
        tmp_path, web.hosts_file(tmp_path / "hosts"), engine=engine, read_timeout_seconds=60, total_timeout_seconds=60
    )
    plan = plan_of(web.url(host, path) for host in ("a.test", "b.test") for path in ("/odd/hang", "/page/1.html"))
    summary = fetch(task_of(settings, budget_seconds=1), plan)
    assert summary.seconds < 1 + 15
    assert {row["skip_reason"] for row in rows(settings, "skips")} == {"deadline"}
    assert settled_once(settings, plan)


def test_a_bandwidth_cap_is_kept(web: MisbehavingWeb, tmp_path: Path) -> None:
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), max_bytes_per_second=400_000)
    plan = plan_of(web.url(host, f"/odd/huge?mb=0.1&n={n}") for host in ("a.test", "b.test") for n in range(8))
    summary = fetch(task_of(settings), plan)
    assert summary.final == 16
    assert sum(row["bytes_wire"] for row in rows(settings, "fetches")) > 1_600_000
    assert 2.0 < summary.seconds < 8.0  # 1.6 MB, 0.4 MB of them from the first bucket


def test_a_connection_cap_is_kept(tmp_path: Path) -> None:
    names = [f"h{number}.test" for number in range(8)]
    with MisbehavingWeb(names, own_addresses=True) as crowd:
        for name in names:
            crowd.site(name, delay_seconds=0.1)
        settings = configuration(tmp_path, crowd.hosts_file(tmp_path / "hosts"), max_connections=3)
        plan = plan_of(crowd.url(name, f"/page/{number}.html") for name in names for number in (1, 2))
        logged(crowd, fetch(task_of(settings), plan).requests)
        edges = [(hit.started_seconds, 1) for hit in crowd.log] + [(hit.ended_seconds, -1) for hit in crowd.log]
        running, most = 0, 0
        for _, step in sorted(edges):
            running += step
            most = max(most, running)
    assert most <= 3
    assert settled_once(settings, plan)


def test_a_lost_partition_is_noticed_within_ten_seconds() -> None:
    # The check comes on time at latest one long wait for the network after it is due.
    assert _CHECK_SECONDS + _LONGEST_WAIT_SECONDS < 10


def test_a_newer_attempt_ends_it_without_publishing(web: MisbehavingWeb, tmp_path: Path) -> None:
    def take_over(store: Store) -> None:
        store.write_bytes(f"control/rounds/{ROUND_ID}/owners/p00000", b"newer")

    with pytest.raises(PartitionLostError):
        fetch_while(web, tmp_path, take_over)
    assert rows(configuration(tmp_path), "fetches") == []
