"""What a person sees of a run, and where the tasks' logs go."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.config import load_configuration
from recrawl.firsttry import watch
from recrawl.firsttry.report import page_lines, queries, summary_lines
from recrawl.firsttry.watch import ABOUT_SECONDS, TaskLogs, Watcher

ROUND_ID = "20261130T030000.000000Z"
RUN = "manual__2026-11-30T03:00:00+00:00"


def line(event: str) -> str:
    """A line of the run's log."""
    return json.dumps({"timestamp": "2026-11-30T03:00:00Z", "level": "info", "event": event}) + "\n"


def starting(task: str) -> list[str]:
    """How a task's start looks in the log."""
    return [
        line(f"[DAG TEST] starting task_id={task} map_index=-1"),
        line(f"[DAG TEST] running task <TaskInstance: crawl_round.{task} {RUN} [scheduled] ti_id=1>"),
    ]


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[Watcher]:
    """A watcher of a crawl under `tmp_path`."""
    configuration = load_configuration("/dev/null", {}, {"storage": {"root": str(tmp_path / "crawl")}})
    made = Watcher(configuration, TaskLogs(tmp_path / "logs", "crawl_round"))
    yield made
    made.close()


def test_steps_and_what_they_say_are_shown_and_noise_is_not(
    watcher: Watcher, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (
        *starting("seed"),
        line("Context impl SQLiteImpl."),
        line(f"seed of run {ROUND_ID}: Takes the lease."),
        line(f"03:00:10 seed: finished in 9.0 s. round_id {ROUND_ID}"),
    ):
        assert watcher.take(text)
    assert capsys.readouterr().out.splitlines() == [
        f"seed: Takes the lease, opens the round and canonicalises the seeds. (about {ABOUT_SECONDS['seed']} s)",
        f"  seed: finished in 9.0 s. round_id {ROUND_ID}",
    ]


def test_a_failure_is_told_with_its_reason_and_the_next_try(
    watcher: Watcher, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (
        *starting("fetch"),
        line("Traceback (most recent call last):"),
        line("recrawl: The uplink is down. Plug it in."),
        line("Task failed with exception"),
        line("[DAG TEST] end task task_id=fetch map_index=-1"),
        *starting("fetch"),
    ):
        watcher.take(text)
    assert watcher.fault == "The uplink is down. Plug it in."
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:] == ["  fetch failed: The uplink is down. Plug it in.", "fetch: once more"]


def test_waiting_is_not_kept_in_the_log(watcher: Watcher) -> None:
    assert not watcher.take(line("No tasks to run. unrunnable tasks: {…}"))


def test_a_silent_step_is_seen_to_run(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watcher.take(starting("parse")[0])
    capsys.readouterr()
    watcher.tick()
    assert capsys.readouterr().out == ""
    later = time.monotonic() + 7
    monkeypatch.setattr(watch.time, "monotonic", lambda: later)
    watcher.tick()
    assert capsys.readouterr().out == "  … parse: 7 s\n"


def test_a_running_fetch_shows_its_figures(
    watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crawl" / "control" / "rounds" / ROUND_ID / "progress"
    folder.mkdir(parents=True)
    figures = {"planned": 60, "fetched": 21, "errors": 2, "pages_per_second": 3.5, "seconds_left": 200}
    (folder / "0.json").write_text(json.dumps(figures), encoding="utf-8")
    watcher.take(line(f"03:00:10 seed: finished in 9.0 s. round_id {ROUND_ID}"))
    watcher.take(starting("fetch")[0])
    later = time.monotonic() + 7
    monkeypatch.setattr(watch.time, "monotonic", lambda: later)
    watcher.tick()
    assert "fetch: 21 of 60 fetched, 3.5 pages/s, 2 errors" in capsys.readouterr().out


def test_each_try_of_a_task_has_its_log_where_the_ui_looks(watcher: Watcher, tmp_path: Path) -> None:
    for number in (1, 2):
        for text in (*starting("seed"), line(f"try {number}"), line("[DAG TEST] end task task_id=seed map_index=-1")):
            watcher.take(text)
    folder = tmp_path / "logs" / "dag_id=crawl_round" / f"run_id={RUN}" / "task_id=seed"
    assert [(folder / f"attempt={number}.log").read_text("utf-8") for number in (1, 2)] == [
        line("try 1"),
        line("try 2"),
    ]


def test_the_page_is_shown_with_the_beginning_of_its_text() -> None:
    page = {"title": "Tea", "url": "http://a.test/tea", "text": "water " * 500, "url_id": -5}
    lines = page_lines(page)
    assert lines[:2] == ["One of its pages: Tea", "  http://a.test/tea"]
    assert max(map(len, lines)) <= 100 and lines[-1].endswith("…")
    assert 500 < sum(map(len, lines[2:])) < 700


def test_queries_carry_real_ids() -> None:
    asked = queries(ROUND_ID, {"url_id": -5})
    assert len(asked) == 3
    assert f"'{ROUND_ID}'" in asked[0] and "url_id = -5" in asked[1] and "src_url_id = -5" in asked[2]
    # In double quotes in a shell.
    assert not any(set('"$`\\!') & set(query) for query in (*asked, *queries(ROUND_ID, None)))


def test_a_round_that_did_not_close_is_told_without_its_end() -> None:
    row = dict.fromkeys(
        ("planned", "fetched", "outcomes_ok", "outcomes_unchanged", "outcomes_failed", "skipped_after_plan", "new_urls",
         "known_after", "warc_bytes", "closed_at")
    )  # fmt: skip
    lines = summary_lines({**row, "round_number": 3, "round_id": ROUND_ID, "round_state": "open", "opened_at": None})
    assert lines[0] == f"Round 3 ({ROUND_ID}): open"
    assert lines[1].split() == ["planned", "-", "URLs"]
