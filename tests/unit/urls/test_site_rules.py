"""Rules of single sites, alone and behind the rules for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.config.model import Urls
from recrawl.errors import ConfigurationError
from recrawl.tables.vocabulary import OverrideKind
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.site_rules import SiteRule, SiteRules, fault_of, parsed_line

LINES = [
    "alias www.a.org a.org", "alias a.net www.a.org", "alias 192.0.2.7:8080 b.org:443", "ignore-case a.org",
    "index-page a.org/index.html", "index-page a.org/default.asp", "drop-parameter a.org?ref",
    "drop-parameter a.org?from*",
]  # fmt: skip
CANONICALIZER = Canonicalizer.from_settings(Urls(site_rules=LINES))


@pytest.mark.parametrize(
    ("url", "identity", "request_form"),
    [
        ("http://www.a.org/x", "http://a.org/x", "http://a.org/x"),
        ("https://a.net/x?b=1&a=2", "https://a.org/x?a=2&b=1", "https://a.org/x?b=1&a=2"),
        ("https://192.0.2.7:8080/", "https://b.org/", "https://b.org/"),
        ("http://192.0.2.7:8080/", "http://b.org:443/", "http://b.org:443/"),
        ("http://a.org/Dir/INDEX.html?Q=R", "http://a.org/dir/?Q=R", "http://a.org/Dir/INDEX.html?Q=R"),
        ("http://a.org/%c3%89/%7EAnn", "http://a.org/%C3%89/~ann", "http://a.org/%c3%89/%7EAnn"),
        ("http://a.org/default.asp", "http://a.org/", "http://a.org/default.asp"),
        ("http://sub.a.org/Index.html?REF=1&fromage=2&id=3", "http://sub.a.org/Index.html?id=3",
         "http://sub.a.org/Index.html?id=3"),
        ("http://a.org/index.html?ref=1", "http://a.org/", "http://a.org/index.html"),
        ("http://other.org/Index.html?ref=1", "http://other.org/Index.html?ref=1", "http://other.org/Index.html?ref=1"),
    ],
)  # fmt: skip
def test_each_rule_shapes_identity_and_some_the_request(url: str, identity: str, request_form: str) -> None:
    assert CANONICALIZER.canonical(url) == identity
    assert CANONICALIZER.request_form(url) == request_form


hosts = st.sampled_from(["a.org", "www.a.org", "a.net", "192.0.2.7:8080", "b.org:443", "sub.a.org", "c.org"])
paths = st.text("aA/.;=%7Cc3~index.html", max_size=14)
queries = st.lists(st.sampled_from(["ref=1", "from=2", "id=3", "A=b", "REF", "fromage=%41"]), max_size=4)


@given(st.sampled_from(["http", "https"]), hosts, paths, queries)
def test_an_identity_is_its_own_identity_and_that_of_its_request(
    scheme: str, host: str, path: str, query: list[str]
) -> None:
    url = f"{scheme}://{host}/{path}" + ("?" + "&".join(query) if query else "")
    identity = CANONICALIZER.canonical(url)
    assert identity is not None
    assert CANONICALIZER.canonical(identity) == identity
    request_form = CANONICALIZER.request_form(url)
    assert request_form is not None
    assert CANONICALIZER.canonical(request_form) == identity


def test_aliases_end_at_one_host_even_where_they_go_round() -> None:
    rules = [
        SiteRule(OverrideKind.ALIAS, host, main) for host, main in (("c", "b"), ("b", "a"), ("a", "c"), ("d", "c"))
    ]
    assert SiteRules(rules).aliases == {"c": "a", "b": "a", "d": "a"}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("alias www.a.org", "names its main host"), ("ignore-case a.org b.org", "names its main host"),
        ("index-page a.org", "no subject of index-page"), ("drop-parameter a.org", "no subject of drop-parameter"),
        ("alias a.org b/c", "is no host"), ("alias a.org ^", "is no host"),
        ("mirror a.org b.org", "is no rule of a site"),
        ("", "is no rule of a site"), ("alias a b c", "is no rule of a site"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_rule_is_refused(line: str, fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault):
        parsed_line(line)


def test_lines_and_rules_are_the_same() -> None:
    assert [parsed_line(line).line for line in LINES] == LINES
    assert fault_of(SiteRule(OverrideKind.BLOCK, "a.org")) == "block is no rule of a site"
