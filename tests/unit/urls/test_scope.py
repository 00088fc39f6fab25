"""Scope: one rule at a time, and all of them at once."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.tables.vocabulary import Scope
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.scope import ScopeRule, ScopeSet

SEED = "http://www.example.com/a/b.html?x=1"


@pytest.mark.parametrize(
    ("scope", "url", "allowed"),
    [
        (Scope.PAGE, SEED, True),
        (Scope.PAGE, "https://www.example.com/a/b.html?x=1", True),
        (Scope.PAGE, "http://www.example.com/a/b.html", False),
        (Scope.PREFIX, "http://www.example.com/a/", True),
        (Scope.PREFIX, "https://www.example.com/a/c/d?y", True),
        (Scope.PREFIX, "http://www.example.com/ab", False),
        (Scope.PREFIX, "http://www.example.com/?/a/", False),
        (Scope.PREFIX, "http://example.com/a/", False),
        (Scope.HOST, "http://www.example.com/z", True),
        (Scope.HOST, "http://www.example.com:8080/z", False),
        (Scope.HOST, "http://example.com/", False),
        (Scope.DOMAIN, "http://example.com:8080/", True),
        (Scope.DOMAIN, "https://deep.er.example.com/", True),
        (Scope.DOMAIN, "http://example.org/", False),
        (Scope.ANYWHERE, "ftp://example.org/", True),
    ],
)
def test_one_seed(scope: Scope, url: str, allowed: bool) -> None:
    assert ScopeRule(scope, SEED).allows(url) == allowed
    assert ScopeSet([(scope, SEED)]).allows(url) == allowed


_URLS = st.builds(
    lambda scheme, host, path, query: f"{scheme}://{host}{path}{query}",
    st.sampled_from(["http", "https"]),
    st.sampled_from(
        ["example.com", "www.example.com", "example.com:8080", "b.co.uk", "127.0.0.1", "[::1]", "a.github.io"]
    ),
    st.lists(st.sampled_from(["a", "b", ""]), max_size=4).map(lambda segments: "/" + "/".join(segments)),
    st.sampled_from(["", "?x=1", "?x=/a/"]),
).map(lambda url: Canonicalizer().canonical(url) or "")


@given(st.lists(st.tuples(st.sampled_from(list(Scope)[:4]), _URLS), max_size=5), st.lists(_URLS, max_size=8))
def test_all_seeds_at_once_agree_with_asking_each(seeds: list[tuple[Scope, str]], urls: list[str]) -> None:
    together = pickle.loads(pickle.dumps(ScopeSet(seeds)))
    for url in urls:
        assert together.allows(url) == any(ScopeRule(*seed).allows(url) for seed in seeds)


def test_no_seed_opens_nothing() -> None:
    assert not ScopeSet([]).allows("http://example.com/")
