"""Pages a second and core of parsing, and URLs a second of canonical form, key and filters.

    python -m tests.bench.parse --simweb PATH --documents FOLDER --pages 400 --json FILE

- links: charset, tree, directives, title, links, then their identity, filters and scope; no text.
- resiliparse, trafilatura: the same, with the main text, language, author and date by that extractor.
- urls: canonical form, id and all filters of the links that those pages hold.

Over generated pages, and where they are given over pages of simweb and HTML files of a folder. One
process and one thread, so that a second of CPU is a second of a core.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from recrawl.config.model import Parse, Urls
from recrawl.parse.capture import Capture
from recrawl.parse.handlers import parse_capture
from recrawl.parse.resolve import TargetJudge, resolve_links
from recrawl.tables.vocabulary import Scope
from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.filters import UrlFilters
from recrawl.urls.keys import url_id
from recrawl.urls.scope import ScopeSet
from tests.bench import generated_web
from tests.bench.web import bench_web, described, machine

#: What issue 5 asks for: pages a second and core, URLs a second and core.
AIMS = {"links": 300.0, "resiliparse": 150.0, "trafilatura": 35.0, "urls": 100_000.0}
_TODAY = date(2026, 11, 30)


class Source(NamedTuple):
    """Pages to parse: what they are, and (URL, Content-Type, body) of each."""

    name: str
    pages: list[tuple[str, str, bytes]]


@dataclass(frozen=True)
class Measured:
    """One figure: `rate` is pages (or URLs) a second of CPU."""

    source: str
    what: str
    count: int
    cpu_seconds: float
    rate: float
    aim: float


def generated(count: int) -> Source:
    """Pages of the generated web."""
    hosts = generated_web.host_names()
    pages = []
    for number in range(count):
        host = hosts[number % len(hosts)]
        body = generated_web.page_body(host, number, 8080)
        pages.append((f"http://{host}:8080/p/{number}", "text/html; charset=utf-8", body))
    return Source("generated", pages)


def of_simweb(program: Path, count: int) -> Source:
    """Pages of simweb, asked for one by one."""
    pages = []
    with TemporaryDirectory() as folder, bench_web(Path(folder), program) as web:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{web.port}"}))
        for url in web.urls(count):
            with opener.open(url, timeout=30) as answer:
                if answer.status == 200 and answer.headers.get_content_type() == "text/html":
                    pages.append((url, answer.headers["Content-Type"], answer.read()))
    return Source("simweb", pages)


def of_folder(folder: Path, count: int) -> Source:
    """HTML files under a folder, the same ones each time."""
    files = sorted(path for path in folder.rglob("*.html") if path.is_file() and not path.is_symlink())
    chosen = random.Random(5).sample(files, min(count, len(files)))
    return Source(
        "documents",
        [(f"http://docs.test/{path.relative_to(folder)}", "text/html", path.read_bytes()) for path in chosen],
    )


def pages_a_second(source: Source, extractor: str) -> Measured:
    """Parse every page and resolve its links; `extractor` as in the configuration."""
    settings = Parse.model_validate({"text_extractor": extractor})
    judge = TargetJudge(
        Canonicalizer.from_settings(Urls()),
        UrlFilters.from_settings(Urls(), _TODAY),
        ScopeSet([(Scope.ANYWHERE, "http://any.test/")]),
    )

    def parse_pages(pages: list[tuple[str, str, bytes]]) -> None:
        for url, content_type, body in pages:
            page = parse_capture(Capture(url, content_type, body, None, 0, "recrawl", want_text=True), settings)
            resolve_links(url, 0, page.links, page.nofollow, judge, settings.max_links_per_page, False)

    # Once over a part for imports, models and caches; those are paid once a process.
    parse_pages(source.pages[:3])
    what = "links" if extractor == "none" else extractor
    return _measured(source, what, len(source.pages), partial(parse_pages, source.pages))


def urls_a_second(source: Source) -> Measured:
    """Canonical form, key and filters of every link of the pages, each occurrence anew."""
    settings = Parse.model_validate({"text_extractor": "none"})
    found = [
        link.url
        for url, content_type, body in source.pages
        for link in parse_capture(Capture(url, content_type, body, None, 0, "recrawl", False), settings).links
    ]
    canonicalizer, filters = Canonicalizer.from_settings(Urls()), UrlFilters.from_settings(Urls(), _TODAY)

    def all_urls() -> None:
        for url in found:
            canonical = canonicalizer.canonical(url)
            if canonical is not None and filters.check(canonical, 1) is None:
                url_id(canonical)
                registered_domain(host_of(canonical))

    return _measured(source, "urls", len(found), all_urls)


def _measured(source: Source, what: str, count: int, work: Callable[[], None]) -> Measured:
    started = _cpu_seconds()
    work()
    seconds = _cpu_seconds() - started
    return Measured(source.name, what, count, round(seconds, 3), round(count / seconds, 1), AIMS[what])


def _cpu_seconds() -> float:
    """CPU of this process and of the children that large documents are parsed in."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def table(figures: list[Measured]) -> Iterator[str]:
    """The figures as a Markdown table."""
    yield "| source | what | pages or URLs | CPU s | a second and core | aim |"
    yield "|---|---|---|---|---|---|"
    for one in figures:
        yield f"| {one.source} | {one.what} | {one.count:,} | {one.cpu_seconds} | {one.rate:,.0f} | {one.aim:,.0f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simweb", type=Path, help="simweb's program, or the folder of its source")
    parser.add_argument("--documents", type=Path, metavar="FOLDER", help="a folder of HTML files")
    parser.add_argument("--pages", type=int, default=400, help="pages of each source (default: %(default)s)")
    parser.add_argument("--only", choices=[*AIMS], nargs="+", default=[*AIMS], help="what is measured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    arguments = parser.parse_args()
    found = machine()
    sources = [generated(arguments.pages)]
    if arguments.simweb:
        sources.append(of_simweb(arguments.simweb, arguments.pages))
    if arguments.documents:
        sources.append(of_folder(arguments.documents, arguments.pages))
    figures = []
    for source in sources:
        for what in arguments.only:
            if what == "urls":
                figures.append(urls_a_second(source))
            else:
                figures.append(pages_a_second(source, "none" if what == "links" else what))
    print(described(found), "", *table(figures), sep="\n")
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"machine": found, "figures": [asdict(one) for one in figures]}, indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
