"""parse: from captures in a WARC file to pages, links and rejects."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from jobs.parse import run
from recrawl.parse.html import parse_html
from recrawl.parse.minhash import signature_of
from recrawl.parse.normalised import page_checksum
from recrawl.parse.text import quality
from recrawl.rounds import warc_folder
from recrawl.spark.application import Step, Summary
from recrawl.urls.keys import content_checksum, url_id
from recrawl.warc.writer import PartWriter
from tests.jobs.crawl import (
    BEFORE,
    NOW,
    ROUND,
    JobCrawl,
    plain,
    row_of_content,
    row_of_fetch,
    row_of_host,
    row_of_outlinks,
    row_of_plan,
    row_of_seed,
    row_of_url,
    write,
)
from tests.unit.warc.exchanges import WARCINFO, an_exchange


def _at(path: str) -> str:
    return f"http://a.test/{path}"


HOME, CHANGED, SAME, SEEN_BEFORE, BROKEN, LOST, MOVED, TARGET, OTHER_WAY, SILENT = map(
    _at, ("", "changed", "same", "seen-before", "broken", "lost", "moved", "target", "other-way", "silent")
)
CLOCK, LONG = map(_at, ("clock", "long"))
WARC = f"{warc_folder(ROUND)}/part.warc.gz"
OLDER = "20261101T030000.000000Z"
HTML = "text/html; charset=utf-8"


def _clock(time: str, visitors: int) -> bytes:
    """A page that changes by itself."""
    return (
        f"<title>Clock</title><p>What this page says stays as it is for years and years. It is {time}.</p>"
        f"<a href='/one'>one</a><div class='ad'>Buy {visitors} of them!</div><p>Visitors online: {visitors}</p>"
    ).encode()


BODIES = {
    HOME: b"""<html lang=en><title>Home  page</title><meta property=og:type content=website>
        <link rel=canonical href="http://A.test:80/">
        <p>The text of the page is long enough to be taken for the main text by an extractor of main text.</p>
        <a href="/one">first</a> <a href="one#again">first</a> <a rel="nofollow" href="/two?b=1&a=2">second</a>
        <a href="http://far.test/">far</a> <img src="archive.zip"> <a href="mailto:ann@a.test">mail</a></html>""",
    CHANGED: b"<title>Changed</title><p>New words.</p>",
    SEEN_BEFORE: b"<title>Seen</title><p>These words stand under another address.</p><a href='/one'>one</a>",
    TARGET: b"<title>Target</title><a href='/one'>one</a>",
    BROKEN: b"<title>Broken</title>",
    CLOCK: _clock("30 November 2026, 03:00", 12),
    LONG: f"<title>Long</title><p>{' '.join(f'word{number}' for number in range(60))}</p>".encode(),
}  # fmt: skip


@pytest.fixture(scope="module")
def parsed(crawl: JobCrawl) -> tuple[Step, Summary]:
    """A round of ten captures that was parsed once."""
    file = crawl.application.store.local_path(WARC)
    writer = PartWriter(file, WARCINFO, NOW)
    places = {url: writer.write(an_exchange(body, url=url)) for url, body in BODIES.items()}
    writer.close()
    crawl.know(
        urls=[
            row_of_url(
                CLOCK,
                content_checksum=content_checksum(_clock("29 November 2026, 03:00", 8)),
                content_round_id=OLDER,
                text_checksum=page_checksum(parse_html(_clock("29 November 2026, 03:00", 8)), "Clock"),
            ),
            row_of_url(CHANGED, content_checksum=1, content_round_id=BEFORE, depth=5),
            row_of_url(SAME, content_checksum=2, text_checksum=22, content_round_id=OLDER, seed_tag="own"),
        ],
        outlinks=[row_of_outlinks(SAME, [HOME, CHANGED], 5)],
        contents=[row_of_content(content_checksum(BODIES[SEEN_BEFORE]), _at("elsewhere"))],
        seeds=[row_of_seed(HOME, tags=["news", "daily"])],
        hosts=[row_of_host("a.test", page_count=80, duplicate_count=50)],
    )
    step = crawl.open()

    def captured(url: str, **values: Any) -> dict[str, Any]:
        at = {"warc_file": WARC, "warc_offset": places[url].offset, "content_checksum": content_checksum(BODIES[url])}
        return row_of_fetch(url, **{"content_type": HTML, **at, **values})

    write(
        step,
        fetch_plan=[
            row_of_plan(url, depth=2)
            for url in (HOME, CHANGED, SAME, SEEN_BEFORE, BROKEN, LOST, MOVED, OTHER_WAY, SILENT, CLOCK, LONG)
        ],
        fetches=[
            captured(HOME),
            # Another planned URL led to the same page.
            captured(HOME, planned=OTHER_WAY, hop=1),
            captured(CHANGED),
            captured(CLOCK),
            captured(LONG),
            row_of_fetch(SAME, "not_modified", status=304, revisit=True, warc_file=WARC, warc_offset=0),
            captured(SEEN_BEFORE),
            captured(BROKEN, warc_offset=places[BROKEN].offset + 3),
            row_of_fetch(LOST, warc_file=f"{warc_folder(ROUND)}/none.warc.gz", warc_offset=0, content_checksum=3),
            row_of_fetch(MOVED, "redirect", final=False, redirect_url=TARGET, warc_file=WARC, warc_offset=0),
            captured(TARGET, planned=MOVED, hop=1, x_robots_tag="noindex, nofollow"),
            row_of_fetch(SILENT, "timeout"),
        ],
        robots=[
            {"host": "a.test", "scheme": "http", "robots_outcome": "rules", "body": "Sitemap: http://a.test/map.xml"},
            {"host": "b.test", "scheme": "http", "robots_outcome": "rules", "body": "User-agent: *\nDisallow: /"},
        ],
    )
    return step, run(step)


def test_a_capture_becomes_one_page(parsed: tuple[Step, Summary]) -> None:
    step, summary = parsed
    assert summary == {"pages": 9, "ok": 6, "unchanged": 1, "unreadable": 2}
    pages = step.slice("pages")
    columns = ("url", "title", "parse_outcome", "change_verdict", "content_round_id", "depth", "seed_tag")
    assert plain(pages, *columns) == sorted(
        [
            (HOME, "Home page", "ok", "first", ROUND, 2, "news,daily"),
            (CHANGED, "Changed", "ok", "changed", ROUND, 2, ""),
            (SAME, None, "unchanged", "unchanged", OLDER, 0, "own"),
            (CLOCK, "Clock", "ok", "cosmetic", OLDER, 0, ""),
            (LONG, "Long", "ok", "first", ROUND, 2, ""),
            (SEEN_BEFORE, "Seen", "ok", "first", BEFORE, 2, ""),
            (BROKEN, None, "unreadable", "first", ROUND, 2, ""),
            (LOST, None, "unreadable", "first", ROUND, 2, ""),
            (TARGET, "Target", "ok", "first", ROUND, 2, ""),
        ],
        key=repr,
    )
    home = pages.where(F.col("url_id") == url_id(HOME))
    [(text,)] = plain(home, "text")
    assert text.startswith("The text of the page is long enough")
    # 50 duplicates, held against 80 captures and 20 more.
    assert plain(home, "quality") == [(quality(text, len("firstfirstsecondfarmail"), (), 0.5),)]
    assert plain(home, "charset", "canonical", "handler", "content_checksum", "planned_url_id", "fetched_at") == [
        ("utf-8", HOME, "html", content_checksum(BODIES[HOME]), min(url_id(HOME), url_id(OTHER_WAY)), NOW)
    ]
    assert plain(home, "metadata", "noarchive", "needs_rendering") == [({"og:type": "website"}, False, False)]
    # A content that stands under another address has its text there.
    assert plain(pages.where(F.col("url_id") == url_id(SEEN_BEFORE)), "text") == [(None,)]
    assert plain(pages.where(F.col("url_id") == url_id(TARGET)), "noindex", "nofollow") == [(True, True)]
    # What did not change is not read again: its checksum and its outlinks are those stored.
    same = pages.where(F.col("url_id") == url_id(SAME))
    assert plain(same, "content_checksum", "text_checksum", "handler", "previous_round_id") == [
        (2, 22, "unchanged", BEFORE)
    ]


def test_what_changes_by_itself_is_no_change(parsed: tuple[Step, Summary]) -> None:
    step, _ = parsed
    clock = step.slice("pages").where(F.col("url_id") == url_id(CLOCK))
    text_checksum = page_checksum(parse_html(BODIES[CLOCK]), "Clock")
    assert plain(clock, "content_checksum", "text_checksum", "text", "outlink_count") == [
        (content_checksum(BODIES[CLOCK]), text_checksum, None, 1)
    ]


def test_a_new_text_is_signed_once(parsed: tuple[Step, Summary]) -> None:
    step, _ = parsed
    [(text, checksum)] = plain(step.slice("pages").where(F.col("url_id") == url_id(LONG)), "text", "text_checksum")
    signature = signature_of(text)
    assert signature is not None
    assert plain(step.slice("signatures"), "url_id", "identity_checksum", "bands", "signature") == [
        (url_id(LONG), checksum, signature.bands, signature.words)
    ]


def test_links_are_numbered_and_turned_away_with_reasons(parsed: tuple[Step, Summary]) -> None:
    step, _ = parsed
    links = plain(step.slice("links"), "src_url", "position", "dst_url", "link_kind", "followed", "anchor_text")
    assert links == sorted(
        [
            (HOME, 0, _at("one"), "a", True, "first"),
            (HOME, 1, _at("two?a=2&b=1"), "a", False, "second"),
            (SEEN_BEFORE, 0, _at("one"), "a", True, "one"),
            (CLOCK, 0, _at("one"), "a", True, "one"),
            (TARGET, 0, _at("one"), "a", False, "one"),
            (MOVED, 0, TARGET, "redirect", True, None),
            (_at("robots.txt"), 0, _at("map.xml"), "sitemap", True, None),
        ],
        key=repr,
    )
    two = step.slice("links").where("position = 1")
    assert plain(two, "request_url", "rel", "src_domain", "dst_host", "dst_url_id") == [
        (_at("two?b=1&a=2"), "nofollow", "a.test", "a.test", url_id(_at("two?a=2&b=1")))
    ]
    assert plain(step.slice("rejects"), "src_url_id", "step", "filter", "dst_url") == [
        (url_id(HOME), "parse", "extension", _at("archive.zip")),
        (url_id(HOME), "parse", "scheme", "mailto:ann@a.test"),
        (url_id(HOME), "parse", "scope", "http://far.test/"),
    ]
    counts = step.slice("pages").where("outlink_count > 0")
    assert plain(counts, "url", "outlink_count", "kept_outlink_count") == [
        (HOME, 5, 1), (CLOCK, 1, 1), (SAME, 5, 2), (SEEN_BEFORE, 1, 1), (TARGET, 1, 0),
    ]  # fmt: skip
