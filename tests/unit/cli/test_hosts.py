"""`recrawl host`."""

from __future__ import annotations

import pytest

from tests.unit.asking.small_crawl import SECOND, SmallCrawl
from tests.unit.cli.conftest import Recrawl

pytestmark = pytest.mark.usefixtures("crawl")


def test_for_people(recrawl: Recrawl) -> None:
    assert recrawl("host", "https://example.org/some/page") == 0
    lines = recrawl.out.splitlines()
    assert lines[0] == "example.org"
    assert "  3 URLs of it are due: the next round takes those whose crawl value fits." in lines
    assert "robots.txt (https)" in lines
    assert "  | Disallow: /private/" in lines
    assert any(line.split()[:2] == ["url_count", "3"] for line in lines)


def test_for_programs(recrawl: Recrawl) -> None:
    assert recrawl("host", "example.org", "--json") == 0
    answer = recrawl.json()
    assert answer["host"] == "example.org"
    assert answer["known"]["url_count"] == 3
    assert answer["skips"] == [{"round_id": SECOND, "step": "frontier", "skip_reason": "capacity", "urls": 1}]
    assert answer["robots"][0]["root_allowed"] is True
    assert answer["robots"][0]["body"].startswith("User-agent: *")
    assert isinstance(answer["waits"][0], str)


def test_a_host_that_nobody_met(recrawl: Recrawl) -> None:
    assert recrawl("host", "new.example") == 0
    assert "No round has met it." in recrawl.out
    assert "No URL of it is known." in recrawl.out


def test_what_is_no_host(recrawl: Recrawl) -> None:
    assert recrawl("host", "no host") == 2
    assert "is no host" in recrawl.err


def test_a_robots_txt_can_not_drive_the_terminal(recrawl: Recrawl, crawl: SmallCrawl) -> None:
    row = {"round_id": SECOND, "scheme": "http", "host": "example.org", "robots_outcome": "rules"}
    crawl.write("robots", {**row, "body": "# \x1b[2J\nDisallow: /\x07\n"})
    assert recrawl("host", "example.org") == 0
    assert "\x1b" not in recrawl.out
    assert "\x07" not in recrawl.out
