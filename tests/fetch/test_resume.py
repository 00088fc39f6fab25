"""A fetch killed at random moments, again and again: nothing lost, nothing settled twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from recrawl.fetch.journal import load_journal_rows
from recrawl.storage import Store
from recrawl.warc.check import check_warc
from recrawl.warc.reader import read_capture
from tests.fetch.crawl import ROUND_ID, configuration, plan_of, rows, settled_once
from tests.web import MisbehavingWeb

PROJECT = Path(__file__).resolve().parents[2]

_PROGRAM = """
import json, sys
from tests.fetch.crawl import configuration, fetch, plan_of, task_of
from pathlib import Path
given = json.loads(sys.argv[1])
settings = configuration(Path(given["root"]), Path(given["hosts"]), **given["fetch"])
fetch(task_of(settings, token=given["token"]), plan_of(given["urls"]))
"""


def attempt(root: Path, hosts: Path, urls: list[str], token: str, delay: float) -> subprocess.Popen[bytes]:
    """An attempt in a process of its own, publishing every 0.3 s."""
    given = {
        "root": str(root), "hosts": str(hosts), "urls": urls, "token": token,
        "fetch": {"min_delay_seconds": delay, "latency_factor": 0, "flush_seconds": 0.05, "publish_seconds": 0.3},
    }  # fmt: skip
    environment = os.environ | {"PYTHONPATH": f"{PROJECT / 'include'}:{PROJECT}"}
    return subprocess.Popen([sys.executable, "-c", _PROGRAM, json.dumps(given)], env=environment, cwd=PROJECT)


@pytest.mark.parametrize(
    ("seed", "kills", "pages", "delay"),
    [(1, 4, 45, 0.01), *(pytest.param(seed, 20, 200, 0.05, marks=pytest.mark.long) for seed in (2, 3))],
)
def test_killed_again_and_again(tmp_path: Path, seed: int, kills: int, pages: int, delay: float) -> None:
    chance = random.Random(seed)
    names = [f"h{number}.test" for number in range(3)]
    with MisbehavingWeb(names, pages=pages, own_addresses=True) as web:
        hosts = web.hosts_file(tmp_path / "hosts")
        urls = [web.url(host, f"/page/{number}.html") for number in range(1, pages) for host in names]
        urls += [web.url(host, f"/odd/chain?n=3&x={host}") for host in names]
        settings = configuration(tmp_path, hosts)
        store = Store(settings.storage)
        plan = plan_of(urls)
        published_before: set[str] = set()
        for kill in range(kills):
            web.clear_log()
            process = attempt(tmp_path, hosts, urls, f"token-{kill}", delay)
            deadline = time.monotonic() + 20
            while not web.log and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(chance.uniform(0.0, 0.6))
            process.send_signal(signal.SIGKILL)
            process.wait()
            asked = {web.url(hit.host, hit.path) for hit in web.log}
            assert not asked & published_before, "a published URL was fetched again"
            published_before = {row["url"] for row in load_journal_rows(store, ROUND_ID, "fetches")}
        web.clear_log()
        assert attempt(tmp_path, hosts, urls, "last", delay).wait(timeout=60) == 0
        asked = {web.url(hit.host, hit.path) for hit in web.log}
        assert not asked & published_before
        assert web.audit().max_concurrency().get("h0.test", 1) == 1
    assert settled_once(settings, plan)
    check_stored(tmp_path, settings)


def check_stored(root: Path, settings: object) -> None:
    """Every row can be read back, every file is valid, and no key or capture is there twice."""
    fetches = rows(settings, "fetches")  # type: ignore[arg-type]
    keys = Counter((row["planned_url_id"], row["attempt"], row["hop"]) for row in fetches)
    assert keys.most_common(1)[0][1] == 1
    files = rows(settings, "warc_files")  # type: ignore[arg-type]
    assert len({row["warc_file"] for row in files}) == len(files) >= 2
    for row in files:
        path = root / row["warc_file"]
        assert path.stat().st_size == row["bytes"]
        assert check_warc(path) == []
    for row in fetches:
        with (root / row["warc_file"]).open("rb") as file:
            assert read_capture(file, row["warc_offset"], 1 << 20).url == row["url"]
    assert not (root / "spool").exists() or not any((root / "spool").iterdir())
