"""From the links of a page to edges and rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from recrawl.parse.capture import FoundLink
from recrawl.parse.sitemap import MAX_SITEMAP_URLS
from recrawl.tables.vocabulary import LinkKind, RejectFilter
from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.filters import Rejection, UrlFilters, uncanonical
from recrawl.urls.keys import url_id
from recrawl.urls.scope import ScopeSet
from recrawl.urls.traps import ever_deeper, faceted_links, growing_links, nested_again_links

#: Characters kept of a rejected link.
MAX_REJECT_CHARACTERS = 4_096

#: rel words with which a site disowns a link.
_DISOWNED = frozenset({"nofollow", "ugc", "sponsored"})


#: Filter and reason of links that go on from a page's own URL, without and with a query.
_ENDLESS = (
    (RejectFilter.EVER_DEEPER, "One of several links that only repeat or lengthen the names in their page's path."),
    (RejectFilter.QUERY_EXPLOSION, "One choice more of a faceted search."),
)


class KeptLink(NamedTuple):
    """An edge.

    Attributes:
        position: order in the page, from 0; ancestors come last.
        dst_url: canonical URL of the target.
        request_url: how the target is requested; None where that is `dst_url`.
        dst_host: authority of the target.
        dst_domain: registered domain of the target.
        dst_url_id: id of the target.
        kind: where the link stands.
        rel: its rel words, in lower case.
        anchor_text: its text.
        followed: the target counts as found; False where page or link say nofollow.
        lastmod: when a sitemap or feed of the target's own domain says that it changed, as written.
        priority: what a sitemap of the target's own domain gives it, 0 to 1.
    """

    position: int
    dst_url: str
    request_url: str | None
    dst_host: str
    dst_domain: str
    dst_url_id: int
    kind: LinkKind
    rel: str
    anchor_text: str
    followed: bool
    lastmod: str | None = None
    priority: float | None = None


class RejectedLink(NamedTuple):
    """A link that is not taken: its URL (as written where it is none), the filter and its reason."""

    dst_url: str
    filter: RejectFilter
    reason: str


class ResolvedLinks(NamedTuple):
    """What became of a page's links.

    Attributes:
        kept: edges, by position.
        rejects: one a target.
        outlink_count: distinct targets before filters, what is no URL counted by its text; the
            page itself and ancestors aside.
        kept_outlink_count: distinct targets followed, ancestors aside.
    """

    kept: list[KeptLink]
    rejects: list[RejectedLink]
    outlink_count: int
    kept_outlink_count: int


class _Target(NamedTuple):
    """A distinct target: its edge-independent part."""

    dst_url: str
    request_url: str | None
    host: str
    domain: str
    id: int


class TargetJudge:
    """What holds of a target wherever it is linked from; the latest are remembered, for pages of a site link alike.

    Args:
        canonicalizer, filters, scope: the crawl's rules.
        remembered: targets whose verdicts are kept, about 1 KB each.
    """

    def __init__(
        self, canonicalizer: Canonicalizer, filters: UrlFilters, scope: ScopeSet, remembered: int = 50_000
    ) -> None:
        self._request_form = canonicalizer.request_form
        self.canonical: Callable[[str], str | None] = lru_cache(remembered)(canonicalizer.canonical)
        self.check: Callable[[str, int], Rejection | None] = lru_cache(remembered)(filters.check)
        self.allows: Callable[[str], bool] = lru_cache(remembered)(scope.allows)
        self.target: Callable[[str, str], _Target] = lru_cache(remembered)(self._target)

    def _target(self, canonical: str, url: str) -> _Target:
        request, host = self._request_form(url), host_of(canonical)
        return _Target(
            canonical, None if request == canonical else request, host, registered_domain(host), url_id(canonical)
        )


def resolve_links(
    page_url: str,
    page_depth: int,
    found: Sequence[FoundLink],
    nofollow: bool,
    judge: TargetJudge,
    max_links: int,
    mode_path_ascending: bool,
) -> ResolvedLinks:
    """Canonicalise a page's links, pass them through filters and scope, and number them.

    Links to the page itself are dropped. Links that repeat another in target, kind, rel and text
    are one. A target beyond `max_links` edges is a reject, LINK_CAP; entries of sitemaps have the
    protocol's own limit of 50,000.

    Args:
        page_url: canonical URL of the page.
        page_depth: links from a seed to it.
        found: its links, in document order.
        nofollow: the page's directives say nofollow.
        judge: the crawl's rules.
        max_links: edges kept.
        mode_path_ascending: add the ancestor paths of followed links.
    """
    resolver = _Resolver(page_url, page_depth + 1, judge, _endless(page_url, found, judge))
    page_domain = registered_domain(host_of(page_url))
    kept: list[KeptLink] = []
    edges: set[tuple[str, LinkKind, str, str]] = set()
    followed: set[str] = set()
    capped: dict[str, None] = {}
    for link in found:
        target = resolver.target_of(link)
        if target is None:
            continue
        edge = (target.dst_url, link.kind, link.rel, link.anchor_text)
        if edge in edges:
            continue
        if len(kept) >= (max(max_links, MAX_SITEMAP_URLS) if link.kind is LinkKind.SITEMAP else max_links):
            capped[target.dst_url] = None
            continue
        edges.add(edge)
        follows = not nofollow and (not link.rel or _DISOWNED.isdisjoint(link.rel.split()))
        if follows:
            followed.add(target.dst_url)
        edge_of_link = _kept(len(kept), target, link.kind, link.rel, link.anchor_text, follows)
        # What a sitemap says of another site's pages is not for it to say.
        if (link.lastmod or link.priority is not None) and target.domain == page_domain:
            edge_of_link = edge_of_link._replace(lastmod=link.lastmod or None, priority=link.priority)
        kept.append(edge_of_link)
    outlinks = resolver.outlink_count
    if mode_path_ascending:
        kept += _ancestor_links(kept, resolver, max_links)
    targets = {link.dst_url for link in kept}
    reason = f"The page has more than {max_links} links."
    over = [url[:MAX_REJECT_CHARACTERS] for url in capped if url not in targets]
    rejects = resolver.rejects + [RejectedLink(url, RejectFilter.LINK_CAP, reason) for url in over]
    return ResolvedLinks(kept, rejects, outlinks, len(followed))


def _endless(page_url: str, found: Sequence[FoundLink], judge: TargetJudge) -> frozenset[str]:
    """Canonical URLs among a page's links that go on from its own URL as only traps do."""
    path, mark, query = page_url.partition("?")
    if mark and "&" not in query:
        return frozenset()
    near = (judge.canonical(link.url) for link in found if link.url.startswith(path))
    urls = [url for url in near if url is not None]
    if mark:
        return faceted_links(page_url, urls)
    return growing_links(page_url, urls) | nested_again_links(page_url, urls)


def _ancestor_links(kept: Sequence[KeptLink], resolver: _Resolver, max_links: int) -> list[KeptLink]:
    """Links to the ancestor paths of followed targets, at most `max_links`, in order of finding.

    They come from the URLs, not from the page: beyond the cap they are left out without a word.
    """
    targets = {link.dst_url for link in kept}
    added: list[KeptLink] = []
    for url in dict.fromkeys(url for link in kept if link.followed for url in ancestor_urls(link.dst_url)):
        if len(added) >= max_links:
            break
        target = resolver.target_of(FoundLink(url, url, LinkKind.ANCESTOR, "", ""))
        # An ancestor's canonical form may be a target again, e.g. without its index page.
        if target is not None and target.dst_url not in targets:
            targets.add(target.dst_url)
            added.append(_kept(len(kept) + len(added), target, LinkKind.ANCESTOR, "", "", True))
    return added


def _kept(position: int, target: _Target, kind: LinkKind, rel: str, text: str, follows: bool) -> KeptLink:
    return KeptLink(
        position, target.dst_url, target.request_url, target.host, target.domain, target.id, kind, rel, text, follows
    )


class _Resolver:
    """The distinct targets of one page, each looked at once."""

    def __init__(self, page_url: str, depth: int, judge: TargetJudge, endless: frozenset[str]) -> None:
        self._page_url = page_url
        self._endless = endless
        self._depth = depth
        self._judge = judge
        self._by_url: dict[str, _Target | None] = {}
        self._by_canonical: dict[str, _Target | None] = {page_url: None}
        self._rejected: set[str] = set()
        self._uncanonical: set[str] = set()
        self.rejects: list[RejectedLink] = []

    @property
    def outlink_count(self) -> int:
        """Distinct targets seen so far, the page itself aside."""
        return len(self._by_canonical) - 1 + len(self._uncanonical)

    def target_of(self, link: FoundLink) -> _Target | None:
        """The target of a link; None when it is the page itself or not taken."""
        key = link.url.partition("#")[0] or f" {link.raw}"
        if key in self._by_url:
            return self._by_url[key]
        target = self._by_url[key] = self._looked_at(link)
        return target

    def _looked_at(self, link: FoundLink) -> _Target | None:
        canonical = self._judge.canonical(link.url) if link.url else None
        if canonical is None:
            written = link.url or link.raw
            if written not in self._uncanonical:
                self._uncanonical.add(written)
                if link.url:
                    rejection = uncanonical(link.url)
                    self._reject(written, rejection.filter, rejection.reason)
                else:
                    self._reject(written, RejectFilter.INVALID, "It is not a URL.")
            return None
        if canonical not in self._by_canonical:
            self._by_canonical[canonical] = self._judged(canonical, link.url)
        return self._by_canonical[canonical]

    def _judged(self, canonical: str, url: str) -> _Target | None:
        rejection = self._judge.check(canonical, self._depth)
        if rejection is not None:
            self._reject(canonical, rejection.filter, rejection.reason)
        elif reason := ever_deeper(self._page_url, canonical, self._depth):
            self._reject(canonical, RejectFilter.EVER_DEEPER, reason)
        elif canonical in self._endless:
            self._reject(canonical, *_ENDLESS["?" in self._page_url])
        elif not self._judge.allows(canonical):
            self._reject(canonical, RejectFilter.SCOPE, "No seed's scope reaches it.")
        else:
            return self._judge.target(canonical, url)
        return None

    def _reject(self, url: str, name: RejectFilter, reason: str) -> None:
        text = url[:MAX_REJECT_CHARACTERS]
        if text not in self._rejected:
            self._rejected.add(text)
            self.rejects.append(RejectedLink(text, name, reason))


def ancestor_urls(canonical_url: str) -> Iterator[str]:
    """The paths above a URL, nearest first: for `/a/b?c` they are `/a/` and `/`."""
    path = canonical_url.partition("?")[0]
    start = path.index("/", path.index("://") + 3)
    end = path.rfind("/")
    if end == len(path) - 1 and len(path) == len(canonical_url):
        end = path.rfind("/", start, end)
    while end >= start:
        yield path[: end + 1]
        end = path.rfind("/", start, end)
