"""URL rules of single sites: host aliases, servers blind to case, index pages, parameters that change nothing.

They come after the rules for all sites (`recrawl.urls.rules`), from the configuration and from what
surveys found and people accepted. A rule is a line: `alias www.example.org example.org`,
`ignore-case example.org`, `index-page example.org/index.html`, `drop-parameter example.org?ref`
(of a registered domain). Few hosts have one, so a URL costs a look-up of its host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from recrawl.errors import ConfigurationError
from recrawl.tables.vocabulary import OverrideKind
from recrawl.urls.domains import registered_domain
from recrawl.urls.rules import drop_param, escape_case, parameter_pattern, parse

#: The decisions that are rules of a site.
SITE_RULE_KINDS = (
    OverrideKind.ALIAS,
    OverrideKind.IGNORE_CASE,
    OverrideKind.INDEX_PAGE,
    OverrideKind.DROP_PARAMETER,
)

_HOST = r"[^\s/?#@]+"
_SUBJECTS = {
    OverrideKind.ALIAS: re.compile(_HOST),
    OverrideKind.IGNORE_CASE: re.compile(_HOST),
    OverrideKind.INDEX_PAGE: re.compile(rf"{_HOST}/[^\s/?#]+"),
    OverrideKind.DROP_PARAMETER: re.compile(rf"{_HOST}\?[^\s=&;/?#]+"),
}


class SiteRule(NamedTuple):
    """One rule: its kind, what it is about, and of an alias the main host."""

    kind: OverrideKind
    subject: str
    value: str | None = None

    @property
    def line(self) -> str:
        """The rule as configuration writes it."""
        return " ".join(part for part in (self.kind.value, self.subject, self.value) if part)


def fault_of(rule: SiteRule) -> str:
    """Why the rule can't be followed; empty: it can."""
    if rule.kind not in _SUBJECTS:
        return f"{rule.kind.value} is no rule of a site"
    if _SUBJECTS[rule.kind].fullmatch(rule.subject) is None:
        return f"{rule.subject!r} is no subject of {rule.kind.value}"
    if (rule.kind is OverrideKind.ALIAS) != bool(rule.value):
        return "an alias, and nothing else, names its main host"
    if rule.value is not None and (parse(f"http://{rule.value}/") is None or not re.fullmatch(_HOST, rule.value)):
        return f"{rule.value!r} is no host"
    return ""


def parsed_line(line: str) -> SiteRule:
    """The rule that a line of the configuration means. Raises ConfigurationError."""
    kind, subject, value = [*line.split(), "", "", ""][:3]
    kinds = {known.value: known for known in SITE_RULE_KINDS}
    if kind not in kinds or len(line.split()) > 3:
        raise ConfigurationError(f"{line!r} is no rule of a site.", f"A line begins with {', '.join(kinds)}.")
    rule = SiteRule(kinds[kind], subject, value or None)
    if fault := fault_of(rule):
        raise ConfigurationError(f"urls.site_rules: {line!r}: {fault}.")
    return rule


class SiteRules:
    """The rules of all sites together, asked by host.

    Args:
        rules: in any order. An alias of an alias leads to the last main host; where hosts name each
            other, the first by name stays.
    """

    def __init__(self, rules: Iterable[SiteRule]) -> None:
        mains: dict[str, str] = {}
        names: dict[str, list[str]] = {}
        self._blind: set[str] = set()
        self._indexes: dict[str, frozenset[str]] = {}
        for rule in rules:
            host, _, name = re.sub("[/?]", "\0", rule.subject, count=1).partition("\0")
            match rule.kind:
                case OverrideKind.ALIAS if rule.value:
                    mains[host] = rule.value
                case OverrideKind.IGNORE_CASE:
                    self._blind.add(host)
                case OverrideKind.INDEX_PAGE:
                    self._indexes[host] = self._indexes.get(host, frozenset()) | {name}
                case OverrideKind.DROP_PARAMETER:
                    names.setdefault(host, []).append(name)
        self.aliases = {host: main for host in mains if (main := _main_of(host, mains)) != host}
        self._drops = {domain: pattern for domain, of in names.items() if (pattern := parameter_pattern(of))}

    def applied(self, url: str, in_request: bool) -> str | None:
        """The URL by its site's rules.

        Args:
            url: canonical by the rules for all sites, or as it is requested.
            in_request: only what shapes the request: aliases and dropped parameters.
        """
        start = url.index("://") + 3
        end = url.index("/", start)
        host = url[start:end]
        main = self.aliases.get(host)
        if main is not None:
            # Parsed again, because the main host's port may be the scheme's own.
            moved = parse(f"{url[:start]}{main}{url[end:]}")
            if moved is None:
                return None
            url = moved
            end = url.index("/", start)
            host = url[start:end]
        if self._drops and ("?" in url or ";" in url):
            pattern = self._drops.get(registered_domain(host))
            if pattern is not None:
                dropped = drop_param(url, pattern)
                if dropped is None:
                    return None
                url = dropped
        if not in_request and (host in self._blind or host in self._indexes):
            path, question, query = url[end:].partition("?")
            if host in self._blind:
                path = escape_case(path.lower())
            folder, _, name = path.rpartition("/")
            if name and name in self._indexes.get(host, ()):
                path = f"{folder}/"
            url = url[:end] + path + question + query
        return url


def _main_of(host: str, mains: dict[str, str]) -> str:
    seen = [host]
    while (following := mains.get(seen[-1])) is not None:
        if following in seen:
            return min(seen[seen.index(following) :])
        seen.append(following)
    return seen[-1]
