"""`recrawl trap`: suspects, and accepting one."""

from __future__ import annotations

from datetime import date

import pytest

from recrawl.config.model import Urls
from recrawl.inbox import read_events
from recrawl.tables.vocabulary import RejectFilter
from recrawl.urls.filters import UrlFilters
from tests.unit.asking.small_crawl import SmallCrawl
from tests.unit.asking.test_trap_suspects import ODD, trapped_crawl
from tests.unit.cli.conftest import Recrawl


@pytest.fixture
def odd_crawl(recrawl: Recrawl) -> SmallCrawl:
    return trapped_crawl(recrawl.root)


def test_an_accepted_suspect_becomes_a_rule_that_turns_its_test_url_away(
    recrawl: Recrawl, odd_crawl: SmallCrawl
) -> None:
    assert recrawl("trap", "suspects", "--json") == 0
    shown = recrawl.json()["suspects"]
    assert [one["prefix"] for one in shown] == [f"http://{ODD}/calendar", f"http://{ODD}/print/"]
    assert recrawl("trap", "accept", shown[1]["suspect_id"], "--reason", "copies", "--who", "bob") == 0
    (event,) = read_events(odd_crawl.store)
    assert (event.kind.value, event.subject, event.value) == ("trap", shown[1]["prefix"], shown[1]["test_url"])
    assert event.reason == "copies (22 URLs known; 22 duplicates)"
    filters = UrlFilters.from_settings(Urls(), date(2026, 12, 1), [event.subject])
    rejection = filters.check(shown[1]["test_url"], 1)
    assert rejection is not None
    assert rejection.filter is RejectFilter.TRAP
    assert filters.check(f"http://{ODD}/news/1", 1) is None
    assert recrawl("explain", shown[1]["test_url"]) == 0
    assert "accepted" in recrawl.out
    assert recrawl("lift", "trap", event.subject, "--reason", "mended") == 0
    assert recrawl("decisions", "--json") == 0
    assert recrawl.json()["decisions"] == []


def test_suspects_for_people(recrawl: Recrawl, odd_crawl: SmallCrawl) -> None:
    assert recrawl("trap", "suspects") == 0
    assert "30 turned away by calendar" in recrawl.out
    assert recrawl("trap", "suspects", "--host", "example.org") == 0
    assert recrawl.out == "Nothing looks like a trap.\n"
    assert recrawl("trap", "accept", "nothing", "--reason", "x") == 2
    assert "No suspect has the id" in recrawl.err
