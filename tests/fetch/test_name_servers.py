"""`dns.servers`: names asked of a name server of our own, cached, failures too."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from recrawl.clock import SystemClock
from recrawl.config.load import load_configuration
from recrawl.config.model import Configuration
from recrawl.fetch.partition import KnownHost, StoredRobots, run_partition
from recrawl.tables.vocabulary import RobotsOutcome
from tests.fetch.crawl import FAST, fetch, logged, plan_of, rows, settled_once, task_of
from tests.web import MisbehavingWeb


class NameServer:
    """Answers A queries from a table (several addresses: a space between), else NXDOMAIN; UDP on loopback."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        #: How many more times a name is answered with SERVFAIL (negative: always).
        self.failing: dict[str, int] = {}
        self.queries: list[str] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            query, sender = self._socket.recvfrom(4096)
            if not query:
                return
            self._socket.sendto(self._answer(query), sender)

    def _answer(self, query: bytes) -> bytes:
        labels, position = [], 12
        while query[position]:
            length = query[position]
            labels.append(query[position + 1 : position + 1 + length].decode())
            position += 1 + length
        question = query[12 : position + 5]
        name, is_a = ".".join(labels).lower(), question[-4:-2] == b"\0\1"
        if is_a:
            self.queries.append(name)
        if is_a and self.failing.get(name):
            self.failing[name] -= 1
            return query[:2] + b"\x81\x82\0\1\0\0\0\0\0\0" + question
        addresses = self.names.get(name, "").split()
        if not addresses:
            return query[:2] + b"\x81\x83\0\1\0\0\0\0\0\0" + question
        if not is_a:
            return query[:2] + b"\x81\x80\0\1\0\0\0\0\0\0" + question
        records = [b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(address) for address in addresses]
        return query[:2] + b"\x81\x80\0\1\0%c\0\0\0\0" % len(records) + question + b"".join(records)


@pytest.fixture
def name_server() -> Iterator[NameServer]:
    server = NameServer({"a.test": "127.0.0.1", "rebound.test": "169.254.169.254"})
    yield server
    server.close()


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_names_are_asked_once_and_guarded(tmp_path: Path, name_server: NameServer, engine: str) -> None:
    settings = load_configuration(
        environment={},
        overrides={
            "storage": {"root": str(tmp_path)},
            "fetch": FAST | {"engine": engine},
            "dns": {"servers": [name_server.address]},
        },
    )
    with MisbehavingWeb(["a.test"]) as web:
        hosts = ("a.test", "missing.test", "rebound.test")
        plan = plan_of(web.url(host, f"/page/{number}.html") for host in hosts for number in (1, 2, 3))
        run_partition(task_of(settings), plan, SystemClock(), Random(1))
    outcomes = {row["host"].partition(":")[0]: row["outcome"] for row in rows(settings, "fetches")}
    assert outcomes == {"a.test": "ok", "missing.test": "dns_error", "rebound.test": "address_refused"}
    assert name_server.queries.count("a.test") == 1
    missing = [row["detail"] for row in rows(settings, "fetches") if row["host"].startswith("missing")]
    assert len(missing) == 3 and all("missing.test does not resolve" in detail for detail in missing)


def settings_for(root: Path, name_server: NameServer, **changes: object) -> Configuration:
    return load_configuration(
        environment={},
        overrides={
            "storage": {"root": str(root)},
            "fetch": FAST | {"max_errors_in_a_row": 100} | changes,
            "dns": {"servers": [name_server.address], "ttl_seconds": 0},
        },
    )


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_a_name_that_is_rebound_is_refused_from_then_on(tmp_path: Path, name_server: NameServer, engine: str) -> None:
    settings = settings_for(tmp_path, name_server, engine=engine, min_delay_seconds=0.1, latency_factor=0)
    with MisbehavingWeb(["a.test"]) as web:
        # Each of these answers closes its connection, so that the next has to connect again.
        plan = plan_of(web.url("a.test", f"/odd/no-length?n={number}") for number in range(12))

        def rebind() -> None:
            logged(web, 4)
            name_server.names["a.test"] = "169.254.169.254"

        thread = threading.Thread(target=rebind)
        thread.start()
        run_partition(task_of(settings), plan, SystemClock(), Random(1))
        thread.join()
    outcomes = [row["outcome"] for row in rows(settings, "fetches")]
    assert set(outcomes) == {"ok", "address_refused"}
    assert outcomes == sorted(outcomes, reverse=True)  # none is fetched after the first refusal
    assert {row["ip"] for row in rows(settings, "fetches")} <= {"127.0.0.1", None}


@pytest.mark.parametrize("engine", ["curl", "requests"])
def test_of_a_mixed_answer_only_the_allowed_address_is_contacted(
    tmp_path: Path, name_server: NameServer, engine: str
) -> None:
    name_server.names |= {"mixed.test": "169.254.169.254 10.1.2.3 127.0.0.1", "worse.test": "169.254.169.254 10.1.2.3"}
    settings = settings_for(tmp_path, name_server, engine=engine)
    with MisbehavingWeb(["mixed.test", "worse.test"]) as web:
        plan = plan_of(web.url(host, "/page/1.html") for host in ("mixed.test", "worse.test"))
        run_partition(task_of(settings), plan, SystemClock(), Random(1))
        assert len(logged(web, 2)) == 2
    found = {row["host"].partition(":")[0]: (row["outcome"], row["ip"]) for row in rows(settings, "fetches")}
    assert found == {"mixed.test": ("ok", "127.0.0.1"), "worse.test": ("address_refused", None)}


def test_a_name_server_that_fails_is_asked_again_within_the_round(tmp_path: Path, name_server: NameServer) -> None:
    settings = settings_for(tmp_path, name_server)
    # Each look-up that fails is three queries at most: once ahead, then for each try of robots.txt.
    name_server.failing = {"a.test": 4}
    with MisbehavingWeb(["a.test"]) as web:
        plan = plan_of([web.url("a.test", "/page/1.html"), web.url("missing.test", "/page/1.html")])
        run_partition(task_of(settings), plan, SystemClock(), Random(1))
    outcomes = {row["host"].partition(":")[0]: row["outcome"] for row in rows(settings, "fetches")}
    assert outcomes == {"a.test": "ok", "missing.test": "dns_error"}
    assert settled_once(settings, plan)
    assert name_server.failing == {"a.test": 0}
    files = {row["host"].partition(":")[0]: row["robots_outcome"] for row in rows(settings, "robots")}
    assert files == {"a.test": "allow_all", "missing.test": "unreachable"}


def test_a_page_whose_name_server_fails_has_a_row_for_each_try(tmp_path: Path, name_server: NameServer) -> None:
    settings = settings_for(tmp_path, name_server)
    name_server.failing = {"a.test": -1}
    now = datetime.now(UTC)
    with MisbehavingWeb(["a.test"]) as web:
        plan = plan_of([web.url("a.test", "/page/1.html")])
        known = StoredRobots(RobotsOutcome.ALLOW_ALL, None, None, now + timedelta(hours=1), now)
        fetch(task_of(settings), plan, [KnownHost(plan[0].host, None, (("http", known),))])
        assert web.log == []
    tries = [(row["attempt"], row["hop"], row["outcome"], row["final"]) for row in rows(settings, "fetches")]
    assert tries == [(1, 0, "dns_error", False), (2, 0, "dns_error", False), (3, 0, "dns_error", True)]
    assert settled_once(settings, plan)


def test_names_and_robots_files_are_renewed_before_content(tmp_path: Path, name_server: NameServer) -> None:
    hosts = [f"h{number}.test" for number in range(30)]
    with MisbehavingWeb(hosts) as web:
        name_server.names |= dict.fromkeys(hosts, "127.0.0.1")
        settings = load_configuration(
            environment={},
            overrides={
                "storage": {"root": str(tmp_path)},
                "fetch": FAST | {"ip_gap_seconds": 0.04, "min_delay_seconds": 0.04, "latency_factor": 0},
                "dns": {"servers": [name_server.address]},
            },
        )
        plan = plan_of(web.url(host, f"/page/{number}.html") for host in hosts for number in (1, 2))
        now = datetime.now(UTC)
        fresh = StoredRobots(RobotsOutcome.ALLOW_ALL, None, None, now + timedelta(hours=1), now)
        expired = StoredRobots(RobotsOutcome.ALLOW_ALL, None, None, now - timedelta(hours=1), now - timedelta(days=2))
        known = [
            KnownHost(f"{host}:{web.port}", None, (("http", fresh if number < 3 else expired),))
            for number, host in enumerate(hosts)
        ]
        fetch(task_of(settings), plan, known)
        log = logged(web, 27 + 60)
    assert settled_once(settings, plan)
    asked = [hit.path == "/robots.txt" for hit in log]
    assert sum(asked) == 27
    # Hosts whose file is fresh are not blocked by it, but all others' files go before content.
    assert sum(not is_robots for is_robots in asked[: asked.index(True) + 27]) <= 3 * 2
    assert sorted(name_server.queries) == sorted(hosts)
    # All of one address: also first contacts keep its gap, because the names were known before.
    gaps = [after.started_seconds - before.ended_seconds for before, after in pairwise(log)]
    assert min(gaps) >= 0.03
