"""Pages a second and CPU time a page of whole rounds, step by step, politeness off.

    python -m tests.bench.round --simweb PATH --pages 1000 5000 20000 --extractor trafilatura none
    python -m tests.bench.round --pages --empty --airflow

Each round is the first of a new crawl: N seeds with the default scope, so that links are found,
filtered and folded as in any crawl. It runs as a person runs it, `recrawl round`, in a process of
its own; CPU time is that of the command, its JVM and its Python workers, without the web's. The
time of the first step includes starting Python, the JVM and the session.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from recrawl.bootstrap.places import PROJECT_FOLDER, Places
from recrawl.stages import STEP_NAMES
from tests.bench.process_tree import ProcessTree
from tests.bench.web import BenchWeb, bench_web, crawl_settings, described, machine

_FINISHED = re.compile(r"\b(" + "|".join(STEP_NAMES) + r"): finished in ([\d.]+) s")
_LOG_LINES_SHOWN = 30


@dataclass
class Measured:
    """One round.

    Attributes:
        name: what was run.
        pages: planned URLs with a final row.
        seconds, cpu_seconds: from the start of the command to the end of its last process.
        steps: step → seconds and CPU seconds; the last also holds the command's end.
    """

    name: str
    pages: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    steps: dict[str, tuple[float, float]] = field(default_factory=dict)


def measured_run(name: str, command: list[str], environment: dict[str, str], web: BenchWeb) -> Measured:
    """Run a command that says `<step>: finished in … s` as it goes."""
    tree = ProcessTree(excluded={web.pid})
    found = Measured(name)
    lines: list[str] = []
    started = last_seconds = time.monotonic()
    last_cpu = 0.0
    process = subprocess.Popen(
        command, env=environment, cwd=PROJECT_FOLDER, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            if (match := _FINISHED.search(line)) and match[1] not in found.steps:
                now, cpu = time.monotonic(), tree.cpu_seconds()
                found.steps[match[1]] = (now - last_seconds, cpu - last_cpu)
                last_seconds, last_cpu = now, cpu
                if match[1] == "fetch" and (final := re.search(r"\bfinal (\d+)", line)):
                    found.pages = int(final[1])
        status = process.wait()
    finally:
        process.terminate()
    found.seconds = time.monotonic() - started
    tree.wait_for_orphans()
    found.cpu_seconds = tree.cpu_seconds()
    for step in STEP_NAMES:
        if any(f"{step}: nothing was planned" in line.lower() for line in lines):
            found.steps[step] = (0.0, 0.0)
    found.steps = {step: found.steps[step] for step in STEP_NAMES if step in found.steps}
    if status or len(found.steps) != len(STEP_NAMES):
        tail = "\n".join(lines[-_LOG_LINES_SHOWN:])
        raise SystemExit(f"{tail}\n{name}: failed with status {status} after {', '.join(found.steps) or 'no step'}.")
    wall, cpu = found.steps["rank"]
    found.steps["rank"] = (wall + found.seconds - (last_seconds - started), cpu + found.cpu_seconds - last_cpu)
    return found


class Bench:
    """Rounds against one web, each crawl in a folder of its own that is removed afterwards."""

    def __init__(self, web: BenchWeb, folder: Path, driver_memory: str) -> None:
        self._web = web
        self._folder = folder
        self._driver_memory = driver_memory

    def first_round(self, pages: int, extractor: str) -> Measured:
        """The first round of a crawl of `pages` seeds."""
        crawl = self._crawl(extractor)
        seeds = crawl / "seeds.txt"
        seeds.write_text("".join(f"{url}\n" for url in self._web.urls(pages)), encoding="utf-8")
        found = self._round(f"{pages:,} pages, {extractor}", crawl, ["--seeds", str(seeds), "--max-urls", str(pages)])
        shutil.rmtree(crawl)
        return found

    def empty_round(self) -> Measured:
        """A round that finds nothing due, in a crawl that has had one."""
        crawl = self._crawl_without_due_urls()
        found = self._round("empty, recrawl round", crawl, [])
        shutil.rmtree(crawl)
        return found

    def empty_airflow_round(self) -> Measured:
        """The same through the DAG: one Airflow process, an application a step."""
        from recrawl.orchestration.environment import airflow_settings, process_environment

        crawl = self._crawl_without_due_urls()
        # An Airflow of its own, made before the clock starts.
        settings = airflow_settings(Places())
        home = self._folder / "airflow"
        settings = {key: value.replace(settings["AIRFLOW_HOME"], str(home)) for key, value in settings.items()}
        base = {**os.environ, **self._environment(crawl)}
        environment = process_environment(base, settings, Places())
        upgrade = "from airflow.utils import db; db.initdb()"
        subprocess.run([sys.executable, "-c", upgrade], env=environment, check=True, capture_output=True)
        command = [sys.executable, "-m", "recrawl.orchestration.single_run", "{}"]
        found = measured_run("empty, through Airflow", command, environment, self._web)
        shutil.rmtree(crawl)
        shutil.rmtree(home, ignore_errors=True)
        return found

    def _crawl_without_due_urls(self) -> Path:
        crawl = self._crawl("none")
        seeds = crawl / "seeds.txt"
        seeds.write_text("".join(f"{url} scope=page\n" for url in self._web.urls(20)), encoding="utf-8")
        self._round("before the empty one", crawl, ["--seeds", str(seeds)])
        return crawl

    def _crawl(self, extractor: str) -> Path:
        crawl = Path(tempfile.mkdtemp(dir=self._folder, prefix="crawl-"))
        text = crawl_settings(self._web, crawl / "root", extractor)
        text += f'\n[spark]\ndriver_memory = "{self._driver_memory}"\n'
        (crawl / "recrawl.toml").write_text(text, encoding="utf-8")
        return crawl

    def _round(self, name: str, crawl: Path, arguments: list[str]) -> Measured:
        command = [sys.executable, "-m", "recrawl.cli.main", "round", *arguments]
        return measured_run(name, command, {**os.environ, **self._environment(crawl)}, self._web)

    @staticmethod
    def _environment(crawl: Path) -> dict[str, str]:
        return {
            "RECRAWL_CONFIG": str(crawl / "recrawl.toml"),
            "PYTHONPATH": os.pathsep.join([str(PROJECT_FOLDER / "include"), str(PROJECT_FOLDER)]),
            "PYTHONUNBUFFERED": "1",
        }


def table(found: list[Measured]) -> str:
    """The rounds as a Markdown table: seconds, and CPU ms a page (CPU seconds where there is no page)."""
    columns = ["round", *STEP_NAMES, "whole", "pages/s"]
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for item in found:
        cells = [_cell(*item.steps[step], item.pages) for step in STEP_NAMES]
        cells.append(_cell(item.seconds, item.cpu_seconds, item.pages))
        rate = f"{item.pages / item.seconds:.0f}" if item.pages else "–"
        lines.append(f"| {item.name} | {' | '.join(cells)} | {rate} |")
    return "\n".join(lines)


def _cell(seconds: float, cpu_seconds: float, pages: int) -> str:
    cpu = f"{1000 * cpu_seconds / pages:.2f} ms" if pages else f"{cpu_seconds:.1f} s"
    return f"{seconds:.1f} s · {cpu}"


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pages", type=int, nargs="*", default=[1_000, 5_000, 20_000], help="sizes of first rounds")
    add("--extractor", nargs="+", choices=["trafilatura", "resiliparse", "none"], default=["trafilatura", "none"])
    add("--empty", action="store_true", help="also a round with nothing due")
    add("--airflow", action="store_true", help="also a round with nothing due, through the DAG")
    add("--simweb", type=Path, help="simweb's program, or the folder of its source; else generated pages")
    add("--driver-memory", default="2g", help="spark.driver_memory")
    add("--folder", type=Path, help="where crawls are made (default: the system's temporary folder)")
    add("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: list[Measured] = []
    before: dict[str, Any] = machine()
    with (
        tempfile.TemporaryDirectory(dir=arguments.folder) as folder,
        bench_web(Path(folder), arguments.simweb) as web,
    ):
        bench = Bench(web, Path(folder), arguments.driver_memory)
        runs: list[Callable[[], Measured]] = [
            partial(bench.first_round, pages, extractor)
            for pages in arguments.pages
            for extractor in arguments.extractor
        ]
        runs += [bench.empty_round] if arguments.empty else []
        runs += [bench.empty_airflow_round] if arguments.airflow else []
        for run in runs:
            found.append(run())
            print(f"{found[-1].name}: {found[-1].seconds:.1f} s", file=sys.stderr, flush=True)
        name = web.name
    print(f"{described(before)}. Web: {name}. Politeness off.\n\n{table(found)}")
    print("\nA cell: seconds · CPU time a page (of the whole round where there is none).")
    if arguments.json:
        figures = {"machine": before, "web": name, "rounds": [asdict(item) for item in found]}
        arguments.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
