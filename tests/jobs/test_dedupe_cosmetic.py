"""A page whose only change is its dynamic block: through dedupe and rank with filters and near-duplicates on."""

from __future__ import annotations

from datetime import timedelta

from jobs import dedupe, rank
from recrawl.assignment import save_step_summary
from recrawl.dedupe.url_filters import load_filter
from recrawl.rank.aopic import Ledger
from recrawl.round_ledger import find_round
from recrawl.tables.vocabulary import RoundState
from recrawl.urls.keys import url_id
from tests.jobs.crawl import (
    BEFORE,
    BUCKETS,
    DAY,
    NOW,
    ROUND,
    JobCrawl,
    plain,
    row_of_content,
    row_of_fetch,
    row_of_link,
    row_of_page,
    row_of_plan,
    row_of_url,
    write,
)

CLOCK, COPY, NEW = "http://a.test/clock", "http://a.test/copy", "http://a.test/new"
CREDIT = 10**12


def test_it_is_unchanged_to_freshness_and_its_links_are_taken(own_crawl: JobCrawl) -> None:
    # Given: a known page whose body changed and whose text did not; a copy of it whose body is another one.
    seen_at = {"last_success_at": NOW - 2 * DAY, "last_change_at": NOW - 9 * DAY, "change_count": 3}
    own_crawl.know(
        urls=[
            row_of_url(
                CLOCK, content_checksum=1, text_checksum=7, content_round_id=BEFORE, cash=CREDIT, change_events=1.0,
                observed_days=20.0, **seen_at,
            )
        ],
        contents=[{**row_of_content(7, CLOCK), "content_checksum": 1, "cluster_id": 7}],
    )  # fmt: skip
    step = own_crawl.open(ledger=Ledger(CREDIT, 0, 0, 1), known=1, dedupe={"bloom_filter": "on"})
    write(
        step,
        fetch_plan=[row_of_plan(CLOCK), row_of_plan(COPY)],
        fetches=[row_of_fetch(CLOCK, warc_file="w"), row_of_fetch(COPY, warc_file="w")],
        pages=[
            row_of_page(
                CLOCK, 2, text_checksum=7, change_verdict="cosmetic", content_round_id=BEFORE, outlink_count=1,
                kept_outlink_count=1,
            ),
            row_of_page(COPY, 3, text_checksum=7, content_round_id=ROUND),
        ],
        links=[row_of_link(CLOCK, NEW)],
        host_visits=[{"host": "a.test", "requests": 2}],
    )  # fmt: skip
    save_step_summary(step.store, ROUND, "frontier", {"richest_cash": 1})

    # When
    summary = dedupe.run(step)
    rank.run(step)

    # Then
    assert (summary["targets"], summary["new_urls"]) == (2, 1)
    closed = find_round(own_crawl.stored, ROUND)
    assert closed.state is RoundState.CLOSED
    assert (closed["outcomes_ok"], closed["outcomes_unchanged"]) == (1, 1)
    urls = step.tables.read("urls")
    clock = urls.where(f"url_id = {url_id(CLOCK)}")
    assert plain(clock, "content_checksum", "text_checksum", "content_round_id", "change_count", "last_change_at") == [
        (2, 7, BEFORE, 3, NOW - 9 * DAY)
    ]
    [(events, days)] = plain(clock, "change_events", "observed_days")
    assert (events, days) == (1.0, 20.0 + timedelta(days=2) / DAY)
    assert plain(urls, "url", "state", "canonical_url_id") == [
        (CLOCK, "fetched", None), (COPY, "duplicate", url_id(CLOCK)), (NEW, "new", None),
    ]  # fmt: skip
    assert plain(step.tables.read("contents"), "identity_checksum", "content_checksum", "first_url_id") == [
        (7, 1, url_id(CLOCK))
    ]
    assert plain(step.tables.read("outlinks"), "src_url_id", "dst_url_ids") == sorted(
        [(url_id(CLOCK), [url_id(NEW)]), (url_id(COPY), [])], key=repr
    )
    # The filters cover the table as the fold left it.
    version = own_crawl.stored.version("urls")
    for bucket in range(BUCKETS):
        kept = load_filter(step.store, bucket)
        assert kept is not None and kept.coverage.table_version == version
        own = [url_id(url) for url in (CLOCK, COPY, NEW) if url_id(url) % BUCKETS == bucket]
        assert all(kept.maybe_seen(own).to_pylist())
        assert len(kept) == len(own)
