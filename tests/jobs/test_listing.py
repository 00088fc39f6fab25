"""What sitemaps and texts say of a page, from the links of a round to the next round's plan."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs import dedupe, frontier, rank
from recrawl.rank.listed_changes import due_after_claim
from recrawl.rank.schedule import IntervalLimits
from recrawl.spark.application import Step
from recrawl.urls.keys import url_id
from tests.jobs.crawl import (
    BEFORE,
    DAY,
    NOW,
    JobCrawl,
    plain,
    row_of_fetch,
    row_of_host,
    row_of_link,
    row_of_page,
    row_of_plan,
    row_of_seed,
    row_of_url,
    write,
)

pytestmark = pytest.mark.timeout(300)

MAP, LISTED, QUIET, CLAIMED, FUTURE, VISITED = (
    f"http://a.test/{path}" for path in ("sitemap.xml", "listed", "quiet", "claimed", "future", "visited")
)
LAST, DUE = NOW - 4 * DAY, NOW + 20 * DAY
LIMITS = IntervalLimits(7.0, 1 / 24, 90.0)


def _known(url: str, **values: Any) -> dict[str, Any]:
    at = {"last_success_at": LAST, "last_fetch_at": LAST, "next_fetch_at": DUE, "content_checksum": 1, "fetch_count": 1}
    return row_of_url(url, **{**at, **values})


def _listed(url: str, lastmod: str | None, priority: float | None = None) -> dict[str, Any]:
    return row_of_link(MAP, url, link_kind="sitemap", listed_lastmod_text=lastmod, listed_priority=priority)


@pytest.fixture(scope="module")
def closed(crawl: JobCrawl) -> Step:
    """A round that read a sitemap and visited one of the pages that it lists."""
    ids = {"last_round_id": BEFORE}
    crawl.know(
        urls=[
            _known(MAP, next_fetch_at=NOW, **ids), _known(LISTED), _known(QUIET, quality=0.25),
            _known(CLAIMED, listed_lastmod_at=NOW - 2 * DAY), _known(FUTURE), _known(VISITED, next_fetch_at=NOW),
        ],
        seeds=[row_of_seed(MAP)],
    )  # fmt: skip
    step = crawl.open(known=6)
    write(
        step,
        fetch_plan=[row_of_plan(MAP), row_of_plan(VISITED)],
        fetches=[
            row_of_fetch(url, ended_at=NOW + timedelta(minutes=5), warc_file="w", warc_offset=0)
            for url in (MAP, VISITED)
        ],
        pages=[
            row_of_page(MAP, 10, change_verdict="changed", outlink_count=5, kept_outlink_count=5),
            row_of_page(VISITED, 11, change_verdict="changed", quality=0.75),
        ],
        links=[
            _listed(LISTED, "2026-11-29T03:00:00Z", 0.9), _listed(QUIET, "Fri, 20 Nov 2026 03:00:00 GMT", 0.1),
            _listed(CLAIMED, "2026-11-30"), _listed(FUTURE, "2030-01-01"), _listed("http://a.test/odd", "yesterday"),
            _listed(VISITED, "2026-11-28T03:00:00+00:00"),
        ],
    )  # fmt: skip
    dedupe.run(step)
    rank.run(step)
    return step


def _rows(step: Step, *columns: str) -> dict[str, tuple[Any, ...]]:
    return {row[0].rpartition("/")[2]: row[1:] for row in plain(step.slice("url_updates"), "url", *columns)}


def test_a_listed_change_brings_the_visit_forward_once(closed: Step) -> None:
    due = {name: row[0] for name, row in _rows(closed, "next_fetch_at").items()}
    assert due["listed"] == due_after_claim(LAST, DUE, LIMITS) == LAST + 6 * DAY
    # Changed before the last visit, in the future, or claimed before: nothing moves.
    assert due["quiet"] == due["future"] == due["claimed"] == DUE


def test_what_is_listed_is_kept(closed: Step) -> None:
    rows = _rows(closed, "listed_lastmod_at", "listed_priority", "quality")
    assert rows["listed"] == (NOW - DAY, 0.9, None)
    assert rows["quiet"] == (NOW - 10 * DAY, 0.1, 0.25)
    assert rows["odd"][0] is None
    assert rows["future"][0] is None
    assert rows["visited"][1:] == (None, 0.75)


def test_the_listed_change_of_a_page_that_changed_dates_the_change(closed: Step) -> None:
    """One change over the days since it, and not over all days since the last visit."""
    events, days = _rows(closed, "change_events", "observed_days")["visited"]
    assert events == 1.0
    assert days == pytest.approx(2.0 + 5 / 1440)


def test_quality_priority_and_claims_weigh_in_the_plan(own_crawl: JobCrawl) -> None:
    names = ("plain", "good", "poor", "praised", "stale")
    urls = {name: f"http://b.test/{name}" for name in names} | {"trap": "http://trap.test/"}
    said: dict[str, dict[str, Any]] = {
        "good": {"quality": 1.0}, "poor": {"quality": 0.0}, "praised": {"listed_priority": 1.0},
        "stale": {"listed_lastmod_at": NOW - DAY},
    }  # fmt: skip
    away = "http://b.test/away?n=3"
    known = [_known(url, next_fetch_at=NOW, cash=10**12, **said.get(name, {})) for name, url in urls.items()]
    own_crawl.know(
        urls=[*known, _known(away, next_fetch_at=NOW)],
        hosts=[row_of_host("b.test"), row_of_host("trap.test", trap_score=1.0)],
        overrides=[{"subject": "http://b.test/away", "override_kind": "trap", "value": "http://b.test/away?n=1"}],
    )
    step = own_crawl.open(known=len(urls) + 1)
    frontier.run(step)
    values = dict(plain(step.slice("fetch_plan"), "url_id", "crawl_value"))
    value = {name: values[url_id(url)] for name, url in urls.items()}
    assert value["good"] / value["plain"] == pytest.approx(1.5)
    assert value["poor"] / value["plain"] == pytest.approx(0.5)
    assert value["praised"] / value["plain"] == pytest.approx(1.25)
    assert plain(step.slice("skips"), "url_id", "skip_reason") == [(url_id(away), "excluded")]
    assert value["trap"] / value["plain"] == pytest.approx(0.1)
    assert 1.0 < value["stale"] / value["plain"] <= 16.0
