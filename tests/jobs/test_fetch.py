"""fetch: what a task is told of its hosts, and the tables that are built from journals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs.fetch import with_host_state, write_tables
from recrawl.fetch.journal import JOURNAL_SUFFIX, PartName, encode_line, time_text
from recrawl.urls.keys import url_id
from tests.jobs.crawl import (
    BEFORE,
    DAY,
    NOW,
    ROUND,
    JobCrawl,
    plain,
    row_of_fetch,
    row_of_host,
    row_of_plan,
    write,
)

EARLIER, LATER = "20261128T030000.000000Z", "20261201T030000.000000Z"
ONE, TWO, THREE = (f"http://one.test/{page}" for page in "123")
OTHER = "http://other.test:8080/"


def _line(table: str, **row: Any) -> bytes:
    text = {name: time_text(value) if hasattr(value, "isoformat") else value for name, value in row.items()}
    return encode_line(table, {"round_id": ROUND, **text})


def _fetch(url: str, attempt: int, outcome: str = "ok", **values: Any) -> bytes:
    zero = {"delay_ms_required": 0, "bytes_wire": 0, "bytes_body": 0, "revisit": False}
    return _line("fetches", **{**row_of_fetch(url, outcome), **zero, "attempt": attempt, **values})


def _visit(host: str, last_access_at: Any, **values: Any) -> bytes:
    defaults = {"requests": 1, "min_gap_ms": None, "errors": 0, "deferred": 0, "ips": [], "error_streak": 0}
    return _line("host_visits", host=host, last_access_at=last_access_at, **defaults | values)


def _robots(host: str, at: Any, body: str | None, outcome: str = "rules", scheme: str = "http") -> bytes:
    return _line(
        "robots", host=host, scheme=scheme, fetched_at=at, status=200, robots_outcome=outcome, body=body,
        body_digest=body and f"digest of {body}", expires_at=at + DAY, redirect_target=None, crawl_delay_seconds=None,
    )  # fmt: skip


def test_tables_are_built_from_the_journals_of_all_attempts(crawl: JobCrawl) -> None:
    # Given: a first attempt that published one part and was killed, a second one that went on, another partition.
    step = crawl.open()
    soon = NOW + timedelta(seconds=1, microseconds=234_567)
    first = [
        _robots("one.test", NOW, "old"),
        _fetch(ONE, 1, ended_at=soon, status=200, warc_file="w1", warc_offset=7),
        _visit("one.test", NOW, requests=3, min_gap_ms=900, errors=1, ips=["192.0.2.1"], error_streak=1,
               retry_after_seconds=30.0),
        _line("warc_files", warc_file="w1", bytes=10, records=2, sha256="s", first_date=NOW, last_date=NOW,
              published_at=soon),
    ]  # fmt: skip
    second = [
        _robots("one.test", soon, "new"),
        _robots("one.test", NOW, None, "allow_all", scheme="https"),
        _fetch(TWO, 2, "timeout", detail="no answer"),
        _line("skips", url_id=url_id(THREE), host="one.test", step="fetch", skip_reason="deadline"),
        _visit("one.test", soon, requests=2, min_gap_ms=700, deferred=1, ips=["192.0.2.2", "192.0.2.1"],
               retry_after_seconds=5.0, dns_ms=1.5),
    ]  # fmt: skip
    other = [_fetch(OTHER, 1, status=404, outcome="not_found"), _visit("other.test:8080", None, requests=0)]
    for lines, place in ((first, (0, 1, 0)), (second, (0, 2, 1)), (other, (1, 1, 0))):
        step.store.write_bytes(PartName(ROUND, *place).stored(JOURNAL_SUFFIX), b"".join(lines))
    step.store.write_bytes(PartName(ROUND, 0, 2, 2).stored(".cdxj"), b"not a journal")

    # When
    write_tables(step)

    # Then
    fetches = plain(step.slice("fetches"), "url", "attempt", "outcome", "ended_at", "status", "warc_offset", "final")
    assert fetches == [
        (ONE, 1, "ok", soon, 200, 7, True),
        (TWO, 2, "timeout", NOW, None, None, True),
        (OTHER, 1, "not_found", NOW, 404, None, True),
    ]
    assert plain(step.slice("skips"), "url_id", "step", "skip_reason") == [(url_id(THREE), "fetch", "deadline")]
    assert plain(step.slice("warc_files"), "warc_file", "published_at") == [("w1", soon)]
    # One robots.txt a scheme and host: the newest.
    assert plain(step.slice("robots"), "scheme", "host", "body", "fetched_at", "robots_outcome") == [
        ("http", "one.test", "new", soon, "rules"), ("https", "one.test", None, NOW, "allow_all"),
    ]  # fmt: skip
    # One visit a host: counts added, the least gap, the longest Retry-After; the rest as the last part left it.
    columns = ("host", "requests", "min_gap_ms", "errors", "deferred", "retry_after_seconds", "dns_ms", "error_streak")
    assert plain(step.slice("host_visits"), *columns, "last_access_at") == [
        ("one.test", 5, 700, 1, 1, 30.0, 1.5, 0, soon),
        ("other.test:8080", 0, None, 0, 0, None, None, 0, None),
    ]
    [(ips,)] = plain(step.slice("host_visits").where("host = 'one.test'"), "ips")
    assert sorted(ips) == ["192.0.2.1", "192.0.2.2"]


def test_a_round_without_journals_has_empty_slices(crawl: JobCrawl) -> None:
    step = crawl.open(LATER, number=2)
    write_tables(step)
    tables = ("fetches", "skips", "robots", "host_visits", "warc_files")
    assert [plain(step.slice(table), "round_id") for table in tables] == [[]] * 5


def test_only_the_first_row_of_a_host_carries_what_is_known_of_it(own_crawl: JobCrawl) -> None:
    # Given: a host seen before, whose robots.txt had rules once and could not be had the last time; a new one.
    def robots(round_id: str, at: Any, outcome: str, body: str | None, scheme: str = "http") -> dict[str, Any]:
        return {
            "round_id": round_id, "host": "one.test", "scheme": scheme, "fetched_at": at, "robots_outcome": outcome,
            "body": body, "body_digest": body and f"digest of {body}", "expires_at": at + DAY,
        }  # fmt: skip

    own_crawl.know(
        hosts=[row_of_host("one.test", ips=["192.0.2.1"], crawl_delay_seconds=4.0, error_streak=2, last_access_at=NOW)],
        robots=[
            robots(EARLIER, NOW - 2 * DAY, "rules", "the rules"),
            robots(EARLIER, NOW - 2 * DAY, "allow_all", None, scheme="https"),
            robots(BEFORE, NOW - DAY, "unreachable", None),
            robots(LATER, NOW + DAY, "rules", "of the future"),
        ],
    )
    step = own_crawl.open()
    plan = [row_of_plan(url, rank_in_host=place) for place, url in enumerate((ONE, TWO, THREE), start=1)]
    write(step, fetch_plan=[*plan, row_of_plan(OTHER, fetch_partition=1)])

    # When
    rows = {row["url"]: row for row in with_host_state(step, step.slice("fetch_plan")).collect()}

    # Then
    assert len(rows) == 4
    known = rows[ONE]["known_host"].asDict()
    assert known.pop("last_access_at").astimezone(NOW.tzinfo) == NOW
    assert known == {
        "ips": ["192.0.2.1"], "crawl_delay_seconds": 4.0, "adaptive_delay_seconds": None, "blocked_until": None,
        "error_streak": 2,
    }  # fmt: skip
    files = {file["scheme"]: file for file in rows[ONE]["known_robots"]}
    assert [files["http"][name] for name in ("outcome", "body", "digest")] == [
        "unreachable", "the rules", "digest of the rules",
    ]  # fmt: skip
    assert files["http"]["expires_at"].astimezone(NOW.tzinfo) == NOW  # of the last try
    assert files["http"]["fetched_at"].astimezone(NOW.tzinfo) == NOW - 2 * DAY  # of the rules: their age counts
    assert [files["https"][name] for name in ("outcome", "body")] == ["allow_all", None]
    for url in (TWO, THREE, OTHER):
        assert (rows[url]["known_host"], rows[url]["known_robots"]) == (None, None)
    assert rows[OTHER]["fetch_partition"] == 1
