"""Hostile answers: limits hold, whole tasks survive, nothing of it spoils the next request."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.tables.vocabulary import Outcome
from recrawl.warc.check import check_warc
from tests.fetch.crawl import configuration, fetch, final_rows, logged, plan_of, rows, settled_once, task_of
from tests.web import MisbehavingWeb

HOST = "a.test"
CAP_BYTES = 1 << 20
#: Faults count, but not here: each path is tried.
PATIENT = {"max_errors_in_a_row": 1_000, "read_timeout_seconds": 4, "total_timeout_seconds": 6}


@pytest.fixture(scope="module")
def web() -> Iterator[MisbehavingWeb]:
    with MisbehavingWeb([HOST], pages=5) as server:
        yield server


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_hostile_wires(web: MisbehavingWeb, tmp_path: Path, engine: str) -> None:
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), engine=engine, **PATIENT)
    expected = {
        "/odd/endless-chunks?bytes=1000": ("ok", "length"),
        "/odd/endless-chunks?bytes=1&mb=40": ("ok", "length"),
        "/odd/many-headers": ("protocol_error", None),
        "/odd/long-header": ("protocol_error", None),
        "/odd/nul-bytes": (None, None),
        "/odd/longer-body": ("ok", None),
        "/odd/huge-length": (None, None),
        "/odd/negative-length": (None, None),
        "/odd/two-lengths": ("protocol_error", None),
        "/odd/http09": ("protocol_error", None),
        "/odd/drip-headers": ("timeout", None),
        "/odd/drip?bytes=200&pause=0.1": ("timeout", "time"),
        "/page/1.html": ("ok", None),
    }
    # A quarter: the requests engine takes 5 us of CPU for each chunk of one byte.
    plan = plan_of((web.url(HOST, path) for path in expected), max_bytes=CAP_BYTES // 4)
    fetch(task_of(settings), plan)
    final = final_rows(settings)
    for path, (outcome, truncated) in expected.items():
        row = final[path]
        assert row["outcome"] in ([outcome] if outcome else ["ok", "protocol_error"]), (path, row)
        assert row["truncated"] == truncated or outcome is None, (path, row)
        assert row["bytes_wire"] <= CAP_BYTES
    assert final["/odd/longer-body"]["bytes_body"] == 10
    assert settled_once(settings, plan)
    for row in rows(settings, "warc_files"):
        assert check_warc(tmp_path / row["warc_file"]) == []


def test_nested_bombs_are_cut_at_the_cap(web: MisbehavingWeb, tmp_path: Path) -> None:
    settings = configuration(
        tmp_path, web.hosts_file(tmp_path / "hosts"), max_errors_in_a_row=100, read_timeout_seconds=15,
        total_timeout_seconds=30,
    )  # fmt: skip
    names = ("gzip-gzip", "br-gzip", "gzip-br", "zstd-gzip", "br-br-br", "many")
    plan = plan_of((web.url(HOST, f"/odd/bomb?as={name}&mb=30") for name in names), max_bytes=CAP_BYTES)
    fetch(task_of(settings), plan)
    found = {path.partition("as=")[2].partition("&")[0]: row for path, row in final_rows(settings).items()}
    for name in names[:-1]:
        assert (found[name]["outcome"], found[name]["truncated"], found[name]["bytes_body"]) == (
            "ok", "length", CAP_BYTES,
        ), name  # fmt: skip
    # More encodings than anybody uses: the body stays as it came.
    assert (found["many"]["outcome"], found["many"]["bytes_body"]) == ("ok", found["many"]["bytes_wire"])
    assert settled_once(settings, plan)


def test_a_line_break_in_a_location_reaches_no_request(web: MisbehavingWeb, tmp_path: Path) -> None:
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"))
    web.clear_log()
    plan = plan_of([web.url(HOST, "/odd/redirect-crlf"), web.url(HOST, "/odd/redirect-bytes")])
    logged(web, fetch(task_of(settings), plan).requests)
    for hit in web.hits(HOST):
        assert hit.header("x-injected") is None
        assert re.fullmatch(r"[!-~]+", hit.path)
    assert settled_once(settings, plan)


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_credentials_and_cookies_stay_nowhere(
    web: MisbehavingWeb, tmp_path: Path, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = configuration(tmp_path, web.hosts_file(tmp_path / "hosts"), engine=engine)
    port = web.port
    web.clear_log()
    for path, location in {
        "/moved": f"http://moved:hush2@{HOST}:{port}/page/2.html",
        "/bad": "http://bad:hush3@[nowhere/",
    }.items():
        web.change(HOST, path, status=302, headers=[("Location", location)])
    plan = plan_of(
        [
            f"http://planned:hush1@{HOST}:{port}/page/1.html",
            web.url(HOST, "/moved"),
            web.url(HOST, "/bad"),
            web.url(HOST, "/odd/cookie-wall"),
            web.url(HOST, "/odd/odd-headers"),
            web.url(HOST, "/page/3.html"),
        ]
    )
    logged(web, fetch(task_of(settings), plan).requests)
    for hit in web.hits(HOST):
        assert hit.header("cookie") is None
        assert hit.header("authorization") is None
    stored = [row for table in ("fetches", "robots", "host_visits", "skips") for row in rows(settings, table)]
    assert not re.search("hush[123]", json.dumps(stored) + caplog.text)
    assert final_rows(settings)["/moved"]["url"] == f"http://{HOST}:{port}/page/2.html"
    assert final_rows(settings)["/bad"]["outcome"] == "invalid_url"
    assert settled_once(settings, plan)


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_ipv6_literals_and_international_names(tmp_path: Path, engine: str) -> None:
    if not _has_ipv6():
        pytest.skip("this machine has no IPv6 loopback")
    with MisbehavingWeb(["[::1]", "xn--bcher-kva.test"], pages=3) as web:
        web.site("[::1]", address="::1")
        hosts = tmp_path / "hosts"
        hosts.write_text("127.0.0.1 xn--bcher-kva.test\n")
        settings = configuration(tmp_path, hosts, engine=engine)
        plan = plan_of(
            [
                web.url("[::1]", "/page/1.html"),
                f"http://[0:0:0:0:0:0:0:1]:{web.port}/page/2.html",
                web.url("bücher.test", "/page/1.html"),
            ]
        )
        fetch(task_of(settings), plan)
        found = {row["url"]: (row["outcome"], row["ip"]) for row in rows(settings, "fetches")}
    assert found == {
        f"http://[::1]:{web.port}/page/1.html": ("ok", "::1"),
        f"http://[::1]:{web.port}/page/2.html": ("ok", "::1"),
        f"http://xn--bcher-kva.test:{web.port}/page/1.html": ("ok", "127.0.0.1"),
    }
    assert len({row["host"] for row in rows(settings, "host_visits")}) == 2


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_metadata_addresses_are_refused_whatever_is_allowed(web: MisbehavingWeb, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"169.254.169.254 meta.test\n127.0.0.1 {HOST}\n::ffff:169.254.169.254 mapped.test\n")
    settings = configuration(tmp_path, hosts, allowed_private_ranges=["0.0.0.0/0", "::/0"])
    targets = ["http://meta.test/", "http://mapped.test/", "http://169.254.169.254/latest/", "http://[fd00:ec2::254]/"]
    plan = plan_of([*targets, *(web.url(HOST, f"/odd/redirect?to={target}") for target in targets)])
    fetch(task_of(settings), plan)
    found = rows(settings, "fetches")
    refused = {row["url"] for row in found if row["outcome"] == Outcome.ADDRESS_REFUSED.value}
    assert refused == set(targets)
    assert not any(row["ip"] and row["ip"].startswith(("169.", "fd00")) for row in found)
    assert settled_once(settings, plan)
