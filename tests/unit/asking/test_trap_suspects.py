"""Suspected traps: which prefixes, with what evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recrawl.asking.reader import Reader
from recrawl.asking.trap_suspects import suspect_named, trap_suspects
from recrawl.errors import UsageError
from recrawl.urls.keys import bucket_of
from tests.unit.asking.small_crawl import SECOND, SmallCrawl, small_crawl

ODD, EVEN = "odd.test", "even.test"


def trapped_crawl(folder: Path) -> SmallCrawl:
    """A small crawl with a host that has a calendar and copies, and one that is as others are."""
    crawl = small_crawl(folder)

    def host(name: str, **values: Any) -> dict[str, Any]:
        return {"bucket": bucket_of(name, 16), "host": name, "registered_domain": name, "page_count": 50, **values}

    crawl.write("hosts", host(ODD, trap_score=0.4, trap_link_count=900, duplicate_count=22), host(EVEN))
    away = [f"http://{ODD}/calendar/day?d=2031-01-{day:02}" for day in range(1, 31)]
    away += [f"http://{EVEN}/calendar?month=2031-{month:02}" for month in range(1, 13)]
    crawl.write(
        "rejects",
        *({"round_id": SECOND, "dst_url": url, "step": "parse", "filter": "calendar"} for url in away),
        {"round_id": SECOND, "dst_url": f"http://{ODD}/far", "step": "parse", "filter": "scope"},
    )
    crawl.write(
        "urls",
        crawl.url(f"http://{ODD}/"),
        crawl.url(f"http://{ODD}/calendar?month=2026-11"),
        *(crawl.url(f"http://{ODD}/print/{n}", state="duplicate") for n in range(22)),
        *(crawl.url(f"http://{ODD}/news/{n}", state="fetched") for n in range(22)),
    )
    return crawl


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(trapped_crawl(tmp_path / "crawl").store)


def test_prefixes_of_conspicuous_hosts_come_with_evidence(reader: Reader) -> None:
    calendar, copies = trap_suspects(reader)
    assert (calendar.prefix, calendar.known, calendar.turned_away) == (f"http://{ODD}/calendar", 1, 30)
    assert calendar.filters == ("calendar",)
    assert calendar.evidence == "1 URLs known; 30 turned away by calendar"
    assert (calendar.captures, calendar.duplicates, calendar.trap_links, calendar.trap_score) == (50, 22, 900, 0.4)
    assert calendar.test_url == f"http://{ODD}/calendar/day?d=2031-01-01"
    assert (copies.prefix, copies.known, copies.known_duplicates) == (f"http://{ODD}/print/", 22, 22)
    assert all(one.test_url.startswith(one.prefix) for one in (calendar, copies))
    assert suspect_named([calendar, copies], copies.suspect_id) is copies


def test_a_host_without_a_score_is_looked_into_when_asked_for(reader: Reader) -> None:
    (calendar,) = trap_suspects(reader, EVEN)
    assert (calendar.prefix, calendar.turned_away) == (f"http://{EVEN}/calendar?", 12)
    assert trap_suspects(reader, "unknown.test") == []


def test_an_unknown_id_is_refused(reader: Reader) -> None:
    with pytest.raises(UsageError, match="No suspect has the id"):
        suspect_named(trap_suspects(reader), "00000000")
