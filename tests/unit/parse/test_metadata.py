"""OpenGraph and linked data of web pages."""

from __future__ import annotations

from recrawl.config.model import Parse
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.parse.html import parse_html
from recrawl.parse.metadata import MAX_ENTRIES, MAX_ENTRY_CHARACTERS, Statements
from recrawl.tables.vocabulary import LinkKind

PAGE = """<head><meta property="og:title" content="The harbour"><meta property="og:image" content="/a.png">
<meta property="article:published_time" content="2024-05-06"><meta name="Description" content=" On  ships ">
<meta name="viewport" content="width=device-width"><meta property="og:title" content="Second">
<script type="application/ld+json">{"@context": "https://schema.org", "@type": ["Product", "Thing"], "name": "Boat",
 "sku": 17, "offers": [{"price": 9.5, "priceCurrency": "EUR", "url": "/buy"}], "author": {"name": "Ann"},
 "url": "https://e.example/boat", "sameAs": ["http://f.example/boat", "urn:x"], "isbn": true}</script></head>
<body><p>text <a href=/x>x</a>"""


def parsed(settings: Parse, want_text: bool = True) -> ParsedPage:
    return parse_capture(
        Capture("http://e.example/dir/", "text/html", PAGE.encode(), None, 0, "recrawl", want_text), settings
    )


def test_what_a_page_states() -> None:
    page = parsed(Parse(text_extractor="none"))
    assert page.metadata == {
        "og:title": "The harbour",
        "og:image": "/a.png",
        "article:published_time": "2024-05-06",
        "description": "On ships",
        "ld:type": "Product Thing",
        "ld:name": "Boat",
        "ld:sku": "17",
        "ld:offers.price": "9.5",
        "ld:offers.priceCurrency": "EUR",
        "ld:author.name": "Ann",
    }
    assert (page.author, page.published_at_text, len(page.links)) == ("Ann", "2024-05-06", 1)
    assert parsed(Parse(text_extractor="none"), want_text=False).metadata == {}


def test_linked_addresses_are_links_where_configured() -> None:
    page = parsed(Parse(text_extractor="none", linked_data_links=True))
    assert [(link.url, link.kind, link.rel) for link in page.links[1:]] == [
        ("http://e.example/buy", LinkKind.LINK, "json-ld"),
        ("https://e.example/boat", LinkKind.LINK, "json-ld"),
        ("http://f.example/boat", LinkKind.LINK, "json-ld"),
    ]


def test_what_is_kept_is_bounded() -> None:
    metas = "".join(f"<meta property='og:k{number}' content='{'v' * 2_000}'>" for number in range(200))
    kept = Statements(parse_html(metas)).all().metadata
    assert len(kept) == MAX_ENTRIES
    assert {len(value) for value in kept.values()} == {MAX_ENTRY_CHARACTERS}


def test_linked_data_of_any_shape_is_survived() -> None:
    deep = "[" * 500 + "]" * 500
    for data in ("3", "null", "[[]]", '{"offers": [], "author": [[]], "@type": {}}', '{"url": ' + deep + "}", deep):
        html = f"<script type=application/ld+json>{data}</script>"
        assert Statements(parse_html(html)).all().author is None
        page = parse_capture(
            Capture("http://e.example/", "text/html", html.encode(), None, 0, "recrawl", True),
            Parse(text_extractor="none", linked_data_links=True),
        )
        assert page.links == []
