"""Pages a second of one fetch task, on one core, with politeness on: many hosts, each asked once a second.

    python -m tests.bench.polite_hosts --hosts 2000 --seconds 300

A server of its own answers every host with pages like those of `generated_web`, made before, so that it needs
little of the other core. The task runs in a process that is held to one core. Every 10 s, the figures that it
writes for operators and its resident memory are noted: what is sustained is the slowest of the later intervals,
and memory is flat when the last third of the run needs no more than the second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from recrawl.bootstrap.places import PROJECT_FOLDER
from tests.bench.generated_web import page_body
from tests.bench.web import described, free_port, machine, wait_for

_PAGES = 64
_SAMPLE_SECONDS = 10.0
#: Intervals in which hosts are met for the first time, robots.txt before pages.
_WARM_UP_SAMPLES = 3


def host_names(count: int) -> list[str]:
    """The names of the hosts."""
    return [f"polite-{number:05d}.test" for number in range(count)]


class _Connection(asyncio.Protocol):
    """One kept-alive connection: robots.txt, and some pages again and again."""

    answers: ClassVar[list[bytes]] = []
    robots = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 23\r\n\r\nUser-agent: *\nAllow: /\n"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            target = self._data[:end].split(b" ", 2)[1]
            self._data = self._data[end + 4 :]
            is_page = target.startswith(b"/p/")
            self._transport.write(self.answers[int(target[3:]) % len(self.answers)] if is_page else self.robots)


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    for number in range(_PAGES):
        body = page_body("polite.test", number, port)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        _Connection.answers.append(head.encode() + body)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


def plan_of(hosts: int, a_host: int, port: int) -> Iterator[Any]:
    """The plan, host by host."""
    from recrawl.fetch.partition import PlannedUrl
    from recrawl.urls.keys import url_id

    for name in host_names(hosts):
        for rank in range(1, a_host + 1):
            url = f"http://{name}:{port}/p/{rank}"
            yield PlannedUrl(url_id(url), url, url, f"{name}:{port}", rank, 1.0, depth=1, max_bytes=5 << 20)


def run_task(arguments: argparse.Namespace) -> dict[str, Any]:
    """The task, in this process; its summary and its samples."""
    from recrawl.clock import SystemClock
    from recrawl.config.load import load_configuration
    from recrawl.fetch.partition import PartitionTask, run_partition
    from recrawl.rounds import progress_folder
    from recrawl.tables.vocabulary import Scope
    from recrawl.urls.scope import ScopeSet
    from tests.fetch.crawl import ROUND_ID

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    folder: Path = arguments.folder
    configuration = load_configuration(
        environment={},
        overrides={
            "storage": {"root": str(folder / "root")},
            "dns": {"hosts_file": str(folder / "hosts")},
            "fetch": {
                "allowed_private_ranges": ["127.0.0.0/8"], "min_delay_seconds": arguments.delay, "latency_factor": 0,
                "ip_gap_seconds": 0, "publish_seconds": 60,
            },
        },
    )  # fmt: skip
    progress = folder / "root" / progress_folder(ROUND_ID) / "p00000.json"
    samples: list[dict[str, float]] = []
    is_over = threading.Event()
    sampler = threading.Thread(target=_sample, args=(progress, samples, is_over))
    task = PartitionTask(
        round_id=ROUND_ID, partition=0, configuration=configuration,
        deadline=datetime.now(UTC) + timedelta(seconds=arguments.seconds),
        scope=ScopeSet([(Scope.ANYWHERE, "http://any.test/")]), blocked_hosts=frozenset(), attempt_token="bench",
    )  # fmt: skip
    # As many as a host can be asked for in the time.
    plan = plan_of(arguments.hosts, int(arguments.seconds / arguments.delay) + 2, arguments.port)
    begin_cpu = time.process_time()
    sampler.start()
    summary = run_partition(task, plan, SystemClock(), Random(7))
    cpu_seconds = time.process_time() - begin_cpu
    is_over.set()
    sampler.join()
    figures = {"final": summary.final, "requests": summary.requests, "errors": summary.errors}
    return figures | {"seconds": summary.seconds, "cpu_seconds": cpu_seconds, "samples": samples}


def _sample(progress: Path, samples: list[dict[str, float]], is_over: threading.Event) -> None:
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    begin = time.monotonic()
    while not is_over.wait(_SAMPLE_SECONDS):
        try:
            fetched = json.loads(progress.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        resident_pages = int(Path("/proc/self/statm").read_text().split()[1])
        samples.append(
            {
                "second": round(time.monotonic() - begin, 1),
                "pages": fetched["fetched"],
                "updated": datetime.fromisoformat(fetched["updated_at"]).timestamp(),
                "mib": round(resident_pages * page_bytes / (1 << 20), 1),
            }
        )


def judged(figures: dict[str, Any]) -> dict[str, Any]:
    """What was sustained, and how flat memory was."""
    samples = figures["samples"]
    rates = [
        (after["pages"] - before["pages"]) / (after["updated"] - before["updated"])
        for before, after in pairwise(samples)
        if after["updated"] > before["updated"] and after["second"] < figures["seconds"] - _SAMPLE_SECONDS
    ]
    later = sorted(rates[_WARM_UP_SAMPLES:])
    third = len(samples) // 3
    return {
        "pages_a_second": round(figures["final"] / figures["seconds"]),
        "slowest_interval": round(later[0]) if later else None,
        "median_interval": round(later[len(later) // 2]) if later else None,
        "cpu_share": round(figures["cpu_seconds"] / figures["seconds"], 2),
        "cpu_ms_a_page": round(1000 * figures["cpu_seconds"] / max(1, figures["final"]), 3),
        "errors": figures["errors"],
        "mib_second_third": max((s["mib"] for s in samples[third : 2 * third]), default=None),
        "mib_last_third": max((s["mib"] for s in samples[2 * third :]), default=None),
    }


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run server and task, each in a process of its own; the task's figures."""
    port = free_port()
    (folder / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in host_names(arguments.hosts)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT_FOLDER / "include"), str(PROJECT_FOLDER)])}
    command = [sys.executable, "-m", "tests.bench.polite_hosts", "--port", str(port)]
    server = subprocess.Popen([*command, "--role", "server"], cwd=PROJECT_FOLDER, env=environment)
    try:
        wait_for(f"http://127.0.0.1:{port}/p/1", server)
        task = [*command, "--role", "task", "--folder", str(folder), "--hosts", str(arguments.hosts)]
        task += ["--seconds", str(arguments.seconds), "--delay", str(arguments.delay)]
        done = subprocess.run(task, cwd=PROJECT_FOLDER, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        server.terminate()
        server.wait()
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure, or be the task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--hosts", type=int, default=2_000, help="hosts, all on one loopback port")
    add("--seconds", type=float, default=300.0, help="time budget of the task")
    add("--delay", type=float, default=1.0, help="gap between an answer of a host and the next request to it")
    add("--folder", type=Path, help="where files are made (default: the system's temporary folder)")
    add("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    add("--port", type=int, help=argparse.SUPPRESS)
    add("--role", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "server":
        asyncio.run(serve(arguments.port))
    elif arguments.role == "task":
        print(json.dumps(run_task(arguments)))
    else:
        _report(arguments)


def _report(arguments: argparse.Namespace) -> None:
    found = machine()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        figures = measure(Path(folder), arguments)
    verdict = judged(figures)
    print(f"{described(found)}. {arguments.hosts:,} hosts, {arguments.delay:g} s between requests of a host.\n")
    print(json.dumps(verdict, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": found, **verdict, **figures}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
