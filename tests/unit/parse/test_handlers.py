"""Parsing a capture, whatever it holds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.config.model import Parse
from recrawl.errors import ConfigurationError
from recrawl.parse import handlers
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import Document, Handler, parse_capture
from recrawl.tables.vocabulary import LinkKind, ParseOutcome

PLAIN = Parse(text_extractor="none")
QUICK = Parse(text_extractor="none", timeout_seconds=0.3)


def capture(body: bytes, content_type: str | None = "text/html", x_robots_tag: str | None = None) -> Capture:
    return Capture("http://e.example/dir/page", content_type, body, x_robots_tag, 0, "recrawl", True)


def spin(document: Document, page: ParsedPage) -> None:
    page.title = "begun"
    while True:
        try:
            time.sleep(0.01)
        except Exception:  # as libraries do
            continue


def fail(document: Document, page: ParsedPage) -> None:
    page.title = "begun"
    raise ValueError("a fault of the handler")


def hoard(document: Document, page: ParsedPage) -> None:
    page.text = "x" * (1 << 31)


SPIN = Handler("mine", frozenset({"text/x-mine"}), spin)
SPIN_INSIDE = Handler("mine", frozenset({"text/x-mine"}), spin, isolated=False)
FAIL = Handler("mine", frozenset({"text/x-mine"}), fail)
HOARD = Handler("mine", frozenset({"text/x-mine"}), hoard)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Install one handler, by its value, in the entry-point group."""

    def installed(value: str) -> None:
        entry = EntryPoint("mine", value, handlers.ENTRY_POINT_GROUP)
        monkeypatch.setattr(handlers, "entry_points", lambda group: EntryPoints([entry]).select(group=group))
        handlers.registry.cache_clear()

    yield installed
    handlers.registry.cache_clear()


def test_an_html_page_gives_everything() -> None:
    body = (
        "<html lang=de><head><title>Die Häfen</title><meta name=author content=Jo><link rel=canonical href=/kanonisch>"
        "<meta name=robots content=nofollow></head><body><p>"
        + "Der Hafen liegt am Rand der Stadt und ist sehr alt. " * 3
        + "<a href=/x>weiter</a></p>"
    ).encode("iso-8859-1")
    page = parse_capture(capture(body, "text/html; charset=iso-8859-1", "noindex"), Parse(text_extractor="resiliparse"))
    assert (page.title, page.author, page.language, page.charset) == ("Die Häfen", "Jo", "de", "windows-1252")
    assert (page.canonical, page.noindex, page.nofollow) == ("http://e.example/kanonisch", True, True)
    assert (page.handler, page.parse_outcome, page.detail) == ("html", ParseOutcome.OK, "")
    assert page.text is not None and "Hafen" in page.text
    assert page.text_checksum is not None and page.quality is not None and 0 < page.quality < 1
    assert [link.kind for link in page.links] == [LinkKind.CANONICAL, LinkKind.A]


def test_without_text_only_the_cheap_part_is_done() -> None:
    body = b"<title>t</title><meta name=author content=Jo><p>words"
    page = parse_capture(Capture("http://e.example/", "text/html", body, None, 0, "recrawl", False), Parse())
    assert (page.title, page.author, page.text, page.text_checksum, page.quality) == ("t", None, None, None, None)


@pytest.mark.parametrize(
    ("body", "content_type", "outcome", "handler"),
    [
        (b"", "text/html", ParseOutcome.EMPTY, "none"),
        (b"\x7fELF", "text/html", ParseOutcome.UNSUPPORTED, "none"),
        (b"%PDF-1.4", "text/html", ParseOutcome.FAILED, "pdf"),
        (b"{}", "application/json", ParseOutcome.UNSUPPORTED, "none"),
        (b"x" * 2000, "text/html", ParseOutcome.PARTIAL, "html"),
        (b"x" * 1000, "text/html", ParseOutcome.OK, "html"),
    ],
)
def test_outcomes(body: bytes, content_type: str, outcome: ParseOutcome, handler: str) -> None:
    page = parse_capture(capture(body, content_type, "noindex"), PLAIN.model_copy(update={"max_parse_bytes": 1000}))
    assert (page.parse_outcome, page.handler, page.noindex) == (outcome, handler, True)
    assert (page.detail != "") == (outcome not in (ParseOutcome.OK, ParseOutcome.EMPTY))


def test_an_installed_handler_parses_its_type_and_its_faults_are_outcomes(install: Callable[[str], None]) -> None:
    install(f"{__name__}:FAIL")
    page = parse_capture(capture(b"x", "text/x-mine"), PLAIN)
    assert (page.handler, page.parse_outcome, page.title) == ("mine", ParseOutcome.FAILED, "begun")
    assert page.detail == "ValueError: a fault of the handler"
    assert parse_capture(capture(b"<p>"), PLAIN).handler == "html"


@pytest.mark.parametrize("size_bytes", [1, handlers.CHILD_BYTES + 1])
@pytest.mark.parametrize("handler", ["SPIN", "SPIN_INSIDE"])
def test_a_handler_that_never_ends_is_cut_off(install: Callable[[str], None], handler: str, size_bytes: int) -> None:
    install(f"{__name__}:{handler}")
    started = time.monotonic()
    page = parse_capture(capture(b"x" * size_bytes, "text/x-mine"), QUICK)
    assert page.parse_outcome is ParseOutcome.TIMEOUT
    assert page.title == "begun", "what was found before is kept"
    assert time.monotonic() - started < 5


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc to know what memory a child inherits")
def test_a_handler_that_takes_too_much_memory_fails(install: Callable[[str], None]) -> None:
    install(f"{__name__}:HOARD")
    page = parse_capture(capture(b"x", "text/x-mine"), PLAIN.model_copy(update={"max_memory_mib": 256}))
    assert (page.parse_outcome, page.text) == (ParseOutcome.FAILED, None)
    assert "256 MiB" in page.detail


def test_a_handler_that_cannot_be_loaded_is_a_fault(install: Callable[[str], None]) -> None:
    install("no_such_module_anywhere:HANDLER")
    with pytest.raises(ConfigurationError, match="mine"):
        parse_capture(capture(b"x"), PLAIN)


def test_a_canonical_link_of_the_headers_counts_for_any_type() -> None:
    header = ('</main>; rel="canonical"',)
    page = parse_capture(Capture("http://e.example/x", "text/plain", b"x", None, 0, "recrawl", True, header), PLAIN)
    assert page.canonical == "http://e.example/main"


@pytest.mark.parametrize(
    ("x_robots_tag", "meta", "expected"),
    [
        ("noarchive", "", True),
        ("otherbot: noarchive", "", False),
        ("recrawl: noarchive, nofollow", "", True),
        (None, "<meta name=recrawl content='noarchive'>", True),
        (None, "<meta name=otherbot content='noarchive'>", False),
        (None, "<meta name=robots content='nocache'>", True),
        ("none", "", False),
    ],
)
def test_noarchive_for_our_agent(x_robots_tag: str | None, meta: str, expected: bool) -> None:
    page = parse_capture(capture(f"<title>t</title>{meta}<p>x".encode(), x_robots_tag=x_robots_tag), PLAIN)
    assert page.noarchive is expected


def test_lone_surrogates_are_replaced() -> None:
    body = b'<script type="application/ld+json">{"author":"J\\ud800o"}</script>'
    author = parse_capture(capture(body), PLAIN).author
    assert author == "J?o"


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 500_000,
        b"<ul><li>" * 200_000,
        b"<p>" + b"".join(b"<b id=%d>" % n for n in range(20_000)) + b"<p>x" * 20_000,
    ],
    ids=["div", "list", "formatting"],
)
def test_nesting_bombs_are_flattened_and_keep_their_links(body: bytes) -> None:
    started = time.monotonic()
    page = parse_capture(capture(body + b"<a href=/x>y</a>"), PLAIN)
    assert page.parse_outcome is ParseOutcome.PARTIAL
    assert "flattened" in page.detail
    assert [link.url for link in page.links] == ["http://e.example/x"]
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "body",
    [b"<div><!--</div>-->" * 200_000, b"<a " + b"".join(b"a%d=1 " % n for n in range(400_000)) + b">"],
    ids=["hidden nesting", "attributes"],
)
def test_loops_inside_of_the_parser_are_killed(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.parse.limits.GRACE_SECONDS", 0.5)
    started = time.monotonic()
    page = parse_capture(capture(body, x_robots_tag="nofollow"), QUICK)
    assert page.parse_outcome is ParseOutcome.TIMEOUT
    assert page.nofollow
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "body",
    [bytes(range(256)) * 20_000, b"<" * 5_000_000, b"<!--" * 1_250_000, b"<p>word " * 600_000],
    ids=["bytes", "brackets", "comments", "paragraphs"],
)
def test_five_megabytes_of_junk_end_within_the_limit(body: bytes) -> None:
    started = time.monotonic()
    parse_capture(capture(body), Parse(text_extractor="none", timeout_seconds=5))
    assert time.monotonic() - started < 15


_PIECES = st.lists(
    st.sampled_from(
        b"<a href=|<base href=|<table>|</p>|<svg>|<template>|<meta http-equiv=refresh content=|<img srcset=|<title>|"
        b"<meta name=robots content=|<?xml |<rss>|<urlset><url><loc>|\xff\xfe|\x00|'|\"|>|&#xD800;|http://[|"
        b"\x1f\x8b\x08|Sitemap: |\xf0\x9f".split(b"|")
    )
    | st.binary(max_size=6),
    max_size=25,
).map(b"".join)
_TYPES = st.sampled_from(
    [
        None,
        "text/html",
        "text/xml",
        "text/plain",
        "application/gzip",
        "application/rss+xml",
        "text/html; charset=utf-16",
    ]
) | st.text(max_size=30)


@settings(deadline=None)
@given(
    body=_PIECES | st.binary(max_size=300),
    content_type=_TYPES,
    x_robots_tag=st.none() | st.text(max_size=40),
    link_header=st.text(max_size=40),
    url=st.sampled_from(["http://e.example/", "http://e.example/robots.txt"]),
)
def test_no_capture_raises_and_every_text_can_be_stored(
    body: bytes, content_type: str | None, x_robots_tag: str | None, link_header: str, url: str
) -> None:
    page = parse_capture(
        Capture(url, content_type, body, x_robots_tag, 0, "recrawl", True, (link_header,)),
        Parse(text_extractor="resiliparse"),
    )
    # What is no PDF behind its first bytes can't be read at all.
    assert page.parse_outcome is not ParseOutcome.FAILED or page.handler == "pdf", page.detail
    texts = [page.title, page.author, page.text, page.published_at_text, page.detail, page.canonical]
    for link in page.links:
        texts += [link.url, link.raw, link.anchor_text, link.rel]
    for text in texts:
        (text or "").encode("utf-8")
