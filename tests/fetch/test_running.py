"""What reaches a fetch while it runs: a stop, a block, a newer attempt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recrawl.errors import PartitionLostError
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


def test_a_newer_attempt_ends_it_without_publishing(web: MisbehavingWeb, tmp_path: Path) -> None:
    def take_over(store: Store) -> None:
        store.write_bytes(f"control/rounds/{ROUND_ID}/owners/p00000", b"newer")

    with pytest.raises(PartitionLostError):
        fetch_while(web, tmp_path, take_over)
    assert rows(configuration(tmp_path), "fetches") == []
