"""Disks that are full and stores that go away: an attempt fails in a sentence, the next one ends the round right."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recrawl.config.load import load_configuration
from recrawl.errors import RecrawlError, StorageError
from recrawl.fetch.work import PlannedUrl
from recrawl.warc.check import check_warc
from tests.archive.s3_server import S3Server
from tests.fetch.crawl import FAST, configuration, fetch, plan_of, rows, settled_once, task_of
from tests.web import MisbehavingWeb

HOSTS = [f"h{number}.test" for number in range(4)]


@contextlib.contextmanager
def files_of_at_most(limit_bytes: int) -> Iterator[None]:
    """Each file of this process ends there, as on a full disk: the system refuses to write further (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def requests_of_pages(web: MisbehavingWeb) -> Counter[tuple[str, str]]:
    """How often each page was asked for."""
    return Counter((hit.host, hit.path) for hit in web.log if hit.path != "/robots.txt")


@pytest.mark.parametrize("engine", ["curl", "requests"])
@pytest.mark.parametrize(
    ("path", "limit_bytes"),
    [
        ("/odd/png?mime=image/png&n={}", 8_000),  # the WARC part, or the journal beside it, grows too long
        ("/odd/huge?mb=1&n={}", 100_000),  # a body that does not stay in memory
    ],
)
def test_a_full_disk(tmp_path: Path, engine: str, path: str, limit_bytes: int) -> None:
    with MisbehavingWeb(HOSTS) as web:
        settings = configuration(
            tmp_path / "root", web.hosts_file(tmp_path / "hosts"), engine=engine, flush_seconds=0.05,
            min_delay_seconds=0.02, latency_factor=0,
        )  # fmt: skip
        plan = plan_of(web.url(host, path.format(number)) for host in HOSTS for number in range(8))
        with files_of_at_most(limit_bytes), pytest.raises(RecrawlError, match="can't be written: File too large"):
            fetch(task_of(settings, token="full"), plan)
        fetch(task_of(settings, token="with room"), plan)
    assert settled_once(settings, plan)
    assert {row["outcome"] for row in rows(settings, "fetches")} == {"ok"}
    files = [tmp_path / "root" / row["warc_file"] for row in rows(settings, "warc_files")]
    assert [check_warc(file) for file in files] == [[]] * len(files)


class Forwarder:
    """A way to a port on loopback that can be shut and opened again."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.is_open = True
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """Break every connection; new ones end at once."""
        self.is_open = False
        for end in list(self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it."""
        self.shut()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self.is_open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._target))
            self._ends += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def test_a_storage_root_that_goes_away_in_the_middle_and_comes_back(tmp_path: Path) -> None:
    with S3Server(tmp_path) as server, MisbehavingWeb(HOSTS) as web:
        way = Forwarder(server.port)
        storage = server.storage().model_copy(update={"s3_endpoint": f"http://127.0.0.1:{way.port}"})
        values: dict[str, Any] = storage.model_dump() | {"s3_secret_key": storage.s3_secret_key.get_secret_value()}
        settings = load_configuration(
            environment={},
            overrides={
                "storage": values,
                "fetch": FAST
                | {
                    "spool_dir": str(tmp_path / "spool"), "min_delay_seconds": 0.1, "latency_factor": 0,
                    "flush_seconds": 0.1, "publish_seconds": 1,
                },
                "dns": {"hosts_file": str(web.hosts_file(tmp_path / "hosts"))},
            },
        )  # fmt: skip
        plan = plan_of(web.url(host, f"/page/{number}.html") for host in HOSTS for number in range(1, 41))
        shutter = threading.Thread(target=_shut_after, args=(web, way, 60))
        shutter.start()
        with pytest.raises(StorageError, match="can't be used"):
            fetch(task_of(settings, token="cut off"), plan)
        shutter.join()
        way.is_open = True
        before = {row["planned_url_id"] for row in rows(settings, "fetches")}
        assert 0 < len(before) < len(plan)
        summary = fetch(task_of(settings, token="back"), plan)
        assert (summary.planned, summary.final) == (len(plan), len(plan))
        assert settled_once(settings, plan)
        asked = requests_of_pages(web)
        assert len(asked) == len(plan)
        published = [item for item in plan if item.url_id in before]
        assert {asked[_place(item)] for item in published} == {1}
        # What was flushed but not published was saved from the spool: almost nothing is asked for twice.
        assert sum(count - 1 for count in asked.values()) <= 2 * len(HOSTS)
        way.close()


def _place(item: PlannedUrl) -> tuple[str, str]:
    return item.host.partition(":")[0], "/" + item.request_url.split("/", 3)[3]


def _shut_after(web: MisbehavingWeb, way: Forwarder, hits: int) -> None:
    pause = threading.Event()
    while len(web.log) < hits:
        pause.wait(0.02)
    way.shut()
