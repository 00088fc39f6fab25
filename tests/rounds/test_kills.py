"""The kill harness: SIGKILL at chosen moments of a round; the rerun ends where an undisturbed run ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from recrawl.fetch.journal import load_journal_rows
from recrawl.rounds import warc_folder
from recrawl.storage import Store
from recrawl.tables.catalog import STATE_TABLES, TABLES_FOLDER
from tests.rounds.crawl import ROUND_IDS, Crawl, audit_of_cash, start_round

#: Whole rounds, on a machine that may be busy.
pytestmark = pytest.mark.timeout(1200)

#: A moment of a round: whether it has come, by what lies under the storage root.
Moment = Callable[[Store], bool]

_DEADLINE_SECONDS = 300


def commits(table: str, at_least: int) -> Moment:
    """A table has had this many commits, its creation included."""

    def reached(store: Store) -> bool:
        names = store.names(f"{TABLES_FOLDER}/{table}/_delta_log")
        return sum(name.endswith(".json") for name in names) >= at_least

    return reached


def journal_lines(at_least: int) -> Moment:
    """The fetch has written this many journal lines, published or not."""

    def reached(store: Store) -> bool:
        folders = [store.local_path(warc_folder(ROUND_IDS[0])), store.local_path(f"spool/{ROUND_IDS[0]}")]
        files = [file for folder in folders if folder.is_dir() for file in folder.rglob("*.journal.jsonl")]
        lines = 0
        for file in files:
            try:
                lines += file.read_bytes().count(b'"fetches"')
            except FileNotFoundError:
                continue
        return lines >= at_least

    return reached


#: The moments by name. Every table starts with one commit; in a first round each gets one more.
MOMENTS: dict[str, Moment] = {
    "in fetch": journal_lines(1),
    "in parse, between pages and links": commits("pages", 2),
    "in rank, before the laws": commits("url_updates", 2),
    "in rank, folding and nothing folded": commits("rounds", 3),
    "in rank, urls folded": commits("urls", 2),
    "in rank, hosts folded": commits("hosts", 2),
    "in rank, contents folded": commits("contents", 2),
    "in rank, all folded and not closed": commits("outlinks", 2),
}
_IN_THE_SUITE = ("in fetch", "in rank, urls folded")


def kill_at(crawl: Crawl, moment: Moment) -> None:
    """Start a round and kill its whole process group when the moment has come."""
    process = start_round(crawl, ROUND_IDS[0], crawl.form())
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not moment(crawl.store):
        assert process.poll() is None, (crawl.folder / "round.log").read_text()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def finish(crawl: Crawl) -> None:
    """Run the same round to its end."""
    process = start_round(crawl, ROUND_IDS[0], crawl.form())
    assert process.wait(timeout=_DEADLINE_SECONDS) == 0, (crawl.folder / "round.log").read_text()[-3000:]


def published_urls(crawl: Crawl) -> set[str]:
    """The URLs whose final rows the published journals hold."""
    return {row["url"] for row in load_journal_rows(crawl.store, ROUND_IDS[0], "fetches") if row["final"]}


@pytest.fixture(scope="module")
def undisturbed(web, tmp_path_factory: pytest.TempPathFactory) -> Crawl:  # type: ignore[no-untyped-def]
    """A first round that nothing disturbed."""
    crawl = Crawl(tmp_path_factory.mktemp("undisturbed"), web)
    finish(crawl)
    return crawl


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in _IN_THE_SUITE else [pytest.mark.long]) for name in MOMENTS]
)
def test_a_killed_round_ends_as_an_undisturbed_one(
    name: str, undisturbed: Crawl, new_crawl: Callable[[str], Crawl]
) -> None:
    crawl = new_crawl("killed")
    kill_at(crawl, MOMENTS[name])
    published = published_urls(crawl)
    killed_at_seconds = time.monotonic()
    finish(crawl)
    for table in STATE_TABLES:
        assert crawl.state(table) == undisturbed.state(table), table
    for table in ("fetch_plan", "fetches", "pages", "links", "discovered", "url_updates"):
        assert crawl.slice(table, ROUND_IDS[0]) == undisturbed.slice(table, ROUND_IDS[0]), table
    assert crawl.rows("SELECT round_state FROM rounds") == [{"round_state": "closed"}]
    held, granted = audit_of_cash(crawl)
    assert held == granted
    again = [hit for hit in crawl.web.log if hit.started_seconds > killed_at_seconds]
    assert {crawl.web.url(hit.host, hit.path) for hit in again} & published == set()
