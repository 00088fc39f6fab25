"""Registered domains and SURTs."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.domains import registered_domain, surt
from tests.strategies import web_urls


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("www.example.com", "example.com"),
        ("example.com:8080", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("a.ann.github.io", "ann.github.io"),
        ("github.io", "github.io"),
        ("com", "com"),
        ("localhost", "localhost"),
        ("www.xn--90ax2c.xn--p1ai", "xn--90ax2c.xn--p1ai"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("[2001:db8::1]:8080", "[2001:db8::1]"),
    ],
)
def test_registered_domain(host: str, expected: str) -> None:
    assert registered_domain(host) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        # What the Internet Archive's `surt` makes of the same URLs.
        ("http://www.example.com/", "com,example)/"),
        ("https://www2.example.co.uk/A/B/?Q=1&a=2", "uk,co,example)/a/b?a=2&q=1"),
        ("http://example.com:8080/a?b", "com,example:8080)/a?b"),
        ("http://127.0.0.1:8080/a/", "1,0,0,127:8080)/a"),
        ("http://[::1]/x", "::1)/x"),
        ("http://wwwexample.com/", "com,wwwexample)/"),
        ("http://example.com/a?b=&b&B=1", "com,example)/a?b&b=&b=1"),
    ],
)
def test_surt(url: str, expected: str) -> None:
    assert surt(url) == expected


@given(web_urls)
def test_every_canonical_url_has_keys(url: str) -> None:
    identity = Canonicalizer().canonical(url)
    assume(identity is not None)
    assert identity is not None
    host = host_of(identity)
    domain = registered_domain(host)
    assert domain in host
    assert registered_domain(domain) == domain
    key = surt(identity)
    assert key == key.lower()
    assert ")/" in key
