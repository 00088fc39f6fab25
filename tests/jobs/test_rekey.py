"""rekey: rows that fall together, what named them, the laws, a kill half-way, and the way back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs import rekey
from jobs.rekey import preview
from jobs.seed import opening_row, require_same_rules
from recrawl.config.form import RoundForm
from recrawl.errors import LawBrokenError, RoundStateError
from recrawl.rank.aopic import Account, Ledger, effective_cash, imbalance
from recrawl.rank.merging import merged_columns_sql, merged_row
from recrawl.rank.transitions import PAYABLE_STATES
from recrawl.round_ledger import all_rounds, save_round
from recrawl.spark.application import Application
from recrawl.spark.undo import undo
from recrawl.tables.catalog import STATE_TABLES, TABLES
from recrawl.tables.vocabulary import RoundKind, RoundState, UrlState
from recrawl.urls.keys import bucket_of, url_id
from tests.jobs.crawl import (
    BUCKETS,
    DAY,
    NOW,
    ROUND,
    JobCrawl,
    frame,
    plain,
    row_of_content,
    row_of_host,
    row_of_outlinks,
    row_of_seed,
    row_of_url,
    settings,
)

pytestmark = pytest.mark.timeout(300)

INDEX = 1_000_000_007
UNSORTED = {"optional_rules": ["trailing_dot", "drop_param"]}
A = "http://a.test"
#: Two names of one page, both known; one that moves alone; names whose page is dead, or points to itself.
LATE, EARLY, ALONE, ALONE_NEW = f"{A}/p?b=2&a=1", f"{A}/p?a=1&b=2", f"{A}/q?z=1&c=2", f"{A}/q?c=2&z=1"
DEAD, LIVE = f"{A}/d?b=2&a=1", f"{A}/d?a=1&b=2"
HOP, LANDING = f"{A}/r?b=2&a=1", f"{A}/r?a=1&b=2"
COPY, HOME, OTHER = f"{A}/copy", f"{A}/", "http://b.test/"

URLS = [
    row_of_url(
        LATE, cash=500, lambda_index=7, history=90, history_at=NOW - 45 * DAY, fetch_count=3, inlinks=2, depth=4,
        content_checksum=11, last_success_at=NOW - DAY, seed_credit=1_000, etag='"x"', change_events=1.5,
    ),
    row_of_url(
        EARLY, state="new", cash=300, lambda_index=INDEX, inlinks=5, depth=1, seed_tag="ours", seed_credit=200,
        discovered_round="20261128T030000.000000Z", change_events=0.25,
    ),
    row_of_url(ALONE, cash=40, lambda_index=0, content_checksum=12, canonical_url_id=None),
    row_of_url(DEAD, state="gone"),
    row_of_url(LIVE, state="failing", cash=9, lambda_index=3),
    row_of_url(HOP, state="redirect", cash=0, lambda_index=INDEX, canonical_url_id=url_id(LANDING), next_fetch_at=NOW),
    row_of_url(LANDING, state="new", cash=70, lambda_index=INDEX),
    row_of_url(COPY, state="duplicate", cash=1, lambda_index=2, canonical_url_id=url_id(ALONE), content_checksum=12),
    row_of_url(HOME, cash=5, lambda_index=1),
    row_of_url(OTHER, cash=6, lambda_index=1),
]  # fmt: skip


def _accounts(rows: Sequence[dict[str, Any]]) -> list[Account]:
    return [
        Account(
            row.get("cash") or 0, row.get("history") or 0, row.get("history_at"), row.get("lambda_index") or 0,
            row["state"] in PAYABLE_STATES,
        )
        for row in rows
    ]  # fmt: skip


def _crawled(crawl: JobCrawl) -> Application:
    """A crawl of one closed round under rules that do not sort the query."""
    accounts = _accounts(URLS)
    ledger = Ledger(0, 12_345, INDEX, sum(account.payable for account in accounts))
    total = imbalance(accounts, ledger)
    outlinks = [
        row_of_outlinks(HOME, [LATE, EARLY, ALONE, OTHER], 6),
        row_of_outlinks(LATE, [EARLY, HOME], 2),
        row_of_outlinks(EARLY, [OTHER], 1) | {"links_round_id": "20261128T030000.000000Z"},
        row_of_outlinks(ALONE, [COPY], 1),
        row_of_outlinks(OTHER, [HOME], 1),
    ]
    crawl.know(
        urls=URLS,
        hosts=[row_of_host("a.test", url_count=9, index_names=[]), row_of_host("b.test", url_count=1, index_names=[])],
        contents=[row_of_content(12, ALONE), row_of_content(99, HOME)],
        outlinks=outlinks,
        seeds=[
            row_of_seed(LATE, credit_granted=1_000, tags=["one"], added_at=NOW - 2 * DAY, added_by="list"),
            row_of_seed(EARLY, credit_granted=200, scope="domain", tags=["two"], added_at=NOW - DAY, added_by="list"),
            row_of_seed(OTHER, credit_granted=6, tags=[], added_at=NOW, added_by="list"),
        ],
    )
    application = Application(settings(crawl.root, urls=UNSORTED))
    row = opening_row(application, RoundForm(), ROUND, [], NOW, application.configuration)
    versions = application.stored.versions(name for name in TABLES if name != "rounds")
    save_round(
        application.stored,
        row.with_values(
            round_state=str(RoundState.CLOSED), versions_at_close=versions, known_after=len(URLS), cash_after=total,
            lambda_cash=ledger.lambda_cash, lambda_index_after=INDEX, payable_urls=ledger.payable_urls,
            total_credit=total,
        ),
    )  # fmt: skip
    return application


def _state(application: Application) -> dict[str, list[Any]]:
    tables = application.tables
    return {
        name: plain(tables.read(name), *[column.name for column in TABLES[name].columns])
        for name in (*STATE_TABLES, "seeds")
    }


def test_rows_that_fall_together_become_one_and_all_that_named_them_follows(own_crawl: JobCrawl) -> None:
    before_rules = _crawled(own_crawl)
    before = _state(before_rules)
    configuration = settings(own_crawl.root)
    with pytest.raises(RoundStateError, match=r"ids: the rule sort_query is on\."):
        require_same_rules(configuration, all_rounds(before_rules.stored))
    seen = preview(configuration, 1)
    assert (seen.known, seen.moved) == (10, 4)
    assert seen.examples == ((DEAD, LIVE),)

    closed = rekey.rekey(configuration)

    # Then: the round says what it did, by the laws.
    application = Application(configuration)
    assert closed["round_kind"] == RoundKind.REKEY
    assert (closed["known_before"], closed["known_after"], closed["merged_urls"]) == (10, 7, 3)
    assert closed["cash_after"] == closed["cash_before"]
    rows = {row["url"]: row.asDict() for row in application.tables.read("urls").collect()}
    assert set(rows) == {EARLY, ALONE_NEW, LIVE, LANDING, COPY, HOME, OTHER}
    ledger = Ledger(int(closed["total_credit"]), int(closed["lambda_cash"]), INDEX, closed["payable_urls"])
    assert imbalance(_accounts(list(rows.values())), ledger) == 0
    for url, row in rows.items():
        assert row["url_id"] == url_id(url)
        assert row["bucket"] == bucket_of(row["host"], BUCKETS)
    # Then: the better state and its content are kept, the accounts added up.
    one = rows[EARLY]
    assert (one["state"], one["etag"], one["content_checksum"], one["request_url"]) == ("fetched", '"x"', 11, LATE)
    assert one["cash"] == 500 + INDEX - 7 + 300
    assert (one["history"], one["fetch_count"], one["inlinks"], one["seed_credit"]) == (90, 3, 7, 1_200)
    assert (one["depth"], one["seed_tag"], one["discovered_round"]) == (1, "ours", "20261128T030000.000000Z")
    assert one["change_events"] == 1.75
    assert rows[LIVE]["state"] == "failing"
    # Then: a redirect to what is the same page now is that page, due and without a representative.
    assert (rows[LANDING]["state"], rows[LANDING]["canonical_url_id"], rows[LANDING]["next_fetch_at"]) == (
        "new", None, None,
    )  # fmt: skip
    assert rows[COPY]["canonical_url_id"] == url_id(ALONE_NEW)
    # Then: outlinks, contents, hosts, seeds.
    outlinks = {row["src_url_id"]: row for row in application.tables.read("outlinks").collect()}
    assert set(outlinks) == set(map(url_id, (HOME, EARLY, ALONE_NEW, OTHER)))
    assert outlinks[url_id(HOME)]["dst_url_ids"] == sorted(map(url_id, (EARLY, ALONE_NEW, OTHER)))
    assert outlinks[url_id(HOME)]["outlink_count"] == 5
    assert outlinks[url_id(EARLY)]["dst_url_ids"] == [url_id(HOME)]
    assert plain(application.tables.read("contents"), "content_checksum", "first_url_id") == [
        (12, url_id(ALONE_NEW)), (99, url_id(HOME)),
    ]  # fmt: skip
    assert plain(application.tables.read("hosts"), "host", "url_count") == [("a.test", 6), ("b.test", 1)]
    assert plain(application.tables.read("seeds"), "url", "credit_granted", "scope", "tags") == [
        (EARLY, 1_200, "domain", ["one", "two"]), (OTHER, 6, "host", []),
    ]  # fmt: skip
    assert plain(application.tables.read("url_aliases"), "url", "alias_of_url") == sorted(
        [(LATE, EARLY), (ALONE, ALONE_NEW), (DEAD, LIVE), (HOP, LANDING)]
    )
    require_same_rules(configuration, all_rounds(application.stored))

    # When: taken back. Then: all is as it was, and the rules of before are those of the crawl.
    undo(configuration)
    assert _state(application) == before
    assert application.tables.read("url_aliases").count() == 0
    require_same_rules(before_rules.configuration, all_rounds(application.stored))


def test_a_killed_rekey_is_finished_and_older_aliases_follow(
    own_crawl: JobCrawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    _crawled(own_crawl)
    configuration = settings(own_crawl.root)
    undisturbed = own_crawl.copy(own_crawl.root.parent / "undisturbed")
    rekey.rekey(settings(undisturbed.root))

    # Given: one that dies after it has folded `urls`, and one that dies before it has staged anything.
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(rekey, "stage", die)
        rekey.rekey(configuration)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(rekey, "seed_changes", die)
        rekey.rekey(configuration)
    states = [row.state for row in all_rounds(own_crawl.stored)]
    assert states == [RoundState.CLOSED, RoundState.FOLDING]

    # When, then: it ends as the undisturbed one, in the same round.
    rekey.rekey(configuration)
    assert [row.state for row in all_rounds(own_crawl.stored)] == [RoundState.CLOSED] * 2
    own_id, other_id = (all_rounds(crawl.stored)[1].round_id for crawl in (own_crawl, undisturbed))
    assert str(_state(own_crawl.application)).replace(own_id, other_id) == str(_state(undisturbed.application))

    # When: a parameter is dropped besides. Then: what LATE has become has moved on, and its alias with it.
    rekey.rekey(settings(own_crawl.root, urls={"drop_parameters": ["b"]}))
    newest = (
        own_crawl.tables.read("url_aliases")
        .groupBy("url")
        .agg(F.max_by("alias_of_url", "round_id").alias("alias_of_url"))
    )
    assert ("http://a.test/p?b=2&a=1", "http://a.test/p?a=1") in plain(newest, "url", "alias_of_url")


def test_a_broken_law_leaves_the_crawl_untouched(own_crawl: JobCrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    application = _crawled(own_crawl)
    before = _state(application)
    configuration = settings(own_crawl.root)
    whole = rekey._after_images
    monkeypatch.setattr(
        rekey, "_after_images", lambda step, moved: whole(step, moved).withColumn("cash", F.expr("cash + 1"))
    )
    with pytest.raises(LawBrokenError, match="units of cash were held"):
        rekey.rekey(configuration)
    assert _state(application) == before
    monkeypatch.setattr(rekey, "_after_images", lambda step, moved: whole(step, moved).where(F.col("url") != ALONE_NEW))
    with pytest.raises(LawBrokenError, match="have not exactly one row"):
        rekey.rekey(configuration)
    assert _state(application) == before
    undo(configuration)
    assert _state(application) == before


def test_merged_rows_are_those_of_the_oracle(spark: SparkSession) -> None:
    draw = random.Random(5)
    groups: dict[int, list[dict[str, Any]]] = {}
    for group in range(60):
        for place in range(draw.randint(1, 4)):
            state = draw.choice(list(UrlState))
            payable = state in PAYABLE_STATES
            seen = draw.choice([None, NOW - draw.randint(0, 200) * DAY])
            url = f"{A}/{group}/{place}"
            groups.setdefault(group, []).append(
                row_of_url(
                    url, state=str(state), cash=draw.randint(0, 10**15) if payable else 0,
                    lambda_index=draw.randint(0, INDEX) if payable else 0, history=draw.randint(0, 10**15),
                    history_at=seen, last_success_at=draw.choice([None, NOW, NOW - timedelta(hours=1)]),
                    fetch_count=draw.randint(0, 3), change_count=draw.randint(0, 3), inlinks=draw.randint(0, 9),
                    seed_credit=draw.randint(0, 9), depth=draw.randint(0, 5), change_events=draw.random() * 10,
                    observed_days=draw.random() * 100, seed_tag=draw.choice(["", "x", "y"]),
                    manual_priority=draw.choice([0.5, 1.0, 2.0]), last_fetch_at=seen, etag=url,
                )
            )  # fmt: skip
    columns = [column.name for column in TABLES["urls"].columns if column.name != "bucket"]
    aggregates, merged = merged_columns_sql(columns, INDEX, 90 * 86_400, 7.0)
    members = frame(spark, "urls", [row | {"inlinks": row["inlinks"]} for rows in groups.values() for row in rows])
    found = (
        members.withColumn("page", F.expr("split(url, '/')[3]"))
        .withColumn("newest_history_at", F.expr("max(history_at) OVER (PARTITION BY page)"))
        .groupBy("page")
        .agg(*[F.expr(sql).alias(name) for name, sql in aggregates.items()])
        .selectExpr(*[f"{sql} AS {name}" for name, sql in merged.items()])
    )
    compared = [
        "url", "state", "etag", "cash", "lambda_index", "history", "history_at", "fetch_count", "change_count",
        "change_events", "observed_days", "change_rate_per_day", "seed_credit", "inlinks", "depth", "seed_tag",
        "manual_priority", "last_fetch_at", "last_success_at",
    ]  # fmt: skip
    expected = [merged_row(rows, INDEX, 90 * 86_400, 7.0) for rows in groups.values()]
    wanted = sorted((tuple(row[name] for name in compared) for row in expected), key=repr)
    assert plain(found, *compared) == wanted
    # Whatever is merged, no cash is lost where any of the rows can hold it.
    for rows, one in zip(groups.values(), expected, strict=True):
        held = sum(effective_cash(account, INDEX) for account in _accounts(rows))
        assert one["cash"] == held
        assert held == 0 or one["state"] in PAYABLE_STATES
