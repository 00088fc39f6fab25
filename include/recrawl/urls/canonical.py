"""The canonical form of a URL: what makes two URLs the same to the crawler.

The conformance cases of `tests/vectors/url_canonical.handed.json` are answered by family:
`whatwg` by `parse(input, base)`, `canonical` by `canonical_with(input, rules)`, `pair` by
`same(a, b)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, Self

from recrawl.config.model import Urls
from recrawl.errors import ConfigurationError
from recrawl.urls.rules import (
    DEFAULT_DROP_PARAMETERS,
    OPTIONAL_RULES,
    RULES,
    RULES_VERSION,
    Rule,
    drop_param,
    parameter_pattern,
    parse,
)

if TYPE_CHECKING:
    from recrawl.urls.site_rules import SiteRules

__all__ = [
    "CRAWLED_PREFIXES",
    "RULES_VERSION",
    "Canonicalizer",
    "UrlParts",
    "canonical_with",
    "host_of",
    "parse",
    "same",
    "split",
]

#: How the URLs begin that can be crawled; anything else has no canonical form.
CRAWLED_PREFIXES = ("http://", "https://", "ftp://")

_Step = tuple[tuple[str, ...], Callable[[str], "str | None"]]


class UrlParts(NamedTuple):
    """The parts of a canonical URL: `scheme://host` + `path` + (`?` + `query`, where there is one)."""

    scheme: str
    host: str
    path: str
    query: str


class Canonicalizer:
    """Gives URLs their identity, by the rules of `recrawl.urls.rules` in their order.

    Args:
        drop_parameters: parameters that the rule `drop_param` drops.
        optional_rules: the optional rules that apply; the others always do.
        site_rules: rules of single sites, which come last; None: there are none.

    Raises:
        ConfigurationError: a name in `optional_rules` is no optional rule.
    """

    def __init__(
        self,
        drop_parameters: Sequence[str] = DEFAULT_DROP_PARAMETERS,
        optional_rules: Sequence[str] = OPTIONAL_RULES,
        site_rules: SiteRules | None = None,
    ) -> None:
        unknown = sorted(set(optional_rules) - set(OPTIONAL_RULES))
        if unknown:
            raise ConfigurationError(
                f"{unknown[0]!r} is no optional URL rule.", f"Choose from {', '.join(OPTIONAL_RULES)}."
            )
        pattern = parameter_pattern(drop_parameters)
        steps: list[tuple[Rule, _Step]] = []
        for rule in RULES:
            function = rule.function
            if function is drop_param:
                if pattern is None:
                    continue
                function = partial(drop_param, dropped=pattern)
            if not rule.optional or rule.name in optional_rules:
                steps.append((rule, (rule.needs, function)))
        self._identity = _Steps([step for _, step in steps])
        self._request = _Steps([step for rule, step in steps if rule.in_request])
        self.site_rules = site_rules

    @classmethod
    def from_settings(cls, urls: Urls) -> Self:
        """The canonicalizer that the section `urls` of the configuration asks for."""
        # A crawl keeps no credentials and asks for no fragments, whatever else it is told.
        rules = ("drop_userinfo", "drop_fragment", *urls.optional_rules)
        sites = None
        if urls.site_rules:
            # It knows registered domains, which know canonical URLs.
            from recrawl.urls.site_rules import SiteRules, parsed_line

            sites = SiteRules(map(parsed_line, urls.site_rules))
        return cls(drop_parameters=urls.drop_parameters, optional_rules=rules, site_rules=sites)

    def canonical(self, url: str, base: str | None = None) -> str | None:
        """The identity of `url` (resolved against `base`); None when it can't be crawled as a URL."""
        identity = self._identity.applied(parse(url, base))
        if self.site_rules is None or identity is None:
            return identity
        return self.site_rules.applied(identity, in_request=False)

    def request_form(self, url: str, base: str | None = None) -> str | None:
        """What is asked of the server: as a browser would, without userinfo and dropped parameters.

        The order of the query and the escapes stay as found, because servers may care; its
        canonical form is that of `url`.
        """
        request = self._request.applied(parse(url, base))
        if self.site_rules is None or request is None:
            return request
        return self.site_rules.applied(request, in_request=True)


class _Steps:
    """Rules ready to run, behind one look that spares most URLs all of them."""

    def __init__(self, steps: list[_Step]) -> None:
        self._steps = steps
        needs = sorted({text for texts, _ in steps for text in texts})
        self._concerned = re.compile("|".join(map(re.escape, needs)) or "(?!)")

    def applied(self, url: str | None) -> str | None:
        if url is None or not url.startswith(CRAWLED_PREFIXES):
            return None
        if self._concerned.search(url) is None:
            return url
        for needs, function in self._steps:
            for text in needs:
                if text in url:
                    changed = function(url)
                    if changed is None:
                        return None
                    url = changed
                    break
        return url


@lru_cache(maxsize=64)
def _canonicalizer(optional_rules: tuple[str, ...]) -> Canonicalizer:
    return Canonicalizer(optional_rules=optional_rules)


def canonical_with(input: str, rules: Sequence[str]) -> str | None:
    """The canonical form of `input` with the always-on rules and the optional ones named.

    Raises:
        ConfigurationError: a name in `rules` is no optional rule.
    """
    return _canonicalizer(tuple(rules)).canonical(input)


def same(a: str, b: str) -> bool:
    """Are `a` and `b` one URL to a crawler whose optional rules are all on?

    Two texts without a canonical form are never the same URL.
    """
    canonicalizer = _canonicalizer(OPTIONAL_RULES)
    identity = canonicalizer.canonical(a)
    return identity is not None and identity == canonicalizer.canonical(b)


def host_of(canonical_url: str) -> str:
    """The authority of a canonical URL: its host, and `:port` where that is not the default.

    Raises:
        ValueError: the text is no canonical URL.
    """
    start = canonical_url.index("://") + 3
    return canonical_url[start : canonical_url.index("/", start)]


def split(canonical_url: str) -> UrlParts:
    """The parts of a canonical URL.

    Raises:
        ValueError: the text is no canonical URL.
    """
    scheme_end = canonical_url.index("://")
    path_start = canonical_url.index("/", scheme_end + 3)
    path, _, query = canonical_url[path_start:].partition("?")
    return UrlParts(canonical_url[:scheme_end], canonical_url[scheme_end + 3 : path_start], path, query)
