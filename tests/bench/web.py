"""The web that benchmarks crawl: simweb where it is given, else generated pages; loopback only.

python -m tests.bench.web --simweb PATH     starts it and prints how to reach it
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import generated_web

_START_SECONDS = 60.0


@dataclass(frozen=True)
class BenchWeb:
    """A running web.

    Attributes:
        name: what it is, for the report.
        port: its port on 127.0.0.1; it also answers as an HTTP proxy there.
        pid: its process, whose CPU is not the crawler's.
        hosts_file: its names, for `dns.hosts_file`.
    """

    name: str
    port: int
    pid: int
    hosts_file: Path
    is_simweb: bool

    def urls(self, count: int) -> list[str]:
        """`count` URLs of pages, round-robin over the hosts."""
        if self.is_simweb:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/__urls?n={count}", timeout=60) as answer:
                text: str = answer.read().decode()
            return text.split()
        hosts = generated_web.host_names()
        return [f"http://{hosts[n % len(hosts)]}:{self.port}/p/{n // len(hosts)}" for n in range(count)]


@contextmanager
def bench_web(folder: Path, simweb: Path | None = None, hosts: int = 1_000, seed: int = 1) -> Iterator[BenchWeb]:
    """Serve while the block runs.

    Args:
        folder: for the built program, the hosts file and the log.
        simweb: its program, or its folder of Go source; None: generated pages.
        hosts, seed: the size of simweb's world and its random seed.
    """
    port = free_port()
    hosts_file = folder / "hosts"
    if simweb is None:
        names = generated_web.host_names()
        hosts_file.write_text("".join(f"127.0.0.1 {name}\n" for name in names), encoding="utf-8")
        command = [sys.executable, "-m", "tests.bench.generated_web", "--port", str(port)]
        name, probe = f"generated pages on {len(names):,} hosts", f"http://127.0.0.1:{port}/robots.txt"
    else:
        world = [str(simweb_program(simweb, folder)), "-seed", str(seed), "-hosts", str(hosts), "-profile", "bench"]
        world += ["-linkport", str(port), "-hosts-ip", "127.0.0.1"]
        with hosts_file.open("wb") as file:
            subprocess.run([*world, "-print-hosts"], stdout=file, check=True)
        command = [*world, "-listen", f"127.0.0.1:{port}"]
        name, probe = f"simweb, {hosts:,} hosts, profile bench, seed {seed}", f"http://127.0.0.1:{port}/__stats"
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for(probe, process)
        yield BenchWeb(name, port, process.pid, hosts_file, simweb is not None)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def simweb_program(simweb: Path, folder: Path) -> Path:
    """simweb's program: itself, or built from the folder of its source."""
    if simweb.is_file():
        return simweb.resolve()
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not (simweb / "main.go").is_file() or not Path(go).is_file():
        raise SystemExit(f"{simweb} is neither simweb's program nor, with Go installed, the folder of its source.")
    program = folder.resolve() / "simweb"
    subprocess.run([go, "build", "-o", str(program), "."], cwd=simweb, check=True)
    return program


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until `url` answers; SystemExit when the process ends or takes too long."""
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("The web to measure against does not start; its log lies beside its hosts file.")


def crawl_settings(web: BenchWeb, root: Path, extractor: str) -> str:
    """A configuration file's text: this web, politeness off."""
    return (
        f'[storage]\nroot = "{root}"\n\n[dns]\nhosts_file = "{web.hosts_file}"\n\n'
        f'[parse]\ntext_extractor = "{extractor}"\n\n'
        '[fetch]\nallowed_private_ranges = ["127.0.0.0/8"]\nmin_delay_seconds = 0\nip_gap_seconds = 0\n'
    )


def machine() -> dict[str, object]:
    """What the figures were measured on: cores, processor, memory, and the load before."""
    processor = "unknown"
    cpuinfo, meminfo = Path("/proc/cpuinfo"), Path("/proc/meminfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = models[0] if models else processor
    memory_gib = None
    if meminfo.exists():
        memory_gib = round(int(meminfo.read_text().split()[1]) / (1 << 20), 1)
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": processor,
        "memory_gib": memory_gib,
        "load_before": [round(value, 2) for value in os.getloadavg()],
        "python": sys.version.split()[0],
    }


def described(found: dict[str, object]) -> str:
    """The machine in one line."""
    return (
        f"{found['cores']} cores of {found['processor']}, {found['memory_gib']} GiB of memory, Python "
        f"{found['python']}; load before (1, 5, 15 minutes): {found['load_before']}"
    )


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simweb", type=Path, help="simweb's program, or the folder of its source")
    parser.add_argument("--urls", type=int, default=0, metavar="N", help="also print N URLs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        contextlib.suppress(KeyboardInterrupt),
        tempfile.TemporaryDirectory() as folder,
        bench_web(Path(folder), arguments.simweb) as web,
    ):
        print(f"{web.name}: 127.0.0.1:{web.port}, hosts file {web.hosts_file}", flush=True)
        for url in web.urls(arguments.urls) if arguments.urls else []:
            print(url, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
