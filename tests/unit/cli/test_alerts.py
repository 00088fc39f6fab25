"""`recrawl alerts`."""

from __future__ import annotations

from tests.unit.asking.small_crawl import FIRST, SECOND, THIRD, SmallCrawl
from tests.unit.cli.conftest import Recrawl


def test_alerts_of_a_round_or_of_all(recrawl: Recrawl, crawl: SmallCrawl) -> None:
    assert recrawl("alerts") == 0
    assert recrawl.out == "No alert.\n"
    for round_id, kind in ((FIRST, "failure_rate"), (SECOND, "watched_page"), (THIRD, "long_urls")):
        crawl.write("alerts", {"round_id": round_id, "alert_id": kind, "alert_kind": kind, "message": f"{kind}!"})
    assert recrawl("alerts") == 0
    assert "watched_page!" in recrawl.out
    assert "failure_rate!" not in recrawl.out
    assert recrawl("alerts", "--round", "3", "--json") == 0
    assert [row["message"] for row in recrawl.json()["alerts"]] == ["long_urls!"]
    assert recrawl("alerts", "--all", "--kind", "failure_rate", "--json") == 0
    assert [row["round_id"] for row in recrawl.json()["alerts"]] == [FIRST]
