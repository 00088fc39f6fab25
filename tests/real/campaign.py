"""Three rounds over all the documentation that is installed, at least 3,000 pages in all.

    python -m tests.real.campaign --json figures.json

Fails (status 1) when a law is broken, a planned URL lost, a stored page not the file that was
served, or a WARC file refused.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.bench.web import described, machine
from tests.real import validators
from tests.real.crawl import DocumentationCrawl
from tests.real.documentation import DocumentationWeb, installed_sites, nginx_program, title_in_file

LEAST_PAGES = 3_000


def problems_of(crawl: DocumentationCrawl) -> dict[str, list[str]]:
    """What is wrong with the crawl, by kind; empty lists when nothing is."""
    fetched = crawl.fetched()
    pages = [item for item in fetched if item.status == 200]
    found = {
        "laws": crawl.broken_laws(),
        "lost": crawl.lost_urls(),
        "bodies": crawl.wrong_bodies(pages),
        "titles": [
            item.url
            for item in pages
            if item.url.endswith(".html") and item.title != title_in_file(crawl.web.page(item.url)[1])
        ],
        "too few": [] if len(pages) >= LEAST_PAGES else [f"{len(pages):,} pages"],
    }
    judges = {
        "our check": validators.by_our_check,
        "warcio": validators.by_warcio,
        "cdxj-indexer": validators.by_cdxj_indexer,
    }
    jar = validators.jwarc_jar()
    if jar is not None:
        judges["jwarc"] = lambda path: validators.by_jwarc(path, jar)
    for name, judge in judges.items():
        found[name] = [f"{path.name}: {text}" for path in crawl.warc_paths() for text in judge(path)]
    return found


def figures_of(crawl: DocumentationCrawl) -> dict[str, Any]:
    """What the rounds did."""
    columns = ("round_number", "planned", "fetched", "skipped_after_plan", "new_urls", "known_after", "warc_bytes")
    fetched = crawl.fetched()
    return {
        "rounds": [{name: row[name] for name in columns} for row in crawl.reader.rounds()],
        "outcomes": dict(Counter(item.outcome for item in fetched)),
        "languages": dict(Counter(item.language for item in fetched if item.text).most_common()),
        "hosts": len({crawl.web.page(item.url)[0].host for item in fetched}),
        "warc_files": len(crawl.warc_paths()),
    }


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--pages", type=int, default=1_200, help="URLs that a round plans at most")
    add("--folder", type=Path, help="where the crawl is made, and left (default: temporary, removed)")
    add("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    arguments = parser.parse_args()
    sites, missing = installed_sites()
    if nginx_program() is None or not sites:
        raise SystemExit(f"Not installed: nginx, or any of {', '.join(missing)}.")
    folder = arguments.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    before = machine()
    seconds = []
    with DocumentationWeb(sites, folder / "nginx") as web:
        crawl = DocumentationCrawl(web, folder)
        # The first round begins where a person would: at the front pages and what they list.
        seeds = [web.url(site, path) for site in sites for path in site.paths[:100]]
        for number in range(1, arguments.rounds + 1):
            started = time.monotonic()
            crawl.run_round(seeds, "--max-urls", str(arguments.pages))
            seconds.append(round(time.monotonic() - started, 1))
            print(f"round {number}: {seconds[-1]} s", file=sys.stderr, flush=True)
        found, problems = figures_of(crawl), problems_of(crawl)
    if arguments.folder is None:
        shutil.rmtree(folder)
    figures = {"machine": described(before), "seconds": seconds, **found, "problems": problems}
    text = json.dumps(figures, indent=2, ensure_ascii=False, default=str)
    print(text)
    if arguments.json:
        arguments.json.write_text(text, encoding="utf-8")
    raise SystemExit(1 if any(problems.values()) else 0)


if __name__ == "__main__":
    main()
