"""One web and one crawl of three rounds for all tests here that only look; others work on copies."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recrawl.spark.application import run_round
from tests.rounds.crawl import HOSTS, ROUND_IDS, Crawl
from tests.web import MisbehavingWeb
from tests.web.audit import Audit

ROBOTS = "User-agent: *\nDisallow: /page/3.html\nSitemap: {root}/sitemap.xml\n"


@pytest.fixture(scope="session")
def web() -> Iterator[MisbehavingWeb]:
    """Three hosts that link to each other, with robots.txt, a redirect, a duplicate and faults."""
    with MisbehavingWeb(HOSTS, pages=12) as running:
        for place, host in enumerate(HOSTS):
            others = tuple(other for other in HOSTS if other != host)
            root = running.url(host, "").rstrip("/")
            running.site(host, links_to=others, robots=ROBOTS.format(root=root) if place == 0 else 404)
        yield running


@pytest.fixture(scope="session")
def crawl_and_audit(web: MisbehavingWeb, tmp_path_factory: pytest.TempPathFactory) -> tuple[Crawl, Audit]:
    """A crawl of three rounds, and what the server saw of it; one page changes before the third."""
    crawl = Crawl(tmp_path_factory.mktemp("three"), web)
    web.clear_log()
    for number in range(3):
        if number == 2:
            web.change(HOSTS[1], "/page/1.html")
        form = crawl.form()
        run_round(crawl.configuration(form), form, ROUND_IDS[number])
    return crawl, web.audit()


@pytest.fixture(scope="session")
def three_rounds(crawl_and_audit: tuple[Crawl, Audit]) -> Crawl:
    """The crawl of three rounds, to look at."""
    return crawl_and_audit[0]


@pytest.fixture(scope="session")
def served(crawl_and_audit: tuple[Crawl, Audit]) -> Audit:
    """What the server saw of the three rounds."""
    return crawl_and_audit[1]


@pytest.fixture
def copy_of_three_rounds(three_rounds: Crawl, tmp_path: Path) -> Crawl:
    """A copy that a test may change."""
    shutil.copytree(three_rounds.root, tmp_path / "crawl")
    return Crawl(tmp_path, three_rounds.web)


@pytest.fixture
def new_crawl(web: MisbehavingWeb, tmp_path: Path) -> Callable[[str], Crawl]:
    """Makes crawls that know nothing yet."""

    def make(name: str) -> Crawl:
        folder = tmp_path / name
        folder.mkdir()
        return Crawl(folder, web)

    return make
