"""Where a redirect leads, and whether this task follows it in this round."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from recrawl.fetch.work import PageWork
from recrawl.tables.vocabulary import Outcome
from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.filters import UrlFilters
from recrawl.urls.keys import url_id
from recrawl.urls.scope import ScopeSet

#: What stands before the host of an address, however badly it is written.
_CREDENTIALS = re.compile(r"[/\\\\]{2,}[^/\\\\?#]*@")


class Hop(NamedTuple):
    """What becomes of a redirect.

    Attributes:
        outcome: of the row that redirected.
        target: canonical URL; None when the Location is no URL that can be requested.
        follow: the work for the target; None: the row is final.
        detail: why it is not followed.
    """

    outcome: Outcome
    target: str | None
    follow: PageWork | None
    detail: str = ""


def shown(location: str) -> str:
    """A Location header for people: quoted, cut, and without the credentials that it may carry."""
    return repr(_CREDENTIALS.sub("//", location)[:200])


class Redirects:
    """Follows redirects within the partition; each target once a round.

    Args:
        max_redirects: hops followed for one planned URL.
        planned: ids of the partition's plan: these are fetched on their own.
        claimed: ids fetched as targets already; grows.
        domains: registered domains of the planned hosts. Other hosts belong to other tasks, and
            a host is never contacted by two.
        is_closed: whether a host is blocked or was given up.
        is_excluded: whether a person excluded a URL.
    """

    def __init__(
        self, max_redirects: int, canonicalizer: Canonicalizer, filters: UrlFilters, scope: ScopeSet,
        planned: set[int], claimed: set[int], domains: set[str], is_closed: Callable[[str], bool],
        is_excluded: Callable[[str], bool],
    ) -> None:  # fmt: skip
        self._max_redirects = max_redirects
        self._canonicalizer = canonicalizer
        self._filters = filters
        self._scope = scope
        self._planned = planned
        self._claimed = claimed
        self._domains = domains
        self._is_closed = is_closed
        self._is_excluded = is_excluded

    def resolve(self, location: str, base: str) -> tuple[str, str] | None:
        """(canonical URL, URL as requested) of a Location header; None when it can't be requested."""
        target = self._canonicalizer.canonical(location, base)
        request_url = self._canonicalizer.request_form(location, base)
        if target is None or request_url is None or any(character <= " " for character in request_url):
            return None
        return target, request_url

    def next_hop(self, work: PageWork, location: str) -> Hop:
        """Decide on a redirect; a target that is to be followed is claimed."""
        resolved = self.resolve(location, work.request_url)
        if resolved is None:
            return Hop(Outcome.INVALID_URL, None, None, f"The redirect's target {shown(location)} can't be requested.")
        target, request_url = resolved
        chain = (*work.chain, work.request_url)
        if request_url in chain:
            return Hop(Outcome.TOO_MANY_REDIRECTS, target, None, "The redirects loop.")
        if work.hop >= self._max_redirects:
            return Hop(Outcome.TOO_MANY_REDIRECTS, target, None, f"More than {self._max_redirects} redirects.")
        target_id = url_id(target)
        if reason := self._refusal(work, target, target_id):
            return Hop(Outcome.REDIRECT, target, None, reason)
        self._claimed.add(target_id)
        follow = PageWork(
            work.planned, work.attempt, work.hop + 1, target_id, target, request_url, host_of(target), chain
        )
        return Hop(Outcome.REDIRECT, target, follow)

    def _refusal(self, work: PageWork, target: str, target_id: int) -> str:
        """Why the target is not fetched for this redirect; empty when it is."""
        if target_id != work.url_id:  # the same page asked for in another form stays its own
            if target_id in self._planned:
                return "Not followed: the target is planned itself."
            if target_id in self._claimed:
                return "Not followed: the target was fetched already."
        if not self._scope.allows(target):
            return "Not followed: out of scope."
        if self._is_excluded(target):
            return "Not followed: a person excluded the target."
        rejection = self._filters.check(target, work.planned.depth)
        if rejection is not None:
            return f"Not followed: {rejection.filter.value}. {rejection.reason}"
        host = host_of(target)
        if registered_domain(host) not in self._domains:
            return "Not followed: another fetch partition owns the host."
        reason = self.closed_reason(host)
        return f"Not followed: {reason}." if reason else ""

    def closed_reason(self, host: str) -> str:
        """Why a host is not asked any more; empty when it is."""
        return f"the host {host} is blocked or was given up" if self._is_closed(host) else ""
