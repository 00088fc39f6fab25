"""Web monitors: terms, selectors, prefixes, and what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from recrawl.config.model import Monitor, Parse
from recrawl.errors import ConfigurationError
from recrawl.parse.capture import Capture, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.parse.monitor import check_monitors

URL = "http://shop.test/offers/one"
PAGE = b"""<title>Recall of toaster T-800</title><body><script>var x = "smoke detector"</script>
    <p>All units   sold\nin May are called back.</p><div class="price old">19.99</div></body>"""


def parsed(monitors: list[Monitor], body: bytes = PAGE, kind: str = "text/html", want_text: bool = True) -> ParsedPage:
    """A capture of `URL`, parsed with these monitors and without main text."""
    settings = Parse(monitors=monitors, text_extractor="none")
    return parse_capture(Capture(URL, kind, body, None, 0, "recrawl", want_text), settings)


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        (["recall"], ["m: recall"]),
        (["RECALL OF  Toaster", "sold in may"], ["m: RECALL OF  Toaster", "m: sold in may"]),
        (["call"], []),
        (["toast"], []),
        (["t-800"], ["m: t-800"]),
        (["smoke detector"], []),
        ([".*"], []),
    ],
)
def test_terms_are_whole_words_of_what_a_reader_sees(terms: list[str], found: list[str]) -> None:
    assert parsed([Monitor(name="m", terms=terms)]).watched == found


def test_selectors_match_elements() -> None:
    monitor = Monitor(name="m", selectors=["div.price.old", "div.sale"], terms=["units"])
    assert parsed([monitor]).watched == ["m: units", "m: div.price.old"]


def test_only_pages_under_a_prefix_are_watched() -> None:
    here = Monitor(name="here", terms=["recall"], prefixes=["http://other.test/", "http://shop.test/offers/"])
    there = Monitor(name="there", terms=["recall"], prefixes=["http://shop.test/news/"])
    assert parsed([there, here]).watched == ["here: recall"]
    assert parsed([there]).watched == []


def test_plain_text_is_watched_for_terms_alone() -> None:
    monitor = Monitor(name="m", terms=["called back"], selectors=["p"])
    assert parsed([monitor], b"They are called\n  back.", "text/plain").watched == ["m: called back"]


def test_content_seen_before_is_not_watched_again() -> None:
    assert parsed([Monitor(name="m", terms=["recall"])], want_text=False).watched == []


def test_a_monitor_needs_something_to_watch_for() -> None:
    for keys in ({}, {"terms": [" "]}, {"terms": ["a", ""]}):
        with pytest.raises(ValidationError, match="needs terms or selectors"):
            Monitor.model_validate({"name": "m", **keys})
    with pytest.raises(ConfigurationError, match=r"'p\.\.x' of the monitor 'm' is no CSS selector"):
        check_monitors([Monitor(name="m", selectors=["p", "p..x"])])
