"""A fetch partition against the misbehaving web: rows, captures, redirects, robots.txt, limits."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recrawl.errors import PartitionLostError
from recrawl.fetch.journal import load_journal_rows
from recrawl.fetch.partition import HostRecord, KnownHost, StoredRobots
from recrawl.fetch.work import PlannedUrl
from recrawl.inbox import request_stop
from recrawl.rounds import progress_folder
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES
from recrawl.tables.vocabulary import RobotsOutcome, Scope
from recrawl.urls.keys import content_checksum, url_id
from recrawl.urls.scope import ScopeSet
from recrawl.warc.check import check_warc
from recrawl.warc.reader import StoredCapture, read_capture
from tests.fetch.crawl import (
    ROUND_ID,
    configuration,
    fetch,
    final_rows,
    logged,
    plan_of,
    planned,
    rows,
    settled_once,
    task_of,
)
from tests.web import MisbehavingWeb

HOST = "a.test"


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingWeb]:
    with MisbehavingWeb([HOST, "b.test", "www.a.test"], pages=12) as running:
        yield running


@pytest.fixture
def web(server: MisbehavingWeb) -> MisbehavingWeb:
    for host in (HOST, "b.test", "www.a.test"):
        server.site(host, robots=404, robots_behaviour="", delay_seconds=0.0)
    server.clear_log()
    return server


@pytest.fixture
def hosts_file(web: MisbehavingWeb, tmp_path: Path) -> Path:
    return web.hosts_file(tmp_path / "hosts")


def captured(root: Path, row: dict[str, Any]) -> StoredCapture:
    with (root / row["warc_file"]).open("rb") as file:
        return read_capture(file, row["warc_offset"], 10 << 20)


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_pages_are_captured_with_all_that_rows_need(
    web: MisbehavingWeb, hosts_file: Path, tmp_path: Path, engine: str
) -> None:
    settings = configuration(tmp_path, hosts_file, engine=engine)
    paths = ["/", "/page/1.html", "/odd/encoded?as=gzip", "/odd/encoded?as=br", "/odd/chunked", "/odd/status?code=404"]
    plan = plan_of(web.url(HOST, path) for path in paths)
    summary = fetch(task_of(settings), plan)
    assert (summary.planned, summary.final, summary.skipped, summary.errors) == (6, 6, 0, 0)
    assert summary.requests == 7  # robots.txt too
    assert settled_once(settings, plan)
    for table in ("fetches", "host_visits", "robots", "warc_files"):
        for row in rows(settings, table):
            assert set(row) == {name.rstrip("?") for name in TABLES[table].column_names}
            for column in TABLES[table].columns:
                assert row[column.name] is not None or TABLES[table].nullable(column.name), column.name
    for path, row in final_rows(settings).items():
        capture = captured(tmp_path, row)
        assert capture.url == web.url(HOST, path)
        assert row["content_checksum"] == content_checksum(capture.body)
        assert row["bytes_body"] == len(capture.body)
        assert row["payload_digest"] == capture.payload_digest
        assert row["ip"] == "127.0.0.1"
        assert row["outcome"] == ("not_found" if "404" in path else "ok")
    for warc_file in summary.warc_files:
        assert check_warc(tmp_path / warc_file) == []
    (visit,) = rows(settings, "host_visits")
    assert (visit["requests"], visit["errors"], visit["deferred"]) == (7, 0, 0)
    progress = json.loads((tmp_path / progress_folder(ROUND_ID) / "p00000.json").read_text())
    assert (progress["planned"], progress["fetched"], progress["hosts_waiting"]) == (6, 6, 0)
    assert not (tmp_path / "spool").exists() or not any((tmp_path / "spool").iterdir())


def test_limits_are_kept_and_marked(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    # Making a bomb keeps the test web busy for a second or more before its first byte.
    settings = configuration(
        tmp_path, hosts_file, max_errors_in_a_row=100, read_timeout_seconds=5, total_timeout_seconds=10
    )
    bombs = [f"/odd/bomb?as={name}&mb=50" for name in ("gzip", "br", "zstd", "deflate")]
    paths = [*bombs, "/odd/endless?mb=200", "/odd/partial", "/odd/stall", "/odd/hang", "/odd/endless-headers?mb=50"]
    plan = plan_of((web.url(HOST, path) for path in paths), max_bytes=1 << 20)
    fetch(task_of(settings), plan)
    final = final_rows(settings)
    assert {path: (row["outcome"], row["truncated"]) for path, row in final.items()} == dict.fromkeys(
        [*bombs, "/odd/endless?mb=200"], ("ok", "length")
    ) | {
        "/odd/partial": ("ok", "disconnect"), "/odd/stall": ("timeout", "time"), "/odd/hang": ("timeout", None),
        "/odd/endless-headers?mb=50": ("protocol_error", None),
    }  # fmt: skip
    assert {final[path]["bytes_body"] for path in bombs} == {final["/odd/endless?mb=200"]["bytes_wire"]} == {1 << 20}
    assert settled_once(settings, plan)
    assert check_warc(tmp_path / rows(settings, "warc_files")[0]["warc_file"]) == []


def test_redirects_are_recorded_hop_by_hop(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    settings = configuration(tmp_path, hosts_file)
    paths = {
        "chain": "/odd/chain?n=4", "long": "/odd/endless-redirects", "loop": "/odd/loop", "cookie": "/odd/cookie-wall",
        "none": "/odd/redirect", "planned": "/odd/redirect?to=/page/3.html", "page": "/page/3.html",
        "other": "/odd/redirect?to=http://b.test:1/", "crlf": "/odd/redirect-crlf",
        "www": f"/odd/redirect?to=http://www.a.test:{web.port}/page/2.html",
        "again": f"/odd/redirect?code=301&to=http://www.a.test:{web.port}/page/2.html",
    }  # fmt: skip
    plan = plan_of(web.url(HOST, path) for path in paths.values())
    fetch(task_of(settings), plan)
    assert settled_once(settings, plan)
    final = {name: final_rows(settings)[path] for name, path in paths.items()}
    outcomes = {name: (row["hop"], row["outcome"]) for name, row in final.items()}
    assert outcomes == {
        "chain": (4, "ok"), "long": (5, "too_many_redirects"), "loop": (3, "too_many_redirects"),
        "cookie": (0, "too_many_redirects"), "none": (0, "invalid_url"), "planned": (0, "redirect"), "page": (0, "ok"),
        "other": (0, "redirect"), "crlf": (1, "not_found"), "www": (1, "ok"), "again": (0, "redirect"),
    }  # fmt: skip
    assert final["www"]["url"] == web.url("www.a.test", "/page/2.html")
    assert final["www"]["url_id"] == url_id(web.url("www.a.test", "/page/2.html"))
    assert final["other"]["redirect_url"] == "http://b.test:1/"
    assert web.audit().repeated() == {}
    hops = [row for row in rows(settings, "fetches") if row["planned_url_id"] == plan[0].url_id]
    assert [(row["hop"], row["final"], row["outcome"]) for row in hops] == [
        *((hop, False, "redirect") for hop in range(4)),
        (4, True, "ok"),
    ]
    assert [row["redirect_url"] for row in hops[:4]] == [row["url"] for row in hops[1:]]


def test_hops_pass_scope_filters_and_robots(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    web.site(HOST, robots="User-agent: *\nDisallow: /page/3.html\n")
    settings = configuration(tmp_path, hosts_file)
    www = f"http://www.a.test:{web.port}/"
    plan = plan_of(web.url(HOST, f"/odd/redirect?to={to}") for to in ("/page/3.html", www, "/x.zip"))
    fetch(task_of(settings, scope=ScopeSet([(Scope.HOST, web.url(HOST))])), plan)
    denied, out_of_scope, filtered = final_rows(settings).values()
    assert (denied["hop"], denied["outcome"], denied["robots_rule"]) == (1, "robots_denied", "Disallow: /page/3.html")
    assert (out_of_scope["outcome"], out_of_scope["detail"]) == ("redirect", "Not followed: out of scope.")
    assert filtered["outcome"] == "redirect" and "extension" in filtered["detail"]
    assert web.hits("www.a.test") == []
    assert web.audit().disallowed_hits("recrawl") == []


def test_robots_come_first_and_bind(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    web.site(HOST, robots="\ufeffUser-agent: *\nDisallow: /page/1\nAllow: /page/11\n")
    web.site("b.test", robots=503)
    web.site("www.a.test", robots_behaviour=f"/odd/redirect?to=http://{HOST}:{web.port}/robots.txt")
    settings = configuration(tmp_path, hosts_file)
    paths = ("/page/1.html", "/page/2.html", "/page/11.html")
    plan = plan_of(web.url(host, path) for host in (HOST, "b.test", "www.a.test") for path in paths)
    fetch(task_of(settings), plan)
    assert settled_once(settings, plan)
    found = {(row["host"].partition(":")[0], row["url"][-7:-5]): row for row in rows(settings, "fetches")}
    assert {key: row["outcome"] for key, row in found.items()} == {
        (HOST, "/1"): "robots_denied", (HOST, "/2"): "ok", (HOST, "11"): "ok",
        ("b.test", "/1"): "robots_unavailable", ("b.test", "/2"): "robots_unavailable",
        ("b.test", "11"): "robots_unavailable",
        ("www.a.test", "/1"): "robots_denied", ("www.a.test", "/2"): "ok", ("www.a.test", "11"): "ok",
    }  # fmt: skip
    assert found[HOST, "11"]["robots_rule"] == "Allow: /page/11"
    robots = {row["host"].partition(":")[0]: row for row in rows(settings, "robots")}
    assert {host: row["robots_outcome"] for host, row in robots.items()} == {
        HOST: "rules", "b.test": "unreachable", "www.a.test": "rules",
    }  # fmt: skip
    assert robots["www.a.test"]["redirect_target"] == web.url(HOST, "/robots.txt")
    assert found[HOST, "11"]["robots_digest"] == robots[HOST]["body_digest"]
    assert web.audit().content_before_robots() == web.audit().disallowed_hits("recrawl") == []
    assert [hit.path for hit in web.hits("b.test")] == ["/robots.txt"] * 3  # asked again, with back-off


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        ("/odd/hang", "robots_unavailable"),
        ("/odd/drop", "robots_unavailable"),
        ("/odd/nonsense", "robots_unavailable"),
        ("/odd/endless-redirects", "ok"),
        ("/odd/robots-html", "ok"),
        ("/odd/status?code=403", "ok"),
        ("/odd/redirect?to=http://127.0.0.1.nowhere.invalid/robots.txt", "robots_unavailable"),
    ],
)
def test_odd_robots(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path, behaviour: str, outcome: str) -> None:
    web.site(HOST, robots_behaviour=behaviour)
    settings = configuration(tmp_path, hosts_file)
    plan = plan_of([web.url(HOST, "/page/1.html"), web.url(HOST, "/page/2.html")])
    fetch(task_of(settings), plan)
    assert {row["outcome"] for row in rows(settings, "fetches")} == {outcome}
    assert settled_once(settings, plan)


def test_known_robots_are_not_asked_for_and_stale_ones_stand_in(
    web: MisbehavingWeb, hosts_file: Path, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    rules = "User-agent: *\nDisallow: /page/1.html\n"
    web.site("b.test", robots=500)
    settings = configuration(tmp_path, hosts_file)
    fresh = StoredRobots(RobotsOutcome.RULES, rules, None, now + timedelta(hours=1), now - timedelta(hours=1))
    stale = StoredRobots(RobotsOutcome.RULES, rules, None, now - timedelta(hours=1), now - timedelta(days=2))
    known = [
        KnownHost(f"{HOST}:{web.port}", robots=(("http", fresh),)),
        KnownHost(f"b.test:{web.port}", robots=(("http", stale),)),
    ]
    plan = plan_of(web.url(host, f"/page/{number}.html") for host in (HOST, "b.test") for number in (1, 2))
    fetch(task_of(settings), plan, known)
    assert [row["outcome"] for row in rows(settings, "fetches")].count("robots_denied") == 2
    assert [row["outcome"] for row in rows(settings, "fetches")].count("ok") == 2
    logged(web, 3)
    assert [hit.path for hit in web.hits(HOST)] == ["/page/2.html"]
    assert sorted(hit.path for hit in web.hits("b.test")) == ["/page/2.html", "/robots.txt"]


def test_unchanged_pages_become_revisits(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    settings = configuration(tmp_path / "first", hosts_file)
    paths = ("/page/1.html", "/page/2.html", "/odd/no-length", "/odd/always-new")
    fetch(task_of(settings), plan_of(web.url(HOST, path) for path in paths))
    before = final_rows(settings)
    web.change(HOST, "/page/2.html")
    plan = [
        planned(
            web.url(HOST, path), rank, etag=row["etag"], last_modified=row["last_modified"],
            last_payload_digest=row["payload_digest"], last_warc_file=row["warc_file"],
            last_warc_record_id=row["warc_record_id"], last_warc_date=datetime.fromisoformat(row["started_at"]),
        )
        for rank, (path, row) in enumerate(before.items(), 1)
    ]  # fmt: skip
    settings = configuration(tmp_path / "second", hosts_file)
    fetch(task_of(settings), plan)
    after = final_rows(settings)
    results = {path: (row["outcome"], row["revisit"]) for path, row in after.items()}
    assert results == {
        "/page/1.html": ("not_modified", True), "/page/2.html": ("ok", False),
        "/odd/no-length": ("ok", True), "/odd/always-new": ("ok", False),
    }  # fmt: skip
    assert after["/page/1.html"]["payload_digest"] == before["/page/1.html"]["payload_digest"]
    assert after["/odd/no-length"]["content_checksum"] == before["/odd/no-length"]["content_checksum"]
    assert captured(tmp_path / "second", after["/odd/no-length"]).record_type == "revisit"
    assert captured(tmp_path / "second", after["/page/2.html"]).record_type == "response"
    assert check_warc(tmp_path / "second" / after["/page/1.html"]["warc_file"]) == []


def test_the_guard_refuses_hosts_and_says_why(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    settings = configuration(tmp_path, hosts_file, allowed_private_ranges=[])
    plan = plan_of([web.url(HOST), web.url(HOST, "/page/1.html"), "http://127.0.0.1:9/", "http://[::1]:9/"])
    fetch(task_of(settings), plan)
    found = rows(settings, "fetches")
    assert {row["outcome"] for row in found} == {"address_refused"}
    assert all("loopback" in row["detail"] for row in found)
    assert settled_once(settings, plan)
    assert web.log == []


def test_a_failing_host_gives_back_its_rest(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    settings = configuration(tmp_path, hosts_file)
    plan = plan_of(web.url(HOST, f"/odd/status?code=500&n={number}") for number in range(8))
    summary = fetch(task_of(settings), plan)
    assert (summary.final, summary.skipped, summary.errors) == (5, 3, 5)
    assert {row["skip_reason"] for row in rows(settings, "skips")} == {"host_errors"}
    (visit,) = rows(settings, "host_visits")
    assert (visit["error_streak"], visit["deferred"]) == (5, 3)
    assert visit["blocked_until"] is not None
    assert settled_once(settings, plan)


def test_not_found_and_forbidden_are_no_faults(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    settings = configuration(tmp_path, hosts_file)
    codes = (404, 410, 403, 401, 451, 418, 404, 410)
    plan = plan_of(web.url(HOST, f"/odd/status?code={code}&n={n}") for n, code in enumerate(codes))
    summary = fetch(task_of(settings), plan)
    assert (summary.final, summary.errors) == (8, 0)
    outcomes = [row["outcome"] for row in rows(settings, "fetches")]
    assert outcomes == ["not_found", "gone", *["forbidden"] * 3, "client_error", "not_found", "gone"]


def test_the_deadline_gives_back_what_is_left(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    settings = configuration(tmp_path, hosts_file, min_delay_seconds=0.5)
    plan = plan_of(web.url(HOST, f"/page/{number}.html") for number in range(1, 12))
    summary = fetch(task_of(settings, budget_seconds=1.5), plan)
    assert summary.seconds < 4
    assert summary.final >= 1 and summary.final + summary.skipped == 11
    assert {row["skip_reason"] for row in rows(settings, "skips")} == {"deadline"}
    assert settled_once(settings, plan)


def test_a_stop_an_abandoned_round_and_blocks(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    plan = plan_of(web.url(host, "/page/1.html") for host in (HOST, "b.test", "www.a.test"))
    stopped = configuration(tmp_path / "stopped", hosts_file)
    request_stop(Store(stopped.storage), ROUND_ID, "me", "enough", datetime.now(UTC))
    fetch(task_of(stopped), plan)
    abandoned = configuration(tmp_path / "abandoned", hosts_file)
    fetch(task_of(abandoned, drained=True), plan)
    for settings in (stopped, abandoned):
        assert [row["skip_reason"] for row in rows(settings, "skips")] == ["operator"] * 3
        assert settled_once(settings, plan)
    assert web.log == []
    blocked = configuration(tmp_path / "blocked", hosts_file)
    until = datetime.now(UTC) + timedelta(hours=1)
    name = f"b.test:{web.port}"
    known = [KnownHost(name, HostRecord(name, blocked_until=until))]
    fetch(task_of(blocked, blocked=["a.test"]), plan, known)
    assert [row["skip_reason"] for row in rows(blocked, "skips")] == ["blocked"] * 3
    assert settled_once(blocked, plan)
    assert web.log == []


def test_a_second_run_asks_for_nothing(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    settings = configuration(tmp_path, hosts_file)
    plan = plan_of(web.url(HOST, f"/page/{number}.html") for number in range(1, 6))
    first = fetch(task_of(settings), plan[:4])
    second = fetch(task_of(settings, token="second"), plan)
    assert (first.requests, second.requests) == (5, 1)
    assert (second.planned, second.final) == (5, 5)
    assert web.audit().repeated() == {}
    assert settled_once(settings, plan)


def test_an_attempt_that_lost_its_partition_publishes_nothing(
    web: MisbehavingWeb, hosts_file: Path, tmp_path: Path
) -> None:
    settings = configuration(tmp_path, hosts_file)
    store = Store(settings.storage)
    name = f"control/rounds/{ROUND_ID}/owners/p00000"

    def taken_over() -> Iterator[PlannedUrl]:
        yield planned(web.url(HOST, "/page/1.html"))
        store.write_bytes(name, b"another attempt")

    with pytest.raises(PartitionLostError):
        fetch(task_of(settings), taken_over())
    assert list(load_journal_rows(store, ROUND_ID, "fetches")) == []


def test_credentials_of_a_host_are_sent_and_nowhere_stored(
    web: MisbehavingWeb, hosts_file: Path, tmp_path: Path
) -> None:
    secret = base64.b64encode(b"user:secret").decode()
    settings = configuration(
        tmp_path, hosts_file, host_settings={f"{HOST}:{web.port}": {"username": "user", "password": "secret"}}
    )
    fetch(task_of(settings), plan_of([web.url(HOST, "/odd/auth")]))
    (row,) = final_rows(settings).values()
    assert (row["outcome"], row["status"]) == ("ok", 200)
    found = json.dumps([rows(settings, table) for table in ("fetches", "robots", "host_visits")])
    assert secret not in found and "secret" not in found
    stored = gzip.decompress((tmp_path / row["warc_file"]).read_bytes())
    assert b"Authorization: (withheld)" in stored
    assert secret.encode() not in stored


def test_digests_are_those_of_the_bytes_sent(web: MisbehavingWeb, hosts_file: Path, tmp_path: Path) -> None:
    body = b"exactly this"
    web.change(HOST, "/page/9.html", body, headers=(("Content-Type", "text/plain"),))
    settings = configuration(tmp_path, hosts_file)
    fetch(task_of(settings), plan_of([web.url(HOST, "/page/9.html")]))
    (row,) = final_rows(settings).values()
    assert row["payload_digest"] == "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
    assert row["content_checksum"] == content_checksum(body)
    assert (row["mime_declared"], row["mime_sniffed"], row["bytes_wire"]) == ("text/plain", "text/plain", len(body))
