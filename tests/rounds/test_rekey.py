"""A rule that is switched on after three rounds."""

from __future__ import annotations

import pytest

from jobs.rekey import rekey
from recrawl.errors import RoundStateError
from recrawl.spark.application import run_round
from recrawl.urls.keys import url_id
from tests.rounds.crawl import HOSTS, ROUND_IDS, Crawl, audit_of_cash

#: Whole rounds, on a machine that may be busy.
pytestmark = pytest.mark.timeout(1200)


def test_known_urls_move_and_the_next_round_goes_on(copy_of_three_rounds: Crawl) -> None:
    crawl, form = copy_of_three_rounds, copy_of_three_rounds.form()
    _, main, alias = (f"{host}:{crawl.web.port}" for host in HOSTS)
    sections = {"urls": {"site_rules": [f"alias {alias} {main}"]}}
    before = crawl.rows("SELECT count(*) AS n FROM urls")[0]["n"]
    of_alias = crawl.rows(f"SELECT count(*) AS n FROM urls WHERE host = '{alias}'")[0]["n"]

    # Given: a round under the new rule does not open, and leaves nothing behind.
    with pytest.raises(RoundStateError, match=r"ids: 'alias gamma\.test:\d+ beta\.test:\d+' holds\."):
        run_round(crawl.configuration(form, **sections), form, ROUND_IDS[3])
    assert len(crawl.rows("SELECT * FROM rounds")) == 3

    # When
    closed = rekey(crawl.configuration(**sections))

    # Then: the laws hold over every row, and nothing names what is no more.
    held, granted = audit_of_cash(crawl)
    assert held == granted == 3 * 10**12
    rows = crawl.rows("SELECT url, url_id, host, canonical_url_id FROM urls")
    assert len(rows) == closed["known_after"] == before - closed["merged_urls"]
    assert closed["merged_urls"] >= 12
    assert alias not in {row["host"] for row in rows}
    assert all(row["url_id"] == url_id(row["url"]) for row in rows)
    aliases = crawl.rows("SELECT url_id, alias_of_url_id FROM url_aliases")
    gone, known = {row["url_id"] for row in aliases}, {row["url_id"] for row in rows}
    assert len(aliases) == of_alias
    assert {row["alias_of_url_id"] for row in aliases} <= known
    named = crawl.rows("SELECT src_url_id, dst_url_ids FROM outlinks")
    named_ids = {row["src_url_id"] for row in named} | {target for row in named for target in row["dst_url_ids"]}
    assert named_ids | {row["canonical_url_id"] for row in rows} - {None} <= known
    assert not gone & {row["first_url_id"] for row in crawl.rows("SELECT first_url_id FROM contents")}
    counts = {row["host"]: row["url_count"] for row in crawl.rows("SELECT host, url_count FROM hosts")}
    assert counts[alias] == 0
    assert sum(counts.values()) == len(rows)

    # When: the next round runs under the rule. Then: it finds nothing new and leaves the alias alone.
    crawl.web.clear_log()
    run_round(crawl.configuration(form, **sections), form, ROUND_IDS[3])
    row = crawl.rows(f"SELECT * FROM rounds WHERE round_id = '{ROUND_IDS[3]}'")[0]
    assert (row["round_state"], row["new_urls"], row["known_after"]) == ("closed", 0, len(rows))
    assert row["planned"] == row["fetched"] + row["skipped_after_plan"] > 20
    assert HOSTS[2] not in {hit.host for hit in crawl.web.log}
    held, granted = audit_of_cash(crawl)
    assert held == granted == 3 * 10**12
    marks = crawl.rows(f"SELECT mirror_of FROM hosts WHERE host = '{alias}'")
    assert marks == [{"mirror_of": main}]
