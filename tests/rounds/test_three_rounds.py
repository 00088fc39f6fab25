"""What must hold after three undisturbed rounds."""

from __future__ import annotations

from collections import Counter

import pytest

from recrawl.rounds import warc_folder
from recrawl.warc.check import check_warc
from tests.rounds.crawl import HOSTS, ROUND_IDS, Crawl, audit_of_cash
from tests.web.audit import Audit

#: Whole rounds, on a machine that may be busy.
pytestmark = pytest.mark.timeout(1200)


def test_every_round_is_closed_and_counts_what_it_did(three_rounds: Crawl) -> None:
    rounds = three_rounds.rows("SELECT * FROM rounds ORDER BY round_number")
    assert [row["round_state"] for row in rounds] == ["closed"] * 3
    for row in rounds:
        assert row["planned"] == row["fetched"] + row["skipped_after_plan"]
        assert row["known_before"] + row["new_urls"] == row["known_after"]
        assert int(row["cash_before"]) + int(row["credit_granted_in_round"]) == int(row["cash_after"])
    assert int(rounds[0]["credit_granted_in_round"]) == 3 * 10**12
    assert int(rounds[2]["credit_granted_in_round"]) == 0


def test_each_planned_url_has_one_final_row_or_one_skip(three_rounds: Crawl) -> None:
    for round_id in ROUND_IDS[:3]:
        where = f"WHERE round_id = '{round_id}'"
        planned = {row["url_id"] for row in three_rounds.rows(f"SELECT url_id FROM fetch_plan {where}")}
        finals = three_rounds.rows(f"SELECT planned_url_id AS url_id FROM fetches {where} AND final")
        skips = three_rounds.rows(f"SELECT url_id FROM skips {where} AND step = 'fetch'")
        counted = Counter(row["url_id"] for row in [*finals, *skips])
        assert set(counted) == planned
        assert set(counted.values()) == {1}


def test_cash_over_all_rows_is_the_credit_ever_granted(three_rounds: Crawl) -> None:
    held, granted = audit_of_cash(three_rounds)
    assert held == granted


def test_time_travel_shows_each_round_as_it_closed(three_rounds: Crawl) -> None:
    for row in three_rounds.rows("SELECT round_id, known_after FROM rounds"):
        counted = three_rounds.rows("SELECT count(*) AS n FROM urls", at=row["round_id"])[0]["n"]
        assert counted == row["known_after"]


def test_unchanged_pages_point_to_the_round_that_holds_their_content(three_rounds: Crawl) -> None:
    pages = three_rounds.rows(
        f"SELECT url, change_verdict, content_round_id, title FROM pages WHERE round_id = '{ROUND_IDS[2]}'"
    )
    verdicts = Counter(row["change_verdict"] for row in pages)
    assert verdicts["changed"] == 1
    assert verdicts["unchanged"] >= 10
    changed = next(row for row in pages if row["change_verdict"] == "changed")
    assert changed["url"].endswith(f"{HOSTS[1]}:{three_rounds.web.port}/page/1.html")
    assert changed["content_round_id"] == ROUND_IDS[2]
    assert "version 1" in changed["title"]
    for row in pages:
        if row["change_verdict"] == "unchanged":
            assert row["content_round_id"] < ROUND_IDS[2]


def test_robots_and_concurrency_as_the_server_saw_them(three_rounds: Crawl, served: Audit) -> None:
    assert set(served.max_concurrency().values()) == {1}
    assert served.disallowed_hits("recrawl") == []
    assert served.content_before_robots() == []
    denied = three_rounds.rows("SELECT state, last_outcome FROM urls WHERE url LIKE '%alpha.test%/page/3.html'")
    assert denied == [{"state": "denied", "last_outcome": "robots_denied"}]


def test_sitemaps_named_by_robots_txt_are_followed(three_rounds: Crawl) -> None:
    rows = three_rounds.rows(
        "SELECT link_kind, count(*) AS n FROM links WHERE link_kind = 'sitemap' GROUP BY link_kind"
    )
    assert rows and rows[0]["n"] >= 12
    sitemap = three_rounds.rows("SELECT state FROM urls WHERE url LIKE '%alpha.test%/sitemap.xml'")
    assert sitemap == [{"state": "fetched"}]


def test_every_warc_file_is_sound_and_listed(three_rounds: Crawl) -> None:
    listed = {row["warc_file"] for row in three_rounds.rows("SELECT warc_file FROM warc_files")}
    found = {
        name
        for round_id in ROUND_IDS[:3]
        for name in three_rounds.store.names(warc_folder(round_id))
        if name.endswith(".warc.gz")
    }
    assert listed == found
    assert found
    for name in found:
        assert check_warc(three_rounds.store.local_path(name)) == []


def test_pages_have_title_text_and_links(three_rounds: Crawl) -> None:
    page = three_rounds.rows(
        f"SELECT title, text, language, url_id FROM pages WHERE round_id = '{ROUND_IDS[0]}' "
        "AND url LIKE '%gamma.test%' LIMIT 1"
    )[0]
    assert page["title"] == "Page 0 of gamma.test"
    assert len(page["text"]) > 200
    links = three_rounds.rows(f"SELECT dst_host FROM links WHERE src_url_id = {page['url_id']}")
    assert {f"{host}:{three_rounds.web.port}" for host in HOSTS} == {row["dst_host"] for row in links}


def test_hosts_are_remembered(three_rounds: Crawl) -> None:
    hosts = three_rounds.rows("SELECT host, url_count, page_count, registered_domain, last_access_at FROM hosts")
    assert len(hosts) == len(HOSTS)
    counted = dict(
        (row["host"], row["n"]) for row in three_rounds.rows("SELECT host, count(*) AS n FROM urls GROUP BY host")
    )
    assert {row["host"]: row["url_count"] for row in hosts} == counted
    assert all(row["last_access_at"] is not None for row in hosts)
