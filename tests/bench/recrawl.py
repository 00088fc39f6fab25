"""How much less a recrawl parses than a first round: simweb, its clock moved on between two rounds.

    python -m tests.bench.recrawl --simweb FOLDER --pages 3000 --days 3 30

N seeds of scope page are crawled once, simweb's clock is moved on by that many days, and the same
pages are crawled again (`--force`). It prints seconds and CPU of the step parse of each round, the
share of pages that were unchanged, and how many times faster the second parsed. Pages whose content
changed are parsed in full, so with 70 % unchanged a factor above 3.3 means that some of the rest
need no main text: their new content stands under another address too, or was there before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from recrawl.asking.reader import Reader
from recrawl.bootstrap.places import PROJECT_FOLDER
from recrawl.config.model import Storage
from recrawl.storage import Store
from tests.bench.round import measured_run
from tests.bench.web import BenchWeb, bench_web, crawl_settings, described, machine


@dataclass(frozen=True)
class Parsed:
    """The step parse of one round."""

    days: float
    pages: int
    unchanged: int
    with_text: int
    seconds: float
    cpu_seconds: float

    @property
    def ms_a_page(self) -> float:
        """CPU milliseconds a page."""
        return 1000 * self.cpu_seconds / max(1, self.pages)


def parsed_round(name: str, days: float, folder: Path, web: BenchWeb, arguments: list[str]) -> Parsed:
    """Run a round; what its step parse did and took."""
    environment = {
        **os.environ,
        "RECRAWL_CONFIG": str(folder / "recrawl.toml"),
        "PYTHONPATH": os.pathsep.join([str(PROJECT_FOLDER / "include"), str(PROJECT_FOLDER)]),
        "PYTHONUNBUFFERED": "1",
    }
    found = measured_run(name, [sys.executable, "-m", "recrawl.cli.main", "round", *arguments], environment, web)
    reader = Reader(Store(Storage(root=str(folder / "root"))))
    last = reader.resolve_round("last")["round_id"]
    (row,) = reader.query(
        "SELECT count(*) AS pages, sum(CASE WHEN parse_outcome = 'unchanged' THEN 1 ELSE 0 END) AS unchanged, "
        f"sum(CASE WHEN text IS NOT NULL THEN 1 ELSE 0 END) AS with_text FROM pages WHERE round_id = '{last}'"
    ).to_pylist()
    seconds, cpu_seconds = found.steps["parse"]
    return Parsed(days, row["pages"], row["unchanged"], row["with_text"], round(seconds, 2), round(cpu_seconds, 2))


def crawled(folder: Path, web: BenchWeb, pages: int, days: list[float], extractor: str) -> list[Parsed]:
    """A first round, and one more after each of `days`."""
    (folder / "recrawl.toml").write_text(crawl_settings(web, folder / "root", extractor), encoding="utf-8")
    seeds = folder / "seeds.txt"
    seeds.write_text("".join(f"{url} scope=page\n" for url in web.urls(pages)), encoding="utf-8")
    found = [parsed_round("first round", 0, folder, web, ["--seeds", str(seeds)])]
    for number in days:
        with urllib.request.urlopen(f"http://127.0.0.1:{web.port}/__clock?advance={number}d", timeout=60):
            pass
        found.append(parsed_round(f"after {number:g} days", number, folder, web, ["--force"]))
    return found


def main() -> None:
    """Crawl, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--simweb", type=Path, required=True, help="simweb's program, or the folder of its source")
    add("--pages", type=int, default=3_000)
    add("--days", type=float, nargs="+", default=[3.0], help="days between the rounds")
    add("--extractor", choices=["trafilatura", "resiliparse", "none"], default="trafilatura")
    add("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    arguments = parser.parse_args()
    before = machine()
    with tempfile.TemporaryDirectory() as name, bench_web(Path(name), arguments.simweb) as web:
        found = crawled(Path(name), web, arguments.pages, arguments.days, arguments.extractor)
    print(f"{described(before)}. {arguments.extractor}.\n")
    print("| after days | pages | unchanged | texts | parse s | CPU s | CPU ms a page | times less CPU |")
    print("|---|---|---|---|---|---|---|---|")
    for one in found:
        print(
            f"| {one.days:g} | {one.pages:,} | {one.unchanged / max(1, one.pages):.0%} | {one.with_text:,} | "
            f"{one.seconds} | {one.cpu_seconds} | {one.ms_a_page:.2f} | {found[0].ms_a_page / one.ms_a_page:.1f} |"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in found], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
