"""rank: a small round of every kind of event, row by row against the oracle; its laws."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame

from jobs import dedupe, rank
from jobs.rank_laws import Figures, check_laws
from recrawl.assignment import save_step_summary
from recrawl.errors import LawBrokenError
from recrawl.rank import aopic, transitions
from recrawl.rank.aopic import Account, Ledger, Links, RoundEvents, apply_round, imbalance, lambda_parts
from recrawl.rank.change_rate import (
    ChangeEvidence,
    observe,
)
from recrawl.round_ledger import Round, find_round
from recrawl.spark.application import Step
from recrawl.tables.vocabulary import RoundState
from recrawl.urls.keys import url_id
from tests.jobs.crawl import (
    BEFORE,
    DAY,
    NOW,
    ROUND,
    JobCrawl,
    plain,
    row_of_content,
    row_of_fetch,
    row_of_link,
    row_of_outlinks,
    row_of_page,
    row_of_plan,
    row_of_seed,
    row_of_url,
    write,
)

pytestmark = pytest.mark.timeout(300)

WINDOW_SECONDS = 90 * 86_400
PARTS = lambda_parts(0.1)
CREDIT = 10**12
INDEX = 7_000_000_007
RICHEST = 10**9


def _at(path: str) -> str:
    return f"http://a.test/{path}"


HOME, COPY, SAME, FAILED, LATE, STILL, TARGET, NEW = map(
    _at, ("", "copy", "same", "failed", "late", "still", "target", "new")
)
MOVED, MOVED_AWAY, MOVED_TWICE, MIDDLE, HERE, THERE = map(
    _at, ("moved", "moved-away", "moved-twice", "middle", "here", "there")
)
VANISHED, DENIED, DEAD, REFUSED = map(_at, ("vanished", "denied", "dead", "refused"))
SEED, WAITING_SEED, RAISED_SEED = (f"http://{name}.test/" for name in ("seed", "waiting", "raised"))

ACCOUNTS = {
    HOME: Account(3 * CREDIT + 1, 5 * CREDIT, NOW - 10 * DAY, INDEX - 401),
    COPY: Account(CREDIT // 3, 7, NOW - 100 * DAY, 0),
    SAME: Account(2 * CREDIT, CREDIT, NOW - 120 * DAY, INDEX),
    FAILED: Account(11, 0, None, 5),
    REFUSED: Account(17, 0, None, 6),
    LATE: Account(13, 0, None, INDEX),
    STILL: Account(CREDIT, 0, None, 0),
    TARGET: Account(0, 0, None, INDEX - 1),
    MOVED: Account(CREDIT // 7, 0, None, 1),
    MOVED_AWAY: Account(CREDIT // 9, 0, None, 2),
    MOVED_TWICE: Account(CREDIT // 11, 0, None, 3),
    MIDDLE: Account(0, 99, NOW - DAY, 3),
    HERE: Account(500, 0, None, INDEX),
    THERE: Account(700, 0, None, INDEX),
    VANISHED: Account(CREDIT // 13, 17, NOW - 30 * DAY, 4),
    DENIED: Account(CREDIT // 17, 0, None, 4),
    DEAD: Account(payable=False),
    RAISED_SEED: Account(CREDIT, 0, None, 0),
}
STATES = {
    FAILED: "failing", REFUSED: "new", LATE: "new", TARGET: "new", MOVED: "redirect", MIDDLE: "duplicate",
    VANISHED: "failing", DENIED: "new", DEAD: "gone",
}  # fmt: skip
CREDITS = {SEED: 2 * CREDIT, WAITING_SEED: CREDIT, RAISED_SEED: 3 * CREDIT}

#: Who redirects where; the target of MOVED_AWAY was turned away, so no link tells it.
REDIRECTS = {MOVED: TARGET, MOVED_AWAY: None, MOVED_TWICE: MIDDLE, HERE: THERE, THERE: HERE}

EVENTS = RoundEvents(
    captures={
        url_id(HOME): Links(5, frozenset(map(url_id, (COPY, NEW, DEAD, DENIED)))),
        url_id(SAME): Links(4, frozenset(map(url_id, (HOME, TARGET)))),
        url_id(SEED): Links(0, frozenset()),
    },
    moves={
        url_id(COPY): url_id(HOME),
        **{url_id(source): target and url_id(target) for source, target in REDIRECTS.items()},
    },  # type: ignore[arg-type]
    terminal=frozenset({url_id(VANISHED), url_id(DENIED)}),
    credits={url_id(SEED): 2 * CREDIT, url_id(WAITING_SEED): CREDIT, url_id(RAISED_SEED): 2 * CREDIT},
    representatives={url_id(MIDDLE): url_id(HOME)},
)


def _ledger() -> Ledger:
    payable = sum(account.payable for account in ACCOUNTS.values())
    ledger = Ledger(0, 12_345, INDEX, payable)
    return replace(ledger, total_credit=imbalance(ACCOUNTS.values(), ledger))


def _url(url: str, account: Account) -> dict[str, Any]:
    values: dict[str, Any] = {"state": STATES.get(url, "fetched"), "cash": account.cash, "history": account.history}
    values |= {"history_at": account.history_at, "lambda_index": account.lambda_index}
    if url == VANISHED:
        values |= {"failure_streak": 2, "last_outcome": "not_found", "last_fetch_at": NOW - 3 * DAY}
    if url == MIDDLE:
        values["canonical_url_id"] = url_id(HOME)
    if url == RAISED_SEED:
        values["seed_credit"] = CREDIT
    if url in (HOME, SAME):
        values |= {"last_success_at": NOW - 10 * DAY, "content_checksum": 9, "fetch_count": 4, "change_events": 1.5}
        values |= {"observed_days": 30.0, "inlinks": 2}
    return row_of_url(url, **values)


@pytest.fixture(scope="module")
def step(crawl: JobCrawl) -> Step:
    """The round, fetched and parsed."""
    crawl.know(
        urls=[_url(url, account) for url, account in ACCOUNTS.items()],
        seeds=[row_of_seed(url, credit_granted=credit) for url, credit in CREDITS.items()],
        outlinks=[row_of_outlinks(SAME, [HOME, TARGET], 4)],
        contents=[row_of_content(9, SAME)],
    )
    opened = crawl.open(ledger=_ledger(), known=len(ACCOUNTS))
    answers = {FAILED: "timeout", VANISHED: "not_found", DENIED: "robots_denied", SAME: "not_modified"}
    answers |= dict.fromkeys((HOME, COPY, SEED, REFUSED), "ok") | dict.fromkeys(REDIRECTS, "redirect")
    modified = {"etag": '"new"', "last_modified": "Sun, 29 Nov 2026 12:00:00 GMT"}
    captured = {"warc_file": "w", "warc_record_id": "<1>", "payload_digest": "sha1:X", **modified}
    write(
        opened,
        fetch_plan=[row_of_plan(url, depth=1) for url in (*answers, LATE)],
        fetches=[
            row_of_fetch(url, outcome, status=200, **(captured if outcome == "ok" else {}))
            for url, outcome in answers.items()
        ],
        skips=[
            {"url_id": url_id(LATE), "host": "a.test", "step": "fetch", "skip_reason": "deadline"},
            {"url_id": url_id(STILL), "host": "a.test", "step": "frontier", "skip_reason": "capacity"},
        ],
        pages=[
            row_of_page(HOME, 10, change_verdict="changed", outlink_count=5, kept_outlink_count=4),
            row_of_page(COPY, 10, outlink_count=7, kept_outlink_count=1, depth=1),
            row_of_page(SAME, 9, change_verdict="unchanged", outlink_count=4, kept_outlink_count=2, depth=1,
                        content_round_id=BEFORE),
            row_of_page(SEED, 30, outlink_count=0, kept_outlink_count=0),
            # A page that asks to prove that one is no robot, answered with 200.
            row_of_page(REFUSED, None, parse_outcome="refused", outlink_count=2, kept_outlink_count=1),
        ],
        links=[
            *[row_of_link(HOME, target, position=place) for place, target in enumerate((COPY, NEW, DEAD, DENIED))],
            row_of_link(COPY, STILL),
            row_of_link(REFUSED, STILL),
            *[row_of_link(source, to, link_kind="redirect") for source, to in REDIRECTS.items() if to],
        ],
        warc_files=[{"warc_file": "w", "bytes": 1_000, "records": 9}],
        host_visits=[
            {"host": "a.test", "requests": 12, "connect_ms": 12.5, "first_byte_ms": 80.0},
            {"host": "seed.test", "requests": 1},
        ],
    )  # fmt: skip
    save_step_summary(opened.store, ROUND, "frontier", {"richest_cash": RICHEST, "value_cutoff": 0.25})
    return opened


def _accounts(urls: DataFrame) -> dict[int, Account]:
    rows = plain(urls, "url_id", "cash", "history", "history_at", "lambda_index", "state")
    return {row[0]: Account(*row[1:5], payable=row[5] in transitions.PAYABLE_STATES) for row in rows}


def test_a_round_moves_cash_as_the_oracle_says_and_not_otherwise(step: Step) -> None:
    opening = {url_id(url): account for url, account in ACCOUNTS.items()}
    expected, ledger = apply_round(
        opening, _ledger(), EVENTS, now=NOW, parts=PARTS, window_seconds=WINDOW_SECONDS, richest=RICHEST
    )
    assert ledger.lambda_index > INDEX  # Lambda pays out
    # The oracle leaves the row of a failed try alone; the job settles it: the same cash at the round's index.
    for url in (FAILED, REFUSED):
        failed = ACCOUNTS[url]
        expected[url_id(url)] = replace(failed, cash=aopic.effective_cash(failed, INDEX), lambda_index=INDEX)
    versions = step.application.stored.versions(("urls", "hosts"))
    dedupe.run(step)

    # When rows were lost on the way, the round is refused, and nothing that the next one reads has changed.
    discovered, schema = step.slice("discovered").collect(), step.slice("discovered").schema
    lost = [row for row in discovered if row["url_id"] != url_id(DEAD)]
    assert len(lost) == len(discovered) - 1
    step.write("discovered", step.spark.createDataFrame(lost, schema))
    write(step, skips=[{"url_id": url_id(LATE + "r"), "host": "a.test", "step": "fetch", "skip_reason": "deadline"}])
    with pytest.raises(LawBrokenError) as refusal:
        rank.run(step)
    sentences = str(refusal.value)
    assert "14 URLs were planned, 13 have a final row and 1 a skip; 2 have not exactly one" in sentences
    assert "units of cash were held" in sentences
    assert "units of credit were ever granted" in sentences
    assert step.application.stored.versions(("urls", "hosts")) == versions
    assert find_round(step.application.stored, ROUND).state is RoundState.OPEN

    # When they are there, the round is folded and closed.
    step.write("discovered", step.spark.createDataFrame(discovered, schema))
    write(step, skips=[{"url_id": url_id(LATE), "host": "a.test", "step": "fetch", "skip_reason": "deadline"}])
    summary = rank.run(step)
    assert summary == {
        "round_state": "closed", "known_after": len(ACCOUNTS) + 3, "new_urls": 3, "fetched": 13,
        "skipped_after_plan": 1, "payable_urls": ledger.payable_urls,
    }  # fmt: skip

    # Then every row of the table holds what the oracle says, and so does the ledger.
    urls = step.tables.read("urls")
    assert _accounts(urls) == expected
    closed = find_round(step.application.stored, ROUND)
    columns = ("total_credit", "lambda_cash", "lambda_index_after", "payable_urls")
    assert [int(closed[name]) for name in columns] == [
        ledger.total_credit, ledger.lambda_cash, ledger.lambda_index, ledger.payable_urls,
    ]  # fmt: skip
    assert imbalance(_accounts(urls).values(), ledger) == 0
    figures = ("planned", "fetched", "known_before", "known_after", "outcomes_ok", "outcomes_unchanged")
    assert [closed[name] for name in figures] == [14, 13, len(ACCOUNTS), len(ACCOUNTS) + 3, 3, 1]
    assert (closed["outcomes_failed"], closed["warc_bytes"], closed["value_cutoff"]) == (4, 1_000, 0.25)
    assert closed["versions_at_close"]["urls"] == step.application.stored.version("urls")
    _check_states(urls)
    _check_other_tables(step)


def _check_states(urls: DataFrame) -> None:
    touched = plain(urls.where(f"last_round_id = '{ROUND}'"), "url", "state", "failure_streak", "canonical_url_id")
    assert touched == sorted(
        [
            (HOME, "fetched", 0, None),
            (COPY, "duplicate", 0, url_id(HOME)),
            (SAME, "fetched", 0, None),
            (FAILED, "failing", 1, None),
            (REFUSED, "failing", 1, None),
            (TARGET, "new", 0, None),
            (NEW, "new", 0, None),
            (MOVED, "redirect", 0, url_id(TARGET)),
            (MOVED_AWAY, "redirect", 0, None),
            (MOVED_TWICE, "redirect", 0, url_id(HOME)),
            (HERE, "redirect", 0, min(url_id(HERE), url_id(THERE))),
            (THERE, "redirect", 0, min(url_id(HERE), url_id(THERE))),
            (VANISHED, "gone", 3, None),
            (DENIED, "denied", 1, None),
            (DEAD, "gone", 0, None),
            (SEED, "fetched", 0, None),
            (WAITING_SEED, "new", 0, None),
            (RAISED_SEED, "fetched", 0, None),
        ],
        key=repr,
    )
    home = urls.where(f"url_id = {url_id(HOME)}")
    assert plain(home, "content_checksum", "fetch_count", "change_count", "inlinks", "etag", "last_warc_file") == [
        (10, 5, 1, 2, '"new"', "w")
    ]
    evidence = ChangeEvidence(1.5, 30.0)
    modified = NOW.replace(day=29, hour=12)
    evidence = observe(
        evidence, changed=True, previous_visit_at=NOW - 10 * DAY, visited_at=NOW, first_interval_days=7.0,
        last_modified_at=modified,
    )  # fmt: skip
    assert plain(home, "change_events", "observed_days", "change_rate_per_day") == [
        pytest.approx((evidence.change_events, evidence.observed_days, evidence.rate_per_day(7.0)))
    ]
    same = urls.where(f"url_id = {url_id(SAME)}")
    assert plain(same, "content_checksum", "content_round_id", "fetch_count", "etag") == [(9, BEFORE, 5, None)]
    seeds = urls.where("seed_credit > 0")
    assert plain(seeds, "url", "seed_credit") == [
        (RAISED_SEED, 3 * CREDIT), (SEED, 2 * CREDIT), (WAITING_SEED, CREDIT),
    ]  # fmt: skip
    # A failing page is tried again in an hour, the target of a redirect in the next round.
    [(due,)] = plain(urls.where(f"url_id = {url_id(FAILED)}"), "next_fetch_at")
    assert NOW + timedelta(minutes=54) <= due <= NOW + timedelta(minutes=66)
    assert plain(urls.where(f"url_id = {url_id(TARGET)}"), "next_fetch_at") == [(None,)]


def _check_other_tables(step: Step) -> None:
    assert plain(step.tables.read("contents"), "content_checksum", "first_url_id", "first_round_id") == [
        (10, url_id(HOME), ROUND), (30, url_id(SEED), ROUND), (9, url_id(SAME), BEFORE),
    ]  # fmt: skip
    outlinks = plain(step.tables.read("outlinks"), "src_url_id", "dst_url_ids", "links_round_id")
    assert outlinks == sorted(
        [
            (url_id(HOME), sorted(map(url_id, (COPY, NEW, DEAD, DENIED))), ROUND),
            (url_id(COPY), [url_id(STILL)], ROUND),
            (url_id(SAME), sorted(map(url_id, (HOME, TARGET))), BEFORE),
            (url_id(SEED), [], ROUND),
        ],
        key=repr,
    )
    hosts = plain(step.tables.read("hosts"), "host", "registered_domain", "url_count", "page_count", "duplicate_count")
    assert hosts == [
        ("a.test", "a.test", 1, 3, 1),
        ("seed.test", "seed.test", 1, 1, 0),
        ("waiting.test", "waiting.test", 1, 0, 0),
    ]
    measured = plain(step.tables.read("hosts"), "host", "connect_ms", "first_byte_ms")
    assert measured == [("a.test", 12.5, 80.0), ("seed.test", None, None), ("waiting.test", None, None)]


HOLDING = Figures(
    planned=5, fetched=3, skipped=2, not_once=0, new_urls=4, known_after=9, misjudged_new=0, cash_held=70,
    cash_staged=60, cash_to_lambda=10, credit_granted=7, cash_after=107, lambda_cash=20, payable_urls=8,
    total_credit=107, outcomes_ok=1, outcomes_unchanged=1, outcomes_failed=1, warc_bytes=0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        ({"not_once": 1}, "5 URLs were planned, 3 have a final row and 2 a skip; 1 have not exactly one"),
        ({"skipped": 1}, "5 URLs were planned, 3 have a final row and 1 a skip; 0 have not exactly one"),
        ({"misjudged_new": 2}, "2 staged URLs are new and known at once, or staged twice"),
        ({"cash_staged": 59}, "70 units of cash were held, 59 are staged and 10 went to Lambda"),
        ({"credit_granted": 8}, "cash was 100, 8 were granted, but 107 are there"),
        ({"total_credit": 108}, "108 units of credit were ever granted, 107 are there"),
    ],
)
def test_each_law_has_its_sentence(broken: dict[str, int], sentence: str) -> None:
    row = Round({"cash_before": 100})
    assert check_laws(row, HOLDING) == []
    assert check_laws(row, replace(HOLDING, **broken)) == [sentence]


# -- The SQL of each formula against its Python.
