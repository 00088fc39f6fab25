"""Politeness audited from the server's side: one fetch partition against simweb, judged by simweb's own log.

    python -m tests.bench.politeness --simweb FOLDER --profile clean mixed hostile --seeds 1 2 3

Prints a row a run: every violation counter of simweb's `audit.py` must be 0, and every planned URL
must have one final row or one skip. The folder holds simweb's source (and, built, its program).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from recrawl.clock import SystemClock
from recrawl.config.load import load_configuration
from recrawl.config.model import Configuration
from recrawl.fetch.journal import load_journal_rows
from recrawl.fetch.partition import run_partition
from recrawl.storage import Store
from tests.bench.web import free_port, simweb_program, wait_for
from tests.fetch.crawl import ROUND_ID, plan_of, task_of

#: The least gap to a host; simweb's hosts share one address, so that the gap an address is off.
DELAY_SECONDS = 0.1
#: What the client's end of an answer and the server's may differ by: it notices a cut stream late.
SLACK_MS = 20.0

_FETCH = {
    "allowed_private_ranges": ["127.0.0.0/8"],
    "min_delay_seconds": DELAY_SECONDS,
    "latency_factor": 1.0,
    "ip_gap_seconds": 0,
    "max_backoff_seconds": 3,
    "connect_timeout_seconds": 3,
    "read_timeout_seconds": 3,
    "total_timeout_seconds": 8,
}


@dataclass(frozen=True)
class Audited:
    """One run: what simweb's auditor counted, and whether the rows are complete."""

    profile: str
    seed: int
    figures: dict[str, Any]
    unsettled: int
    outcomes: dict[str, int]
    seconds: float

    def violations(self) -> dict[str, int]:
        """Every counter that must be 0."""
        found = self.figures
        # simweb counts from start to start; ours is the gap between answer and request.
        least_gap = found["gap_end_to_start_ms"]["p0"]
        return {
            "concurrency": found["hosts_with_concurrency_over_1"],
            "gap": int(least_gap is not None and least_gap < 1000 * DELAY_SECONDS - SLACK_MS),
            "crawl_delay": found["crawl_delay_violations"],
            "disallowed": found["robots_disallowed_hits"],
            "robots_5xx": found["fetched_while_robots_5xx"],
            "before_robots": found["hosts_fetched_before_robots"],
            "same_url": found["duplicate_fetches_same_url"],
            "unsettled": self.unsettled,
        }


@contextmanager
def audited_web(program: Path, folder: Path, profile: str, seed: int, hosts: int) -> Iterator[tuple[int, Path, Path]]:
    """simweb under a profile: (port, hosts file, log)."""
    port, log = free_port(), folder / "simweb.log"
    world = [str(program), "-seed", str(seed), "-hosts", str(hosts), "-profile", profile]
    world += ["-linkport", str(port), "-hosts-ip", "127.0.0.1"]
    hosts_file = folder / "hosts"
    with hosts_file.open("wb") as file:
        subprocess.run([*world, "-print-hosts"], stdout=file, check=True)
    process = subprocess.Popen(
        [*world, "-listen", f"127.0.0.1:{port}", "-log", str(log)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(f"http://127.0.0.1:{port}/__stats", process)
        yield port, hosts_file, log
    finally:
        process.terminate()
        process.wait(20)


def audit_run(simweb: Path, folder: Path, profile: str, seed: int, *, hosts: int, urls: int, seconds: float) -> Audited:
    """Fetch one partition against simweb and judge it."""
    program = simweb_program(simweb, folder)
    with audited_web(program, folder, profile, seed, hosts) as (port, hosts_file, log):
        address = f"http://127.0.0.1:{port}/__urls?n={urls}&all=1"
        with urllib.request.urlopen(address, timeout=60) as answer:
            plan = plan_of(dict.fromkeys(answer.read().decode().split()))
        settings = _configuration(folder / "root", hosts_file)
        begin = time.monotonic()
        run_partition(task_of(settings, budget_seconds=seconds), plan, SystemClock(), Random(seed))
        took = time.monotonic() - begin
        time.sleep(0.5)  # simweb writes its log every 0.2 s
    auditor = (simweb if simweb.is_dir() else simweb.parent) / "audit.py"
    judged = subprocess.run([sys.executable, str(auditor), str(log)], capture_output=True, text=True, check=True)
    settled, outcomes = _settled(settings)
    wrong = sum(count != 1 for count in settled.values()) + len({item.url_id for item in plan} ^ settled.keys())
    return Audited(profile, seed, json.loads(judged.stdout), wrong, dict(outcomes), took)


def _configuration(root: Path, hosts_file: Path) -> Configuration:
    overrides = {"storage": {"root": str(root)}, "fetch": _FETCH, "dns": {"hosts_file": str(hosts_file)}}
    return load_configuration(environment={}, overrides=overrides)


def _settled(settings: Configuration) -> tuple[Counter[int], Counter[str]]:
    """How often each planned URL was settled; outcomes and skip reasons."""
    store = Store(settings.storage)
    settled: Counter[int] = Counter()
    outcomes: Counter[str] = Counter()
    for row in load_journal_rows(store, ROUND_ID, "fetches"):
        if row["final"]:
            settled[row["planned_url_id"]] += 1
            outcomes[row["outcome"]] += 1
    for row in load_journal_rows(store, ROUND_ID, "skips"):
        settled[row["url_id"]] += 1
        outcomes[f"skip:{row['skip_reason']}"] += 1
    return settled, outcomes


def table(found: list[Audited]) -> str:
    """A Markdown table, a row a run."""
    names = list(found[0].violations())
    lines = [f"| profile | seed | requests | pages | s | {' | '.join(names)} |", "|---" * (5 + len(names)) + "|"]
    for run in found:
        counts = [run.figures["requests"], run.figures["pages_200"], round(run.seconds), *run.violations().values()]
        lines.append(f"| {run.profile} | {run.seed} | {' | '.join(f'{count:,}' for count in counts)} |")
    return "\n".join(lines)


def main() -> None:
    """Run all and say whether any violation was found, by the exit status too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--simweb", type=Path, required=True, help="the folder of simweb's source and its audit.py")
    add("--profile", nargs="+", default=["clean", "mixed", "hostile"])
    add("--seeds", nargs="+", type=int, default=[1, 2, 3])
    add("--hosts", type=int, default=200)
    add("--urls", type=int, default=4_000)
    add("--seconds", type=float, default=60.0, help="time budget of a run")
    add("--json", type=Path, metavar="FILE", help="also write all figures as JSON")
    arguments = parser.parse_args()
    found = []
    for profile in arguments.profile:
        for seed in arguments.seeds:
            with tempfile.TemporaryDirectory() as folder:
                run = audit_run(
                    arguments.simweb, Path(folder), profile, seed,
                    hosts=arguments.hosts, urls=arguments.urls, seconds=arguments.seconds,
                )  # fmt: skip
            found.append(run)
            print(json.dumps({"profile": profile, "seed": seed, **run.violations(), **run.outcomes}), flush=True)
    print(f"\n{table(found)}")
    if arguments.json:
        rows = [{"profile": run.profile, "seed": run.seed, **run.figures, "outcomes": run.outcomes} for run in found]
        arguments.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    raise SystemExit(any(any(run.violations().values()) for run in found))


if __name__ == "__main__":
    main()
