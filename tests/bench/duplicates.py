"""Precision and recall of duplicates, near-duplicates and unchanged pages against simweb's truth.

    python -m tests.bench.duplicates --simweb PATH --hosts 100

Every URL of a simweb world, with its second address where it has one, is fetched and parsed as the step
parse does. Then:

- body: duplicates by the checksum of the body alone;
- identity: duplicates by normalised text, or body where that is too short: what dedupe takes;
- near: contents in one cluster, by identity or by MinHash bands confirmed by similarity;
- signatures: the same by the signatures alone, as if no normalised text were known;
- unchanged: the pages again some hours later; those whose only change is their dynamic block must have
  the same normalised text, those that did change another.

A URL is a true duplicate when an earlier one of the list shows the same content page; of those the
near ones are what simweb calls so, and every page whose host puts a dynamic block on it. Precision is of
URLs called duplicates of an earlier one, recall of URLs that are.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from recrawl.config.model import Parse
from recrawl.dedupe.similarity import MAX_CONTENTS_PER_BAND, NEAR_SIMILARITY, similarity
from recrawl.parse.capture import Capture
from recrawl.parse.handlers import parse_capture
from recrawl.parse.minhash import Signature, signature_of
from recrawl.urls.keys import content_checksum
from tests.bench.web import BenchWeb, bench_web, described, machine

_HTML_KINDS = ("normal", "dup", "neardup", "malformed", "noindex", "nofollow")
_HOURS = 5


class Page(NamedTuple):
    """A parsed URL and what is true of it."""

    url: str
    group: str
    is_near: bool
    body_checksum: int
    identity: int
    signature: Signature | None


@dataclass(frozen=True)
class Measured:
    """One figure: how many are so, how many were found, how many of those rightly."""

    what: str
    pages: int
    true: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.true if self.true else 1.0


class World:
    """A running simweb, asked through its proxy."""

    def __init__(self, web: BenchWeb) -> None:
        self._admin = f"http://127.0.0.1:{web.port}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": self._admin}))

    def ask(self, path: str) -> str:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            self._admin + path, timeout=300
        ) as answer:
            text: str = answer.read().decode()
            return text

    def facts(self) -> list[dict[str, Any]]:
        """What is true of every page that is there, a mirror's pages with those of its main host."""
        pages = [json.loads(line) for line in self.ask("/__truth/pages").splitlines()]
        return [page for page in pages if page["alive"] and page["kind"] in _HTML_KINDS]

    def body(self, url: str) -> tuple[str, bytes] | None:
        try:
            with self._opener.open(url, timeout=60) as answer:
                same = answer.status == 200 and answer.headers.get_content_type() == "text/html"
                return (answer.headers["Content-Type"], answer.read()) if same else None
        except OSError:
            return None


def pages_of(world: World, facts: Iterable[dict[str, Any]], settings: Parse) -> Iterator[Page]:
    """Every page with each of its addresses, parsed."""
    for page in facts:
        is_near = page["kind"] == "neardup" or page["dynamic_ads"]
        for url in (page["url"], page.get("variant_url")):
            found = world.body(url) if url else None
            if found is None:
                continue
            content_type, body = found
            parsed = parse_capture(Capture(url, content_type, body, None, 0, "recrawl", want_text=True), settings)
            body_checksum = content_checksum(body)
            identity = body_checksum if parsed.text_checksum is None else parsed.text_checksum
            signature = signature_of(parsed.text) if parsed.text else None
            yield Page(url, page["dup_group"], is_near, body_checksum, identity, signature)


def duplicates(what: str, pages: list[Page], key: Callable[[Page], Hashable]) -> Measured:
    """How well groups by `key` are groups of one content page."""
    by_key: dict[Hashable, set[str]] = defaultdict(set)
    groups: set[str] = set()
    true = found = right = 0
    for page in pages:
        seen = by_key[key(page)]
        true += page.group in groups
        found += bool(seen)
        right += page.group in seen
        seen.add(page.group)
        groups.add(page.group)
    return Measured(what, len(pages), true, found, right)


def near_clusters(pages: list[Page], by_identity: bool) -> tuple[dict[str, Hashable], int]:
    """(cluster of each URL, most candidates of a content): each joins the content before it that is most like it."""
    contents: dict[Hashable, Page] = {}
    for page in pages:
        contents.setdefault(page.identity if by_identity else page.url, page)
    signed = {content: page.signature for content, page in contents.items() if page.signature is not None}
    members: dict[int, list[Hashable]] = defaultdict(list)
    for content, signature in signed.items():
        for band in signature.bands:
            members[band].append(content)
    usable = {band: listed for band, listed in members.items() if len(listed) <= MAX_CONTENTS_PER_BAND}
    cluster: dict[Hashable, Hashable] = {}
    most = 0
    for content in contents:
        cluster[content] = content
        own = signed.get(content)
        if own is None:
            continue
        shared = {other for band in own.bands for other in usable.get(band, ()) if other != content}
        most = max(most, len(shared))
        alike = [
            (similarity(own.words, signed[other].words), str(other), other) for other in shared if other in cluster
        ]
        if alike and max(alike)[0] >= NEAR_SIMILARITY:
            cluster[content] = cluster[max(alike)[2]]
    return {page.url: cluster[page.identity if by_identity else page.url] for page in pages}, most


def unchanged(
    world: World, facts: list[dict[str, Any]], before: dict[str, Page], settings: Parse
) -> tuple[Measured, int]:
    """(figure, URLs with another body) of pages with a dynamic block, some hours later.

    They should be unchanged where simweb says that only the block changed.
    """
    dynamic = {page["url"]: page for page in facts if page["dynamic_ads"]}
    world.ask(f"/__clock?advance={_HOURS}h")
    true = found = right = bodies = count = 0
    for now in world.facts():
        then = dynamic.get(now["url"])
        if then is None:
            continue
        is_same = (then["version"], then["last_change"]) == (now["version"], now["last_change"])
        for page in pages_of(world, [now], settings):
            old = before.get(page.url)
            if old is None:
                continue
            count += 1
            bodies += old.body_checksum != page.body_checksum
            true += is_same
            found += old.identity == page.identity
            right += is_same and old.identity == page.identity
    return Measured(f"unchanged after {_HOURS} h", count, true, found, right), bodies


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simweb", type=Path, required=True, help="simweb's program, or the folder of its source")
    parser.add_argument("--hosts", type=int, default=100, help="hosts of the world (default: %(default)s)")
    parser.add_argument("--most-pages", type=int, default=8_000, help="pages at most (default: %(default)s)")
    parser.add_argument("--extractor", default="resiliparse", help="main text, for the signatures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    arguments = parser.parse_args()
    found, settings = machine(), Parse.model_validate({"text_extractor": arguments.extractor})
    with TemporaryDirectory() as folder, bench_web(Path(folder), arguments.simweb, arguments.hosts) as web:
        world = World(web)
        facts = world.facts()[: arguments.most_pages]
        pages = list(pages_of(world, facts, settings))
        exact = [page for page in pages if not page.is_near]
        (by_identity, most), (by_signature, most_of_urls) = near_clusters(pages, True), near_clusters(pages, False)
        later, bodies = unchanged(world, facts, {page.url: page for page in pages}, settings)
        figures = [
            duplicates("body, pages without dynamic block", exact, lambda page: page.body_checksum),
            duplicates("identity, pages without dynamic block", exact, lambda page: page.identity),
            duplicates("body, all", pages, lambda page: page.body_checksum),
            duplicates("identity, all", pages, lambda page: page.identity),
            duplicates("near: identity or signature, all", pages, lambda page: by_identity[page.url]),
            duplicates("near: signature alone, all", pages, lambda page: by_signature[page.url]),
            later,
        ]
    print(described(found), "", "| what | URLs | true | found | right | precision | recall |", sep="\n")
    print("|---|---|---|---|---|---|---|")
    for one in figures:
        print(f"| {one.what} | {one.pages:,} | {one.true:,} | {one.found:,} | {one.right:,} "
              f"| {one.precision:.4f} | {one.recall:.4f} |")  # fmt: skip
    print(f"\nAfter {_HOURS} h {bodies:,} of {later.pages:,} URLs with a dynamic block had another body.")
    print(f"Most candidates of a content: {most}; of a URL by signatures alone: {most_of_urls}.")
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"machine": found, "figures": [asdict(one) for one in figures]}, indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
