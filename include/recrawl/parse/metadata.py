"""Author and publication date, as a page's metadata states them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from recrawl.parse.html import attribute, collapsed

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
MAX_CHARACTERS = 200
#: Scripts of linked data larger than this are not worth their time.
MAX_LINKED_DATA_CHARACTERS = 100_000


def author_and_date(tree: LexborHTMLParser) -> tuple[str | None, str | None]:
    """Author and publication date of a page, as found; None for what it does not state.

    Metas come first, then linked data (JSON-LD), then for the date a time element marked as the
    publication's.
    """
    metas: dict[str, str] = {}
    for node in tree.tags("meta"):
        attributes = node.attributes
        name = attributes.get("name") or attributes.get("property") or attributes.get("itemprop")
        content = attributes.get("content")
        if name and content and (value := collapsed(content)[:MAX_CHARACTERS]):
            metas.setdefault(name.strip().lower(), value)
    author = next((metas[name] for name in _AUTHOR_NAMES if _is_name(metas.get(name))), None)
    date = next((metas[name] for name in _DATE_NAMES if name in metas), None)
    if author is None or date is None:
        linked_author, linked_date = _linked_data(tree)
        author, date = author or linked_author, date or linked_date
    return author, date or _time_element(tree)


def _is_name(value: str | None) -> bool:
    # article:author is often the address of a profile.
    return value is not None and not value.startswith(("http://", "https://"))


def _linked_data(tree: LexborHTMLParser) -> tuple[str | None, str | None]:
    author = date = None
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
        for thing in _things(data):
            author = author or _name_of(thing.get("author"))
            published = thing.get("datePublished")
            date = date or (collapsed(published)[:MAX_CHARACTERS] if isinstance(published, str) else None) or None
    return author, date


def _things(data: Any) -> Iterator[dict[str, Any]]:
    """The objects of linked data: one, a list, or those of a graph."""
    for item in data if isinstance(data, list) else [data]:
        if isinstance(item, dict):
            yield item
            graph = item.get("@graph")
            if isinstance(graph, list):
                yield from (thing for thing in graph if isinstance(thing, dict))


def _name_of(author: Any) -> str | None:
    if isinstance(author, list):
        author = author[0] if author else None
    if isinstance(author, dict):
        author = author.get("name")
    if not isinstance(author, str):
        return None
    name = collapsed(author)[:MAX_CHARACTERS]
    return name if name and _is_name(name) else None


def _time_element(tree: LexborHTMLParser) -> str | None:
    for node in tree.tags("time"):
        attributes = node.attributes
        if "pubdate" in attributes or attributes.get("itemprop") == "datePublished":
            return collapsed(attributes.get("datetime") or node.text())[:MAX_CHARACTERS] or None
    return None
