"""Scope: what the seeds open to the crawl.

The scheme plays no part: a seed given as http stays in scope when its site moves to https.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recrawl.tables.vocabulary import Scope
from recrawl.urls.canonical import host_of
from recrawl.urls.domains import registered_domain


class ScopeRule(NamedTuple):
    """What one seed opens.

    Attributes:
        scope: how far the seed reaches.
        url: the seed's canonical URL.
    """

    scope: Scope
    url: str

    def allows(self, canonical_url: str) -> bool:
        """Does this seed open `canonical_url`? For one rule; `ScopeSet` is for many."""
        seed, target = _without_scheme(self.url), _without_scheme(canonical_url)
        match self.scope:
            case Scope.PAGE:
                return target == seed
            case Scope.PREFIX:
                return target.startswith(_prefix(seed))
            case Scope.HOST:
                return host_of(canonical_url) == host_of(self.url)
            case Scope.DOMAIN:
                return registered_domain(host_of(canonical_url)) == registered_domain(host_of(self.url))
            case Scope.ANYWHERE:
                return True


class ScopeSet:
    """The scope of all seeds together, asked in constant time however many there are.

    Args:
        rules: pairs of scope and canonical seed URL, e.g. `ScopeRule`s.
    """

    def __init__(self, rules: Iterable[tuple[Scope, str]]) -> None:
        self._anywhere = False
        self._pages: set[str] = set()
        self._prefixes: set[str] = set()
        self._hosts: set[str] = set()
        self._domains: set[str] = set()
        # Hosts with page or prefix rules: most URLs are out at this look-up.
        self._partial_hosts: set[str] = set()
        for scope, url in rules:
            self._add(scope, url)

    def _add(self, scope: Scope, url: str) -> None:
        host = host_of(url)
        match scope:
            case Scope.PAGE:
                self._pages.add(_without_scheme(url))
                self._partial_hosts.add(host)
            case Scope.PREFIX:
                self._prefixes.add(_prefix(_without_scheme(url)))
                self._partial_hosts.add(host)
            case Scope.HOST:
                self._hosts.add(host)
            case Scope.DOMAIN:
                self._domains.add(registered_domain(host))
            case Scope.ANYWHERE:
                self._anywhere = True

    def allows(self, canonical_url: str) -> bool:
        """Does any seed open `canonical_url`?"""
        if self._anywhere:
            return True
        host = host_of(canonical_url)
        if host in self._hosts or (self._domains and registered_domain(host) in self._domains):
            return True
        return host in self._partial_hosts and self._allows_partly(_without_scheme(canonical_url))

    def _allows_partly(self, target: str) -> bool:
        if target in self._pages:
            return True
        path = target.partition("?")[0]
        slash = path.find("/")
        while slash >= 0:
            if path[: slash + 1] in self._prefixes:
                return True
            slash = path.find("/", slash + 1)
        return False


def _without_scheme(url: str) -> str:
    return url.partition("://")[2]


def _prefix(target: str) -> str:
    """A URL without scheme, up to the last slash of its path."""
    path = target.partition("?")[0]
    return path[: path.rindex("/") + 1]
