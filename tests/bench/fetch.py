"""CPU time a page of the fetch step alone, against references in the same run, politeness off.

    python -m tests.bench.fetch --simweb PATH --pages 20000 --scrapy-python /path/to/venv/bin/python

- recrawl: `run_partition`, everything in one partition: robots.txt, politeness, WARC, CDXJ, journal.
- libcurl: a bare multi loop in Python that gzips each body at the same level into one file, and
  nothing else: what no crawler in Python can undercut.
- Scrapy with warcio: robots.txt and WARC as its users write it; where it is not installed, it is
  left out with a sentence.

Each runs in a process of its own, a request at a time for each host.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from recrawl.bootstrap.places import PROJECT_FOLDER
from tests.bench.web import bench_web, crawl_settings, described, machine

CONNECTIONS = 256


@dataclass(frozen=True)
class Measured:
    """What one of them did."""

    name: str
    pages: int
    stored_bytes: int
    seconds: float
    cpu_seconds: float

    @property
    def cpu_ms_a_page(self) -> float:
        return 1000 * self.cpu_seconds / max(1, self.pages)


def fetch_with_recrawl(urls: list[str], settings_file: Path, folder: Path) -> tuple[int, int]:
    """One partition; pages with content and bytes of WARC."""
    from datetime import UTC, datetime, timedelta

    from recrawl.clock import SystemClock
    from recrawl.config.load import load_configuration
    from recrawl.fetch.partition import PartitionTask, run_partition
    from recrawl.storage import Store
    from recrawl.tables.vocabulary import Scope
    from recrawl.urls.scope import ScopeSet
    from tests.fetch.crawl import ROUND_ID, plan_of

    configuration = load_configuration(settings_file, environment={})
    task = PartitionTask(
        round_id=ROUND_ID, partition=0, configuration=configuration,
        deadline=datetime.now(UTC) + timedelta(hours=1),
        scope=ScopeSet([(Scope.ANYWHERE, "http://any.test/")]), blocked_hosts=frozenset(), attempt_token="bench",
    )  # fmt: skip
    plan = plan_of(urls)
    started = _usage()
    summary = run_partition(task, plan, SystemClock(), Random(7))
    _say_usage(started)
    store = Store(configuration.storage)
    return summary.final, sum(store.local_path(name).stat().st_size for name in summary.warc_files)


def fetch_with_libcurl(urls: list[str], settings_file: Path, folder: Path) -> tuple[int, int]:
    """The bare loop; answers of status 200 and bytes written."""
    import pycurl
    from isal import isal_zlib

    from recrawl.config.load import load_configuration

    dns = load_configuration(settings_file, environment={}).dns
    lines = [line.split() for line in Path(dns.hosts_file).read_text().splitlines()]
    addresses = {name: address for address, *names in lines for name in names}
    queues: dict[str, deque[str]] = defaultdict(deque)
    for url in urls:
        queues[urlsplit(url).netloc].append(url)
    ready = deque(queues)
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_MAXCONNECTS, len(queues))
    free = [pycurl.Curl() for _ in range(CONNECTIONS)]
    running, pages, written = 0, 0, 0
    started = _usage()
    with (folder / "bodies.gz").open("wb", buffering=256 * 1024) as file:
        while ready or running:
            while ready and free:
                curl, host = free.pop(), ready.popleft()
                url = queues[host].popleft()
                name, _, port = host.partition(":")
                curl.reset()
                curl.body, curl.host = BytesIO(), host
                curl.setopt(pycurl.URL, url)
                curl.setopt(pycurl.RESOLVE, [f"{name}:{port or 80}:{addresses[name]}"])
                curl.setopt(pycurl.HTTPHEADER, ["Accept-Encoding: gzip, br"])
                curl.setopt(pycurl.WRITEDATA, curl.body)
                curl.setopt(pycurl.NOSIGNAL, 1)
                multi.add_handle(curl)
                running += 1
            multi.perform()
            while True:
                left, done, failed = multi.info_read()
                for curl in [*done, *(item[0] for item in failed)]:
                    multi.remove_handle(curl)
                    running -= 1
                    pages += curl.getinfo(pycurl.RESPONSE_CODE) == 200
                    data = isal_zlib.compress(curl.body.getvalue(), 3, 31)
                    file.write(data)
                    written += len(data)
                    if queues[curl.host]:
                        ready.append(curl.host)
                    free.append(curl)
                if not left:
                    break
            if running:
                multi.select(1.0)
    _say_usage(started)
    return pages, written


CONTESTANTS = {"recrawl": fetch_with_recrawl, "libcurl": fetch_with_libcurl}


def _usage() -> tuple[float, float]:
    return time.monotonic(), _cpu_seconds()


def _cpu_seconds() -> float:
    # Finished children and threads too: a resolver or compressor of one's own is no gift.
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _say_usage(started: tuple[float, float]) -> None:
    now = _usage()
    print(json.dumps({"seconds": now[0] - started[0], "cpu_seconds": now[1] - started[1]}), flush=True)


def measure(name: str, command: list[str], environment: dict[str, str]) -> Measured:
    """Run a contestant, which prints its usage and its counts as two lines of JSON."""
    done = subprocess.run(command, env=environment, cwd=PROJECT_FOLDER, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr[-3000:]}\n{name} failed.")
    values: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        values |= json.loads(line)
    return Measured(name, values["pages"], values["bytes"], values["seconds"], values["cpu_seconds"])


def table(found: list[Measured]) -> str:
    """A Markdown table, ratios against recrawl."""
    base = found[0].cpu_ms_a_page
    lines = ["| | pages | pages/s | CPU ms a page | ratio | stored MB |", "| --- | --- | --- | --- | --- | --- |"]
    for item in found:
        lines.append(
            f"| {item.name} | {item.pages:,} | {item.pages / item.seconds:,.0f} | {item.cpu_ms_a_page:.3f} | "
            f"{item.cpu_ms_a_page / base:.2f} | {item.stored_bytes / 1e6:,.0f} |"
        )
    return "\n".join(lines)


def _measure_all(arguments: argparse.Namespace, folder: Path) -> tuple[str, list[Measured]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT_FOLDER / "include"), str(PROJECT_FOLDER)])}
    found = []
    with bench_web(folder, arguments.simweb) as web:
        urls = folder / "urls.txt"
        urls.write_text("".join(f"{url}\n" for url in web.urls(arguments.pages)), encoding="utf-8")
        for name in CONTESTANTS:
            own = folder / name
            own.mkdir()
            settings = own / "recrawl.toml"
            settings.write_text(crawl_settings(web, own / "root", "none"), encoding="utf-8")
            command = [sys.executable, "-m", "tests.bench.fetch", "--contestant", name]
            command += ["--urls", str(urls), "--settings", str(settings), "--folder", str(own)]
            found.append(measure(name, command, environment))
        probe = subprocess.run([arguments.scrapy_python, "-c", "import scrapy, warcio"], capture_output=True)
        if probe.returncode:
            print(f"{arguments.scrapy_python} has no Scrapy with warcio: left out.", file=sys.stderr)
        else:
            script = Path(__file__).with_name("scrapy_warc.py")
            command = [arguments.scrapy_python, str(script), str(urls), str(folder / "scrapy.warc.gz"), str(web.port)]
            found.append(measure("Scrapy with warcio", command, dict(os.environ)))
        return web.name, found


def main() -> None:
    """Measure, or be one of the measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pages", type=int, default=20_000, help="URLs in the one partition")
    add("--simweb", type=Path, help="simweb's program, or the folder of its source; else generated pages")
    add("--scrapy-python", default=sys.executable, help="the Python that has Scrapy and warcio")
    add("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    add("--folder", type=Path, help="where files are made (default: the system's temporary folder)")
    for hidden in ("--contestant", "--urls", "--settings"):
        add(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant:
        urls = Path(arguments.urls).read_text(encoding="utf-8").split()
        pages, stored = CONTESTANTS[arguments.contestant](urls, Path(arguments.settings), arguments.folder)
        print(json.dumps({"pages": pages, "bytes": stored}))
        return
    before = machine()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        name, found = _measure_all(arguments, Path(folder))
    print(f"{described(before)}. Web: {name}.\n\n{table(found)}")
    if arguments.json:
        figures = {"machine": before, "web": name, "fetches": [asdict(item) for item in found]}
        arguments.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
