"""What follows from a URL's identity."""

from __future__ import annotations

from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.identity import identity_of
from recrawl.urls.keys import url_id


def test_all_that_follows_from_a_url() -> None:
    assert identity_of("http://www.example.co.uk:80/?b=1&a=2", Canonicalizer()) == {
        "url_id": url_id("http://www.example.co.uk/?a=2&b=1"),
        "url": "http://www.example.co.uk/?a=2&b=1",
        "host": "www.example.co.uk",
        "registered_domain": "example.co.uk",
        "request_url": "http://www.example.co.uk/?b=1&a=2",
    }
    assert identity_of("mailto:ann@example.org", Canonicalizer()) is None
