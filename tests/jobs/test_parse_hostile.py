"""parse on documents made to stop it: each ends as a row, none as a failed task."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from jobs.parse import run
from recrawl.rounds import warc_folder
from recrawl.tables.vocabulary import ParseOutcome
from recrawl.urls.keys import content_checksum
from recrawl.warc.writer import PartWriter
from tests.jobs.crawl import NOW, ROUND, JobCrawl, plain, row_of_fetch, row_of_plan, row_of_seed, write
from tests.unit.warc.exchanges import WARCINFO, an_exchange

pytestmark = pytest.mark.timeout(300)

WARC = f"{warc_folder(ROUND)}/hostile.warc.gz"
LIMIT_SECONDS = 2


@dataclass(frozen=True)
class Bomb:
    """A document, and how its parse may end."""

    body: bytes
    outcomes: set[ParseOutcome]
    content_type: str = "text/html; charset=utf-8"
    header: bytes = b""


CUT = {ParseOutcome.PARTIAL, ParseOutcome.TIMEOUT, ParseOutcome.FAILED}
ANY = {ParseOutcome.OK, *CUT}
BOMBS = {
    # 100 MB of tags that all nest.
    "divs": Bomb(b"<div>" * (20 << 20), CUT),
    # Just below the size and the tags from which on a child parses.
    "nesting": Bomb(b"<b><i><u>" * 1_300, ANY),
    # Quadratic in the HTML parser: each attribute is held against all others.
    "attributes": Bomb(b"<p " + b" ".join(b"a%d=1" % n for n in range(40_000)) + b">", ANY),
    # Quadratic for a regular expression that may begin anywhere.
    "prolog": Bomb(b"<?xml" + b" " * 250_000, ANY),
    "link-header": Bomb(b"<title>x</title>", {ParseOutcome.OK}, header=b"Link: " + b"<" * 200_000),
    # Takes more memory than a child may.
    "memory": Bomb(b"<p>x</p>" * 600_000, CUT),
    "entities": Bomb(
        b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">'
        + b"".join(b'<!ENTITY a%d "%s">' % (n, (b"&a%d;" % (n - 1) if n > 1 else b"&a;") * 10) for n in range(1, 12))
        + b"]><urlset><url><loc>&a11;</loc></url></urlset>",
        CUT,
        "application/xml",
    ),
    "pdf": Bomb(b"%PDF-1.4\n1 0 obj<</Type/Pages/Kids[1 0 R]/Count 99>>endobj\n" * 2_000, CUT, "application/pdf"),
    "sound": Bomb(
        b"<title>A sound page</title><a href='/next'>next</a><a href='/print/1'>print</a>", {ParseOutcome.OK}
    ),
}


def test_hostile_documents_end_as_rows(own_crawl: JobCrawl) -> None:
    # Given
    writer = PartWriter(own_crawl.application.store.local_path(WARC), WARCINFO, NOW)
    fetches = []
    for name, bomb in BOMBS.items():
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {bomb.content_type}\r\n".encode() + bomb.header + b"\r\n\r\n"
        place = writer.write(an_exchange(bomb.body, url=f"http://a.test/{name}", response_head=head))
        fetches.append(
            row_of_fetch(
                f"http://a.test/{name}", content_type=bomb.content_type, warc_file=WARC, warc_offset=place.offset,
                content_checksum=content_checksum(bomb.body),
            )
        )  # fmt: skip
    writer.close()
    trap = {"subject": "http://a.test/print/", "override_kind": "trap", "value": "http://a.test/print/7"}
    own_crawl.know(seeds=[row_of_seed("http://a.test/")], overrides=[trap])
    limits = {"timeout_seconds": LIMIT_SECONDS, "max_memory_mib": 32, "text_extractor": "none"}
    step = own_crawl.open(parse=limits)
    write(step, fetch_plan=[row_of_plan(row["url"]) for row in fetches], fetches=fetches)

    # When
    started = time.monotonic()
    summary = run(step)

    # Then
    assert time.monotonic() - started < 120
    assert summary["pages"] == len(BOMBS)
    pages = {url.rpartition("/")[2]: (outcome, title) for url, outcome, title in plain(
        step.slice("pages"), "url", "parse_outcome", "title"
    )}  # fmt: skip
    wrong = {name: pages.get(name) for name, bomb in BOMBS.items() if pages[name][0] not in bomb.outcomes}
    assert wrong == {}
    assert pages["sound"] == ("ok", "A sound page")
    assert plain(step.slice("links"), "dst_url") == [("http://a.test/next",)]
    # A trap that a person accepted is turned away, and so is its test URL.
    rejects = plain(step.slice("rejects"), "dst_url", "filter")
    assert ("http://a.test/print/1", "trap") in rejects
