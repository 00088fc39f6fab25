"""How the crawl stands."""

from __future__ import annotations

import json
from pathlib import Path

from recrawl.asking.reader import Reader
from recrawl.asking.status import crawl_status
from recrawl.assignment import save_step_summary
from recrawl.clock import ManualClock
from recrawl.inbox import request_stop
from recrawl.lease import acquire
from recrawl.rounds import progress_folder
from tests.unit.asking.small_crawl import NOW, THIRD, SmallCrawl


def test_a_live_round_step_by_step(crawl: SmallCrawl) -> None:
    save_step_summary(crawl.store, THIRD, "seed", {"seeds": 1})
    save_step_summary(crawl.store, THIRD, "frontier", {"planned": 9})
    for partition, fetched in (("0", 3), ("1", 4)):
        figures = {"planned": 9, "fetched": fetched, "pages_per_second": 1.5}
        crawl.store.write_bytes(f"{progress_folder(THIRD)}/{partition}.json", json.dumps(figures).encode())
    request_stop(crawl.store, THIRD, "ann", "enough", NOW)
    acquire(crawl.store, "run 3", "the step fetch", 120, ManualClock(NOW))
    status = crawl_status(Reader(crawl.store), crawl.store, NOW)
    (live,) = status.live
    assert live.round_number == 3
    assert live.steps_done == {"seed": {"seeds": 1}, "frontier": {"planned": 9}}
    assert live.current_step == "fetch"
    assert live.figures is not None
    assert (live.figures.fetched, live.figures.partitions) == (7, 2)
    assert live.stop is not None
    assert live.stop.who == "ann"
    assert status.lease is not None
    assert status.lease.owner == "run 3"
    assert not status.lease_expired
    assert [row["round_number"] for row in status.rounds] == [1, 2, 3]
    assert {size.table for size in status.tables} >= {"urls", "rounds"}


def test_an_empty_crawl(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path)
    status = crawl_status(Reader(crawl.store), crawl.store, NOW)
    assert (status.rounds, status.live, status.tables, status.lease) == ((), (), (), None)


def test_only_the_newest_rounds_are_shown(crawl: SmallCrawl) -> None:
    status = crawl_status(Reader(crawl.store), crawl.store, NOW, shown_rounds=1, sizes=False)
    assert [row["round_number"] for row in status.rounds] == [3]
    assert status.tables == ()
