"""Memory of one fetch task: 200,000 planned URLs over 5,000 hosts, driven as Spark drives it.

    python -m tests.bench.fetch_memory --seconds 60

`jobs.fetch.fetch_partition` gets the plan in Arrow batches, with a stored robots.txt for every host
(some of them hostile, of 512 KiB), fetches from a server of generated answers as long as the
time budget lets it, and gives back the rest. Prints the greatest resident size of the task's process
before and after, and how fast it went; the exit status tells whether the bound was kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recrawl.bootstrap.places import PROJECT_FOLDER
from tests.bench.web import described, free_port, machine, wait_for

BOUND_MIB = 512
_BATCH_ROWS = 10_000  # spark.sql.execution.arrow.maxRecordsPerBatch
_LARGE_EVERY = 20


def host_names(count: int) -> list[str]:
    """The names of the hosts."""
    return [f"h{number:05d}.test" for number in range(count)]


# --- the server ---


class _Connection(asyncio.Protocol):
    """Answers every page with noise: 20 KB, each twentieth 1 MB; robots.txt with a few rules."""

    small = os.urandom(20_000)
    large = os.urandom(1_000_000)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            target = self._data[:end].split(b" ", 2)[1]
            self._data = self._data[end + 4 :]
            number = int(target.rpartition(b"/")[2]) if target.startswith(b"/p/") else 1
            body = self.large if number % _LARGE_EVERY == 0 else self.small
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-noise\r\nContent-Length: %d\r\n\r\n" % len(body)
            self._transport.write(head + body)


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


# --- the task ---


def plan_batches(urls: int, hosts: int, port: int, hostile_every: int) -> Iterator[Any]:
    """The plan as Spark hands it over: sorted by host, in Arrow batches."""
    import pyarrow as pa

    from recrawl.urls.keys import url_id

    now = datetime.now(UTC)
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(host_names(hosts)):
        host = f"{name}:{port}"
        for rank in range(1, urls // hosts + 1):
            url = f"http://{host}/p/{rank}"
            row: dict[str, Any] = {
                "fetch_partition": 0, "url_id": url_id(url), "url": url, "request_url": url, "host": host,
                "rank_in_host": rank, "crawl_value": 1.0 / rank, "depth": 3, "max_bytes": 5 << 20,
                "etag": f'"{rank:032x}"', "last_modified": "Thu, 01 Jan 2026 00:00:00 GMT",
                "last_payload_digest": f"sha1:{rank:032d}", "last_warc_file": None, "last_warc_record_id": None,
                "last_warc_date": None, "earliest_at": None, "known_host": None, "known_robots": None,
            }  # fmt: skip
            if rank == 1:
                row["known_host"] = _known_host(now)
                row["known_robots"] = [_known_robots(number, number % hostile_every == 0, now)]
            rows.append(row)
            if len(rows) == _BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(rows, _schema())
                rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, _schema())


def _known_host(now: datetime) -> dict[str, Any]:
    return {
        "ips": ["127.0.0.1"], "crawl_delay_seconds": None, "adaptive_delay_seconds": 1.0,
        "last_access_at": now - timedelta(days=7), "blocked_until": None, "error_streak": 0,
    }  # fmt: skip


def _known_robots(number: int, is_hostile: bool, now: datetime) -> dict[str, Any]:
    rules = 30_000 if is_hostile else 40
    body = f"# {number}\nUser-agent: *\n" + "".join(f"Disallow: /{rule:05x}\n" for rule in range(rules))
    moments = {"expires_at": now + timedelta(hours=20), "fetched_at": now - timedelta(hours=4)}
    return {"scheme": "http", "outcome": "rules", "body": body, "digest": None, **moments}


def _schema() -> Any:
    import pyarrow as pa

    moment = pa.timestamp("us", "UTC")
    known_host = pa.struct(
        [
            ("ips", pa.list_(pa.string())), ("crawl_delay_seconds", pa.float64()),
            ("adaptive_delay_seconds", pa.float64()), ("last_access_at", moment), ("blocked_until", moment),
            ("error_streak", pa.int32()),
        ]
    )  # fmt: skip
    robots = pa.struct(
        [
            ("scheme", pa.string()), ("outcome", pa.string()), ("body", pa.string()), ("digest", pa.string()),
            ("expires_at", moment), ("fetched_at", moment),
        ]
    )  # fmt: skip
    texts = ("etag", "last_modified", "last_payload_digest", "last_warc_file", "last_warc_record_id")
    return pa.schema(
        [
            ("fetch_partition", pa.int32()), ("url_id", pa.int64()), ("url", pa.string()),
            ("request_url", pa.string()), ("host", pa.string()), ("rank_in_host", pa.int32()),
            ("crawl_value", pa.float64()), ("depth", pa.int32()), ("max_bytes", pa.int64()),
            *((name, pa.string()) for name in texts), ("last_warc_date", moment), ("earliest_at", moment),
            ("known_host", known_host), ("known_robots", pa.list_(robots)),
        ]
    )  # fmt: skip


def write_plan(path: Path, arguments: argparse.Namespace) -> None:
    """The plan as an Arrow stream, as a Python worker of Spark gets it."""
    import pyarrow as pa

    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, _schema()) as stream:
        for batch in plan_batches(arguments.urls, arguments.hosts, arguments.port, arguments.hostile_every):
            stream.write_batch(batch)


def read_plan(path: Path) -> Iterator[Any]:
    """The batches of `write_plan`."""
    import pyarrow as pa

    with path.open("rb") as file:
        yield from pa.ipc.open_stream(file)


def run_task(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The task, in this process; its figures."""
    from jobs.fetch import fetch_partition
    from recrawl.config.load import load_configuration
    from recrawl.tables.vocabulary import Scope
    from recrawl.urls.scope import ScopeSet
    from tests.fetch.crawl import ROUND_ID

    configuration = load_configuration(
        environment={},
        overrides={
            "storage": {"root": str(folder / "root")},
            "dns": {"hosts_file": str(folder / "hosts")},
            "fetch": {
                "allowed_private_ranges": ["127.0.0.0/8"], "min_delay_seconds": arguments.delay, "latency_factor": 1,
                "ip_gap_seconds": 0, "total_timeout_seconds": 30, "read_timeout_seconds": 20,
            },
        },
    )  # fmt: skip
    before_mib = _peak_mib()
    begin, begin_cpu = time.monotonic(), time.process_time()
    (summary,) = fetch_partition(
        read_plan(folder / "plan.arrows"),
        round_id=ROUND_ID,
        configuration=configuration,
        deadline=datetime.now(UTC) + timedelta(seconds=arguments.seconds),
        scope=ScopeSet([(Scope.ANYWHERE, "http://any.test/")]),
        blocked=frozenset(),
        excluded=(),
        drained=False,
    )
    figures = json.loads(summary.to_pylist()[0]["summary"])
    figures.pop("warc_files")
    return figures | {
        "before_mib": before_mib,
        "peak_mib": _peak_mib(),
        "wall_seconds": round(time.monotonic() - begin, 1),
        "cpu_seconds": round(time.process_time() - begin_cpu, 1),
    }


def _peak_mib() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run server and task, each in a process of its own; the task's figures."""
    arguments.port = free_port()
    (folder / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in host_names(arguments.hosts)))
    write_plan(folder / "plan.arrows", arguments)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT_FOLDER / "include"), str(PROJECT_FOLDER)])}
    command = [sys.executable, "-m", "tests.bench.fetch_memory", "--port", str(arguments.port)]
    server = subprocess.Popen([*command, "--role", "server"], cwd=PROJECT_FOLDER, env=environment)
    try:
        wait_for(f"http://127.0.0.1:{arguments.port}/p/1", server)
        task = [*command, "--role", "task", "--folder", str(folder), "--delay", str(arguments.delay)]
        task += ["--seconds", str(arguments.seconds)]
        done = subprocess.run(task, cwd=PROJECT_FOLDER, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        server.terminate()
        server.wait()
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure, or be the server or the task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--urls", type=int, default=200_000)
    add("--hosts", type=int, default=5_000)
    add("--seconds", type=float, default=60.0, help="time budget of the task")
    add("--hostile-every", type=int, default=1_000, metavar="N", help="each Nth robots.txt is a hostile one")
    add("--delay", type=float, default=1.0, help="least gap to a host")
    add("--folder", type=Path, help="where files are made (default: the system's temporary folder)")
    add("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    for hidden in ("--role", "--port"):
        add(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "server":
        asyncio.run(serve(int(arguments.port)))
    elif arguments.role == "task":
        print(json.dumps(run_task(arguments.folder, arguments)))
    else:
        found = machine()
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            figures = measure(Path(folder), arguments)
        print(f"{described(found)}.\n\n{json.dumps(figures, indent=2)}")
        print(f"\nPages a second: {figures['requests'] / figures['wall_seconds']:.0f}; bound {BOUND_MIB} MiB.")
        if arguments.json:
            arguments.json.write_text(json.dumps({"machine": found, **figures}, indent=2), encoding="utf-8")
        raise SystemExit(figures["peak_mib"] > BOUND_MIB)


if __name__ == "__main__":
    main()
