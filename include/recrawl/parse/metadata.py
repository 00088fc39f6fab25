"""What a web page states about itself: author, date, OpenGraph, linked data (JSON-LD)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from recrawl.parse.capture import MAX_STATED_CHARACTERS, FoundLink
from recrawl.parse.html import attribute, base_url, collapsed
from recrawl.tables.vocabulary import LinkKind
from recrawl.urls.canonical import parse

#: Names of metas, the best first.
_AUTHOR_NAMES = ("author", "article:author", "dc.creator", "dcterms.creator", "citation_author", "parsely-author")
_DATE_NAMES = (
    "article:published_time",
    "datepublished",
    "date",
    "dc.date.issued",
    "dcterms.issued",
    "dc.date",
    "dcterms.created",
    "citation_publication_date",
    "parsely-pub-date",
    "pubdate",
)
#: Metas that are kept, besides OpenGraph's.
_KEPT_NAMES = frozenset({"description", "keywords", "generator", "twitter:card"})
_KEPT_PREFIXES = ("og:", "article:", "product:", "profile:", "book:", "video:")
#: Scripts of linked data larger than this are not worth their time.
MAX_LINKED_DATA_CHARACTERS = 100_000
#: Entries kept of what a page states, and characters of each.
MAX_ENTRIES = 60
MAX_ENTRY_CHARACTERS = 500
#: Keys of linked data that are kept, from a thing and from what it holds (`offers.price`).
_LINKED_KEYS = frozenset(
    {"name", "headline", "description", "datePublished", "dateModified", "inLanguage", "sku", "isbn", "gtin13", "mpn"}
    | {"price", "priceCurrency", "availability", "ratingValue", "reviewCount", "startDate", "endDate", "articleSection"}
)
_LINKED_PARTS = frozenset({"author", "publisher", "offers", "aggregateRating", "brand", "isPartOf", "location"})
#: Keys of linked data that hold addresses.
_LINKED_URLS = frozenset({"url", "@id", "mainEntityOfPage", "sameAs", "item", "contentUrl", "embedUrl"})
_MAX_LINKED_DEPTH = 8


class Stated(NamedTuple):
    """What a page states about itself.

    Attributes:
        author: as found.
        published: date of publication as found.
        metadata: OpenGraph and some other metas by name; linked data by `ld:` and the key.
    """

    author: str | None
    published: str | None
    metadata: dict[str, str]


class Statements:
    """The metas and the linked data of a page, read once."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._metas: dict[str, str] = {}
        for node in tree.tags("meta"):
            attributes = node.attributes
            name = attributes.get("name") or attributes.get("property") or attributes.get("itemprop")
            content = attributes.get("content")
            if name and content and (value := collapsed(content)[:MAX_ENTRY_CHARACTERS]):
                self._metas.setdefault(name.strip().lower(), value)
        self._things = list(_linked_things(tree))

    def all(self) -> Stated:
        """Author, publication date, and everything worth keeping.

        Metas come first, then linked data, then for the date a time element marked as the
        publication's.
        """
        author = next((self._metas[name] for name in _AUTHOR_NAMES if _is_name(self._metas.get(name))), None)
        date = next((self._metas[name] for name in _DATE_NAMES if name in self._metas), None)
        for thing in self._things:
            author = author or _name_of(thing.get("author"))
            published = thing.get("datePublished")
            date = date or (collapsed(published) if isinstance(published, str) else None) or None
        date = date or _time_element(self._tree)
        return Stated(
            author and author[:MAX_STATED_CHARACTERS], date and date[:MAX_STATED_CHARACTERS], self._metadata()
        )

    def _metadata(self) -> dict[str, str]:
        kept = {
            name: value for name, value in self._metas.items() if name in _KEPT_NAMES or name.startswith(_KEPT_PREFIXES)
        }
        for thing in self._things:
            kind = thing.get("@type")
            if isinstance(kind, list):
                kind = " ".join(word for word in kind if isinstance(word, str))
            if isinstance(kind, str):
                kept.setdefault("ld:type", kind[:MAX_ENTRY_CHARACTERS])
            for key, value in _scalars(thing):
                kept.setdefault(f"ld:{key}", value)
        return dict(list(kept.items())[:MAX_ENTRIES])


def author_and_date(tree: LexborHTMLParser) -> tuple[str | None, str | None]:
    """Author and publication date of a page, as found; None for what it does not state."""
    stated = Statements(tree).all()
    return stated.author, stated.published


def linked_urls(tree: LexborHTMLParser, page_url: str) -> list[FoundLink]:
    """The http(s) addresses in a page's linked data, each once, as links whose rel is `json-ld`."""
    base = base_url(tree, page_url)
    found: dict[str, FoundLink] = {}
    for thing in _linked_things(tree):
        for raw in _addresses(thing, 0):
            url = parse(raw, base) or ""
            if url.startswith(("http://", "https://")):
                found.setdefault(url, FoundLink(url, raw, LinkKind.LINK, "json-ld", ""))
    return list(found.values())


def _addresses(value: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_LINKED_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _addresses(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _LINKED_URLS:
                yield from (text for text in (item if isinstance(item, list) else [item]) if isinstance(text, str))
            if isinstance(item, (dict, list)):
                yield from _addresses(item, depth + 1)


def _is_name(value: str | None) -> bool:
    # article:author is often the address of a profile.
    return value is not None and not value.startswith(("http://", "https://"))


def _linked_things(tree: LexborHTMLParser) -> Iterator[dict[str, Any]]:
    """The objects of a page's linked data: each script holds one, a list, or a graph of them."""
    for node in tree.tags("script"):
        if (attribute(node, "type") or "").strip().lower() != "application/ld+json":
            continue
        text = node.text()
        if len(text) > MAX_LINKED_DATA_CHARACTERS:
            continue
        try:
            data = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            continue
        for item in data if isinstance(data, list) else [data]:
            if isinstance(item, dict):
                yield item
                graph = item.get("@graph")
                if isinstance(graph, list):
                    yield from (thing for thing in graph if isinstance(thing, dict))


def _scalars(thing: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Texts and numbers of a thing under known keys, and those of its known parts."""
    for key, value in thing.items():
        if key in _LINKED_KEYS:
            if (text := _scalar(value)) is not None:
                yield key, text
        elif key in _LINKED_PARTS:
            part = value[0] if isinstance(value, list) and value else value
            if isinstance(part, dict):
                for inner, inner_value in part.items():
                    if inner in _LINKED_KEYS and (text := _scalar(inner_value)) is not None:
                        yield f"{key}.{inner}", text


def _scalar(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return collapsed(str(value))[:MAX_ENTRY_CHARACTERS] or None


def _name_of(author: Any) -> str | None:
    if isinstance(author, list):
        author = author[0] if author else None
    if isinstance(author, dict):
        author = author.get("name")
    if not isinstance(author, str):
        return None
    name = collapsed(author)
    return name if name and _is_name(name) else None


def _time_element(tree: LexborHTMLParser) -> str | None:
    for node in tree.tags("time"):
        attributes = node.attributes
        if "pubdate" in attributes or attributes.get("itemprop") == "datePublished":
            return collapsed(attributes.get("datetime") or node.text()) or None
    return None
