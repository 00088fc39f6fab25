"""What is known of a host, and why its URLs wait."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recrawl.asking.host import HostReport, host_named, host_report
from recrawl.asking.reader import Reader
from recrawl.config.load import load_configuration
from recrawl.errors import UsageError
from recrawl.inbox import add_event, new_event
from recrawl.tables.vocabulary import OverrideKind
from recrawl.urls.keys import bucket_of
from tests.unit.asking.small_crawl import FIRST, NOW, SECOND, THIRD, SmallCrawl

HOST = "a.example:8080"
RULES = "User-agent: *\nDisallow: /private/\nCrawl-delay: 7\nSitemap: http://a.example:8080/map.xml\n"


def _report(crawl: SmallCrawl, host: str = HOST, **fetch: Any) -> HostReport:
    overrides = {"storage": {"root": str(crawl.root)}, "fetch": fetch}
    configuration = load_configuration(None, {}, overrides)
    return host_report(host, Reader(crawl.store), crawl.store, configuration, NOW)


def _host_row(**values: Any) -> dict[str, Any]:
    return {"bucket": bucket_of(HOST, 16), "host": HOST, "registered_domain": "a.example", **values}


def _robots(round_id: str, outcome: str, at: datetime, body: str | None = None, **values: Any) -> dict[str, Any]:
    row = {"round_id": round_id, "scheme": "http", "host": HOST, "robots_outcome": outcome, "body": body}
    return {**row, "fetched_at": at, "expires_at": at + timedelta(hours=1), **values}


@pytest.fixture
def crawl(tmp_path: Path) -> SmallCrawl:
    """Two closed rounds that know the host and its URLs."""
    crawl = SmallCrawl(tmp_path / "crawl")
    crawl.write("rounds", crawl.round(1, FIRST, "closed"), crawl.round(2, SECOND, "closed"))
    page = f"http://{HOST}/page/"
    crawl.write(
        "urls",
        *(crawl.url(f"{page}{n}", state="new", next_fetch_at=None) for n in range(3)),
        *(crawl.url(f"{page}{n}", state="fetched", next_fetch_at=NOW + timedelta(days=n)) for n in range(3, 5)),
        crawl.url(f"{page}x", state="excluded", next_fetch_at=None),
        crawl.url("http://a.example/", state="new"),
    )
    return crawl


def test_record_visits_tries_and_urls(crawl: SmallCrawl) -> None:
    crawl.write("hosts", _host_row(ips=["192.0.2.1"], zone="default", url_count=6, last_access_at=NOW))
    visit = {"host": HOST, "ips": ["192.0.2.1"]}
    crawl.write("host_visits", *({"round_id": r, "requests": n, **visit} for n, r in enumerate((FIRST, SECOND), 4)))
    tried = {"host": HOST, "url": f"http://{HOST}/page/1", "round_id": SECOND}
    crawl.write("fetches", {**tried, "outcome": "ok"}, {**tried, "outcome": "ok"}, {**tried, "outcome": "not_found"})
    skip = {"round_id": SECOND, "host": HOST, "step": "fetch", "skip_reason": "deadline"}
    crawl.write("skips", {**skip, "url_id": 1}, {**skip, "url_id": 2})
    found = _report(crawl)
    assert found.known is not None
    assert (found.known["url_count"], found.known["ips"], found.domain) == (6, ["192.0.2.1"], "a.example")
    assert [(row["round_id"], row["requests"]) for row in found.visits] == [(SECOND, 5), (FIRST, 4)]
    assert [(row["outcome"], row["urls"]) for row in found.outcomes] == [("not_found", 1), ("ok", 2)]
    assert [(row["state"], row["urls"], row["due"]) for row in found.urls] == [
        ("excluded", 1, 1), ("fetched", 2, 0), ("new", 3, 3),
    ]  # fmt: skip
    assert found.waits == [
        "Its gap of 2 s since the last access ends at 2026-12-02 04:00:02 UTC.",
        "3 URLs of it are due: the next round takes those whose crawl value fits.",
        f"Round {SECOND} gave back 2 (fetch, deadline): The time budget of the round ended first.",
    ]


def test_a_blocked_host_says_until_when_and_after_what(crawl: SmallCrawl) -> None:
    blocked = {"blocked_until": NOW + timedelta(hours=2), "error_streak": 5, "adaptive_delay_seconds": 12.0}
    crawl.write("hosts", _host_row(**blocked))
    found = _report(crawl)
    assert found.waits[0] == "It is not contacted before 2026-12-02 06:00:00 UTC after 5 faults in a row."
    assert found.waits[1] == "Requests keep a gap of 12 s: its answers took that long."


def test_decisions_about_the_host_its_domain_and_its_urls(crawl: SmallCrawl) -> None:
    def decide(kind: OverrideKind, subject: str, value: str | None = None, until: datetime | None = None) -> None:
        at = NOW - timedelta(hours=1)
        add_event(crawl.store, new_event(at, "ann", kind, subject, "their wish", value, until))

    decide(OverrideKind.BLOCK, "a.example", until=NOW + timedelta(days=1))
    decide(OverrideKind.EXCLUDE, f"http://{HOST}/page/x")
    decide(OverrideKind.EXCLUDE, "http://a.example/other-port")
    decide(OverrideKind.QUOTA, "example", "900")
    decide(OverrideKind.QUOTA, HOST, "2")
    decide(OverrideKind.BLOCK, "another.example")
    found = _report(crawl)
    assert [(row["kind"], row["subject"]) for row in found.decisions] == [
        ("block", "a.example"), ("quota", HOST), ("quota", "example"), ("exclude", f"http://{HOST}/page/x"),
    ]  # fmt: skip
    assert "ann blocked a.example until 2026-12-03 04:00:00 UTC: their wish" in found.waits
    assert f"ann excluded http://{HOST}/page/x: their wish" in found.waits
    assert f"ann set a quota of 2 URLs a round for {HOST}." in found.waits
    assert "3 URLs of it are due; a round takes 2 at most." in found.waits
    assert found.quota == 2


def test_the_quota_is_also_one_of_time(crawl: SmallCrawl) -> None:
    crawl.write("hosts", _host_row(crawl_delay_seconds=30.0, quota_urls_per_round=1_000))
    assert _report(crawl, time_budget_seconds=60).quota == 2
    assert _report(crawl).quota == 360
    assert "Requests keep a gap of 30 s: its robots.txt asks for it." in _report(crawl).waits


def test_robots_as_stored_and_its_verdict(crawl: SmallCrawl) -> None:
    crawl.write("robots", _robots(FIRST, "allow_all", NOW - timedelta(days=1), status=404))
    crawl.write("robots", _robots(SECOND, "rules", NOW, RULES, status=200, body_digest="d"))
    (file,) = _report(crawl).robots
    assert (file.scheme, file.outcome, file.status, file.body) == ("http", "rules", 200, RULES)
    assert (file.root_allowed, file.root_rule, file.crawl_delay_seconds) == (True, "", 7.0)
    assert file.sitemaps == ["http://a.example:8080/map.xml"]


@pytest.mark.parametrize(
    ("row", "allowed", "said"),
    [
        (_robots(SECOND, "rules", NOW, "User-agent: *\nDisallow: /"), False, "disallows / by the line 'Disallow: /'."),
        (_robots(SECOND, "allow_all", NOW, status=404), True, ""),
        (
            _robots(SECOND, "unreachable", NOW, status=503), False,
            "Its http robots.txt could not be had at 2026-12-02 04:00:00 UTC: nothing is allowed for now; "
            "it is tried again after 2026-12-02 05:00:00 UTC.",
        ),
        (
            _robots(SECOND, "unreachable", NOW - timedelta(days=2)), False, "it is tried again first.",
        ),
    ],
)  # fmt: skip
def test_what_robots_keeps_away(crawl: SmallCrawl, row: dict[str, Any], allowed: bool, said: str) -> None:
    crawl.write("robots", row)
    found = _report(crawl)
    assert [file.root_allowed for file in found.robots] == [allowed]
    assert any(said in sentence for sentence in found.waits) if said else not any("robots" in s for s in found.waits)


@pytest.mark.parametrize(("days", "stands_in"), [(1, True), (29, True), (40, False)])
def test_a_stored_file_stands_in_for_one_that_is_unreachable(crawl: SmallCrawl, days: int, stands_in: bool) -> None:
    crawl.write("robots", _robots(FIRST, "rules", NOW - timedelta(days=days), RULES, status=200))
    crawl.write("robots", _robots(SECOND, "unreachable", NOW))
    found = _report(crawl)
    (file,) = found.robots
    assert (file.root_allowed, file.body) == (stands_in, RULES if stands_in else None)
    assert any(("the stored file stands in" in s) == stands_in for s in found.waits if "could not be had" in s)


def test_nothing_due_names_the_time(crawl: SmallCrawl) -> None:
    later = [crawl.url(f"http://{HOST}/{n}", state="fetched", next_fetch_at=NOW + timedelta(days=n)) for n in (2, 3)]
    crawl.write("urls", *later, mode="overwrite")
    assert "No URL of it is due before 2026-12-04 04:00:00 UTC." in _report(crawl).waits


def test_the_plan_of_an_open_round(crawl: SmallCrawl) -> None:
    assert _report(crawl).planned is None
    crawl.write("rounds", crawl.round(3, THIRD, "open"))
    assert _report(crawl).planned == {"round_id": THIRD, "urls": 0}
    planned = {"round_id": THIRD, "host": HOST, "fetch_partition": 4, "predicted_seconds": 6.0}
    crawl.write("fetch_plan", {**planned, "url_id": 1}, {**planned, "url_id": 2})
    assert _report(crawl).planned == {
        "round_id": THIRD, "fetch_partition": 4, "urls": 2, "predicted_seconds": 6.0,
    }  # fmt: skip


def test_a_host_that_nobody_met(tmp_path: Path) -> None:
    found = _report(SmallCrawl(tmp_path), "new.example")
    assert found.known is None
    assert found.waits[-1] == "No URL of it is known."
    assert (found.visits, found.robots, found.decisions) == ([], [], [])


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Example.ORG", "example.org"), ("example.org:8080", "example.org:8080"), ("example.org:80", "example.org"),
        ("example.org:443", "example.org"), ("https://example.org:443/a?b", "example.org"),
        ("http://example.org:443/", "example.org:443"), (" bücher.example ", "xn--bcher-kva.example"),
        ("[::1]:80", "[::1]"), ("127.0.0.1:8000", "127.0.0.1:8000"),
    ],
)  # fmt: skip
def test_how_people_name_hosts(text: str, host: str) -> None:
    assert host_named(text, load_configuration(None, {})) == host


@pytest.mark.parametrize("text", ["", "a b", "example.org/path", "http://"])
def test_what_names_no_host(text: str) -> None:
    with pytest.raises(UsageError, match="is no host"):
        host_named(text, load_configuration(None, {}))
