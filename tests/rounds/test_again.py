"""Steps run again, rounds taken back, rounds continued: rules R4 and R7 on real tables."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from recrawl.assignment import load_assignment
from recrawl.errors import LawBrokenError, LeaseHeldError, RoundStateError
from recrawl.rounds import warc_folder
from recrawl.spark.application import Application, run_round, run_step
from recrawl.spark.undo import undo
from recrawl.stages import STEP_NAMES
from recrawl.tables.catalog import STATE_TABLES, TABLES
from tests.rounds.crawl import ROUND_IDS, Crawl

#: Whole rounds, on a machine that may be busy.
pytestmark = pytest.mark.timeout(1200)

_SLICES = {
    "frontier": ("fetch_plan", "skips"),
    "fetch": ("fetches", "host_visits", "robots", "warc_files", "skips"),
    "parse": ("pages", "links", "rejects"),
    "dedupe": ("content_seen", "discovered"),
}


def test_every_step_again_gives_the_same_rows_and_undo_gives_the_state_before(copy_of_three_rounds: Crawl) -> None:
    crawl, run_id = copy_of_three_rounds, ROUND_IDS[3]
    before = {table: crawl.state(table) for table in STATE_TABLES}
    form = crawl.form()
    application = Application(crawl.configuration(form))
    for step in STEP_NAMES[:-1]:
        run_step(application, step, run_id, form)
    crawl.web.clear_log()
    for step, tables in _SLICES.items():
        first = {table: crawl.slice(table, run_id) for table in tables}
        assert any(first.values())
        run_step(application, step, run_id, form)
        assert {table: crawl.slice(table, run_id) for table in tables} == first
    assert crawl.web.log == [], "a fetch that was complete must not ask again"

    run_step(application, "rank", run_id, form)
    after = {table: crawl.state(table) for table in STATE_TABLES}
    assert after["urls"] != before["urls"]
    assert run_step(application, "rank", run_id, form) == {"round_state": "closed"}

    assert undo(crawl.configuration()) == [run_id]
    assert {table: crawl.state(table) for table in STATE_TABLES} == before
    assert crawl.rows(f"SELECT round_state FROM rounds WHERE round_id = '{run_id}'") == [{"round_state": "undone"}]
    for table in TABLES:
        if "round_id" in TABLES[table].partition_by:
            assert crawl.slice(table, run_id) == []
    assert crawl.store.names(warc_folder(run_id)) == []
    assert crawl.store.names(f"undone/{run_id}-1"), "captures are moved aside, not deleted"

    # The same slot again after the undo: nothing is skipped as already folded.
    run_round(crawl.configuration(form), form, ROUND_IDS[4])
    assert crawl.state("urls") != before["urls"]


def test_a_broken_law_leaves_urls_untouched(copy_of_three_rounds: Crawl) -> None:
    crawl, run_id = copy_of_three_rounds, ROUND_IDS[3]
    form = crawl.form()
    application = Application(crawl.configuration(form))
    for step in STEP_NAMES[:-1]:
        run_step(application, step, run_id, form)
    before = crawl.state("urls")
    discovered = application.tables.read_slice("discovered", run_id)
    richest = discovered.orderBy("cash_received", ascending=False).first()
    assert richest is not None and richest["cash_received"] > 0
    kept = discovered.where(discovered.url_id != richest["url_id"]).localCheckpoint()
    application.tables.write_slice("discovered", run_id, kept)
    with pytest.raises(LawBrokenError, match="law of conservation"):
        run_step(application, "rank", run_id, form)
    assert crawl.state("urls") == before
    run_step(application, "dedupe", run_id, form)
    run_step(application, "rank", run_id, form)
    assert crawl.state("urls") != before


def test_an_open_round_is_continued_or_abandoned_by_the_next_run(copy_of_three_rounds: Crawl) -> None:
    crawl, open_id = copy_of_three_rounds, ROUND_IDS[3]
    form, lease = crawl.form(), {"storage": {"lease_seconds": 2}}
    application = Application(crawl.configuration(form, **lease))
    for step in ("seed", "frontier"):
        run_step(application, step, open_id, form)
    with pytest.raises(LeaseHeldError, match=f"in use by {open_id}"):
        run_round(crawl.configuration(form), form, ROUND_IDS[4])
    time.sleep(2.5)

    with pytest.raises(RoundStateError, match="a plan can only be shown between rounds"):
        run_round(crawl.configuration(), crawl.form(plan_only=True), ROUND_IDS[4])

    given_up = crawl.form(on_open_round="abandon")
    run_round(crawl.configuration(given_up), given_up, ROUND_IDS[5])
    assignment = load_assignment(crawl.store, ROUND_IDS[5])
    assert assignment is not None and (assignment.round_id, assignment.first_step) == (open_id, "fetch")
    rows = crawl.rows("SELECT round_id, round_state, planned, skipped_after_plan FROM rounds ORDER BY round_number")
    assert len(rows) == 4
    assert rows[3]["round_state"] == "abandoned"
    assert rows[3]["planned"] == rows[3]["skipped_after_plan"] > 0
    reasons = crawl.rows(f"SELECT DISTINCT skip_reason FROM skips WHERE round_id = '{open_id}' AND step = 'fetch'")
    assert reasons == [{"skip_reason": "operator"}]


def test_plan_only_fetches_nothing_and_leaves_no_round(new_crawl: Callable[[str], Crawl]) -> None:
    crawl = new_crawl("plan")
    crawl.web.clear_log()
    form = crawl.form(plan_only=True)
    summaries = run_round(crawl.configuration(form), form, ROUND_IDS[0])
    assert summaries["frontier"]["planned"] == 3
    assert summaries["rank"] == {"round_state": "undone"}
    assert crawl.web.log == []
    assert crawl.rows("SELECT count(*) AS n FROM fetch_plan") == [{"n": 0}]
    assert crawl.rows("SELECT count(*) AS n FROM urls") == [{"n": 0}]
