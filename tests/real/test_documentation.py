"""One round over real documentation in several languages, looked at from all sides."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import lxml.html
import pytest

from recrawl.urls.canonical import Canonicalizer
from tests.real import validators
from tests.real.browser import browser_program, seen
from tests.real.crawl import DocumentationCrawl, Fetched
from tests.real.documentation import DocumentationWeb, installed_sites, nginx_program, title_in_file

# The round needs a JVM; the first test waits for it.
pytestmark = pytest.mark.timeout(900)

LEAST_SITES = 6
PAGES_A_SITE = 14
BROWSER_PAGES = 3
MISSING = "/no-such-page.html"
FORBIDDEN = ("http://python-docs.test:{port}/whatsnew/3.11.html", "http://aptitude-docs.test:{port}/ch01s01.html")

#: Shorter texts are headings and lists of links: no language can be told from them.
_LEAST_CHARACTERS = 500
_SPACE = re.compile(r"\s+")


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentationCrawl]:
    """The crawl after one round of some pages of each site."""
    if nginx_program() is None:
        pytest.skip("nginx is not installed")
    sites, missing = installed_sites()
    if len(sites) < LEAST_SITES:
        pytest.skip(f"of the documentation packages these are not installed: {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("documentation")
    with DocumentationWeb(sites, folder / "nginx") as web:
        seeds = [web.url(site, path) for site in sites for path in spread(site.paths)]
        seeds += [web.url(sites[0], MISSING), *(url.format(port=web.port) for url in FORBIDDEN)]
        crawl = DocumentationCrawl(web, folder)
        crawl.run_round(seeds, "--max-urls", str(len(seeds)))
        yield crawl


@pytest.fixture(scope="module")
def fetched(crawl: DocumentationCrawl) -> list[Fetched]:
    """The final tries."""
    return crawl.fetched()


def spread(paths: list[str]) -> list[str]:
    """The first page and others from all over a site."""
    return list(dict.fromkeys(paths[:1] + paths[1 :: max(1, len(paths) // PAGES_A_SITE)]))[:PAGES_A_SITE]


def test_the_round_is_closed_and_its_laws_hold(crawl: DocumentationCrawl) -> None:
    assert [row["round_state"] for row in crawl.reader.rounds()] == ["closed"]
    assert crawl.broken_laws() == []


def test_nothing_is_lost(crawl: DocumentationCrawl, fetched: list[Fetched]) -> None:
    assert crawl.lost_urls() == []
    sites = crawl.web.sites
    pages = sum(len(spread(site.paths)) for site in sites)
    assert Counter(item.outcome for item in fetched) == {
        "ok": pages,
        "not_found": 1,
        "robots_denied": len(FORBIDDEN),
    }


def test_the_files_are_stored_as_they_are(crawl: DocumentationCrawl, fetched: list[Fetched]) -> None:
    assert crawl.wrong_bodies(fetched) == []


def test_robots_txt_comes_first_and_is_obeyed(crawl: DocumentationCrawl) -> None:
    by_host = defaultdict(list)
    for host, path, _, agent in crawl.web.requests():
        assert agent == "recrawl/0.1 (+tests@example.org)"
        by_host[host].append(path)
    assert len(by_host) >= LEAST_SITES
    for site in crawl.web.sites:
        asked = by_host[site.host]
        assert (asked[0], asked.count("/robots.txt")) == ("/robots.txt", 1)
        assert [path for path in asked if path.startswith(site.disallowed)] == []


def test_titles_are_those_of_the_files(crawl: DocumentationCrawl, fetched: list[Fetched]) -> None:
    found = {item.url: item.title for item in fetched if item.status == 200}
    expected = {url: title_in_file(crawl.web.page(url)[1]) for url in found}
    assert found == expected


def test_texts_stand_in_the_files(crawl: DocumentationCrawl, fetched: list[Fetched]) -> None:
    checked, strange = 0, []
    for item in fetched:
        if item.status == 200:
            data = crawl.web.page(item.url)[1].read_bytes()
            whole = squeezed(lxml.html.fromstring(data, parser=lxml.html.HTMLParser(encoding="utf-8")).text_content())
            lines = first_lines(item)
            checked += len(lines)
            strange += [(item.url, line) for line in lines if squeezed(line) not in whole]
    assert checked > PAGES_A_SITE * LEAST_SITES
    # The extractor is a judge of what is prose: here and there it leaves a term out of a sentence.
    assert len(strange) <= checked * 0.05, strange


def test_languages_are_told(crawl: DocumentationCrawl, fetched: list[Fetched]) -> None:
    by_host: dict[str, Counter[str | None]] = defaultdict(Counter)
    for item in fetched:
        if item.text and len(item.text) >= _LEAST_CHARACTERS:
            by_host[crawl.web.page(item.url)[0].host][item.language] += 1
    told = {site.host: by_host[site.host].most_common(1)[0][0] for site in crawl.web.sites if by_host[site.host]}
    assert told == {site.host: site.language for site in crawl.web.sites if by_host[site.host]}
    assert len(told) >= LEAST_SITES


@pytest.mark.parametrize("judge", [validators.by_our_check, validators.by_warcio, validators.by_cdxj_indexer])
def test_every_warc_file_is_accepted(crawl: DocumentationCrawl, judge: Callable[[Path], list[str]]) -> None:
    paths = crawl.warc_paths()
    assert paths
    assert {path.name: judge(path) for path in paths} == {path.name: [] for path in paths}


def test_jwarc_accepts_every_warc_file(crawl: DocumentationCrawl) -> None:
    jar = validators.jwarc_jar()
    if jar is None:
        pytest.skip(f"jwarc is not there: {validators.JAR_VARIABLE} names no jar, and Maven could not fetch it")
    for path in crawl.warc_paths():
        assert validators.by_jwarc(path, jar) == []


def test_a_browser_sees_the_same_links_and_text(
    crawl: DocumentationCrawl, fetched: list[Fetched], tmp_path: Path
) -> None:
    program = browser_program()
    if program is None:
        pytest.skip("Chromium is not installed")
    canonicalizer = Canonicalizer()
    long_pages = sorted((item for item in fetched if len(item.text or "") > 2_000), key=lambda item: item.url)
    pages = {crawl.web.page(item.url)[0].host: item for item in long_pages}
    chosen = [pages[host] for host in sorted(pages)[:: max(1, len(pages) // BROWSER_PAGES)]]
    assert len(chosen) >= BROWSER_PAGES
    checked, strange = 0, []
    for number, item in enumerate(chosen):
        shown = seen(program, crawl.web, item.url, tmp_path / f"profile{number}")
        theirs = {canonicalizer.canonical(link) for link in shown.links if link.startswith(("http://", "https://"))}
        id_of_page = f"url_id('{item.url.replace(chr(39), 2 * chr(39))}')"
        taken = crawl.rows(f"SELECT dst_url FROM links WHERE src_url_id = {id_of_page} AND link_kind IN ('a', 'area')")
        turned_away = crawl.rows(f"SELECT dst_url FROM rejects WHERE src_url_id = {id_of_page}")
        ours = {row["dst_url"] for row in taken}
        assert len(theirs) > 3
        # A link into the page itself is none that leads anywhere.
        assert theirs - ours - {row["dst_url"] for row in turned_away} <= {item.url}, item.url
        assert ours - theirs == set(), item.url
        visible = squeezed(shown.text)
        lines = first_lines(item)
        checked += len(lines)
        strange += [line for line in lines if squeezed(line) not in visible]
    assert len(strange) <= checked / 4, strange


def first_lines(item: Fetched) -> list[str]:
    """The first sentences of a page's text, without the marks that the extractor puts before items.

    Rows of tables are left out: it puts marks between their cells too.
    """
    lines = [line.removeprefix("- ") for line in (item.text or "").splitlines() if not line.startswith("|")]
    return [line for line in lines if len(line) > 60][:3]


def squeezed(text: str) -> str:
    """A text without any white space, which readers of HTML treat differently."""
    return _SPACE.sub("", text)
