"""What the canonical form promises for every URL."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import assume, example, given

from recrawl.config.model import Urls
from recrawl.errors import ConfigurationError
from recrawl.urls.canonical import Canonicalizer, UrlParts, canonical_with, host_of, parse, same, split
from recrawl.urls.keys import url_id
from recrawl.urls.rules import OPTIONAL_RULES, RULES, Rule
from tests.strategies import any_text, references, web_urls

CANONICALIZER = Canonicalizer()


@given(web_urls)
@example("http://example.com/..;sid=1/a")
@example("http://0x7f.1../")
@example("http://example.com/?&&")
@example("http://example.com/?a&utm_source=1#x")
def test_canonical_is_idempotent(url: str) -> None:
    once = CANONICALIZER.canonical(url)
    assume(once is not None)
    assert once is not None
    assert CANONICALIZER.canonical(once) == once
    assert parse(once) == once
    assert once.isascii()


@given(web_urls, references)
def test_a_joined_reference_is_the_reference_joined(base: str, reference: str) -> None:
    absolute = parse(reference, base)
    expected = None if absolute is None else CANONICALIZER.canonical(absolute)
    assert CANONICALIZER.canonical(reference, base) == expected


@given(web_urls)
def test_what_is_requested_has_the_identity_of_the_url(url: str) -> None:
    requested = CANONICALIZER.request_form(url)
    assume(requested is not None)
    assert requested is not None
    assert CANONICALIZER.canonical(requested) == CANONICALIZER.canonical(url)


@given(web_urls)
def test_keys_are_those_of_the_canonical_form(url: str) -> None:
    identity = CANONICALIZER.canonical(url)
    assume(identity is not None)
    assert identity is not None
    again = CANONICALIZER.canonical(identity)
    assert again is not None
    assert host_of(again) == host_of(identity)
    assert url_id(again) == url_id(identity)
    parts = split(identity)
    query = f"?{parts.query}" if parts.query else ""
    assert f"{parts.scheme}://{parts.host}{parts.path}{query}" == identity


@given(any_text)
def test_any_text_is_answered(text: str) -> None:
    for base in (None, "http://example.com/a/"):
        identity = CANONICALIZER.canonical(text, base)
        assert identity is None or identity.startswith(("http://", "https://", "ftp://"))
        assert (CANONICALIZER.request_form(text, base) is None) == (identity is None)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_example_of_each_rule_holds(rule: Rule) -> None:
    """Each rule turns its own `before` into its own `after`, alone if it is optional."""
    only = [rule.name] if rule.optional else []
    assert canonical_with(rule.before, only) == rule.after
    if rule.optional:
        others = [name for name in OPTIONAL_RULES if name != rule.name]
        assert canonical_with(rule.before, others) != rule.after


def test_every_rule_says_what_it_does() -> None:
    assert [rule.name for rule in RULES if not rule.what.endswith(".")] == []
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_url_id_of_a_known_url_stays_what_it_is() -> None:
    # Spark: SELECT xxhash64('http://example.com/'); stored ids depend on it.
    assert url_id("http://example.com/") == 1313694010835035713


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.com/b;jsessionid=A1?x=1", "http://example.com/b?x=1"),
        ("http://example.com/b;v=2/c;SID=1;w=3", "http://example.com/b;v=2/c;w=3"),
        ("http://example.com/?UTM_Medium=a&id=1&utm=2", "http://example.com/?id=1&utm=2"),
        ("http://example.com/?aspsessionidqq=a", "http://example.com/"),
        ("http://example.com/?sids=1", "http://example.com/?sids=1"),
        ("http://example.com/?q=sid=1", "http://example.com/?q=sid=1"),
        ("http://example.com/;sid/", "http://example.com/;sid/"),
        ("http://example.com./", "http://example.com/"),
        ("http://1.2.3.4.5../", None),
        ("http://.../", None),
        ("mailto:ann@example.com", None),
        ("ftp://example.com:21/a", "ftp://example.com/a"),
        ("http://example.com/\ud800", "http://example.com/%EF%BF%BD"),
    ],
)
def test_canonical(url: str, expected: str | None) -> None:
    assert CANONICALIZER.canonical(url) == expected


def test_the_request_keeps_order_and_escapes_as_found() -> None:
    url = "http://ann@example.com/%7Ea%c3?b=2&a=1&gclid=x#top"
    assert CANONICALIZER.request_form(url) == "http://example.com/%7Ea%c3?b=2&a=1"
    assert CANONICALIZER.canonical(url) == "http://example.com/~a%C3?a=1&b=2"
    assert CANONICALIZER.request_form("tel:1") is None


def test_configured_parameters_are_dropped_and_no_others() -> None:
    canonicalizer = Canonicalizer.from_settings(Urls(drop_parameters=["ref", "x.y*"]))
    assert canonicalizer.canonical("http://a.example/?REF=1&utm_source=2&x.yz=3&xAy=4") == (
        "http://a.example/?utm_source=2&xAy=4"
    )
    nothing = Canonicalizer.from_settings(Urls(drop_parameters=[]))
    assert nothing.canonical("http://a.example/?sid=1") == "http://a.example/?sid=1"


def test_optional_rules_are_on_or_off_by_configuration() -> None:
    canonicalizer = Canonicalizer.from_settings(Urls(optional_rules=["trailing_dot"]))
    assert canonicalizer.canonical("http://ann@a.example./?b&a&sid=1#x") == "http://a.example/?b&a&sid=1"
    with pytest.raises(ConfigurationError, match="sort_querry"):
        Canonicalizer.from_settings(Urls(optional_rules=["sort_querry"]))


def test_an_unknown_rule_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="sort_querry"):
        Canonicalizer(optional_rules=["sort_querry"])


def test_a_canonicalizer_travels_to_the_workers() -> None:
    copy = pickle.loads(pickle.dumps(CANONICALIZER))
    url = "http://example.com/%7ea;sid=1?b&a&utm_x=1#f"
    assert copy.canonical(url) == CANONICALIZER.canonical(url) == "http://example.com/~a?a&b"


def test_parts() -> None:
    assert split("https://example.com:8443/a/b?x=1?") == UrlParts("https", "example.com:8443", "/a/b", "x=1?")
    assert host_of("http://[::1]:81/") == "[::1]:81"
    with pytest.raises(ValueError, match="substring"):
        host_of("nonsense")


def test_what_is_no_url_is_the_same_as_nothing() -> None:
    assert not same("http://", "http://")
    assert same("HTTP://example.com", "http://example.com/?#")
