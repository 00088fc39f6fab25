"""The links of an HTML document, in document order.

`link_elements` finds the attributes that hold URLs; `found_links` resolves them into what the
crawler keeps; `resolved_links` and `raw_links` answer the question for a single document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.parse.capture import MAX_ANCHOR_CHARACTERS, FoundLink
from recrawl.parse.encodings import codec_of
from recrawl.parse.html import attribute, base_url, collapsed, meta_refresh, parse_html
from recrawl.parse.srcset import srcset_urls
from recrawl.tables.vocabulary import LinkKind
from recrawl.urls.canonical import parse

_SELECTOR = "a,area,link,img,source,frame,iframe,form"
_TOO_MUCH_TEXT = 20 * MAX_ANCHOR_CHARACTERS
#: link elements that name a connection to open, not a resource.
_CONNECTION_RELS = frozenset({"dns-prefetch", "preconnect"})
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_HTTP = ("http://", "https://")
_LINK_HEADER = re.compile(r"<([^<>]*)>((?:[^,\"]|\"(?:[^\"\\]|\\.)*(?:\"|$))*)")
_LINK_PARAMETER = re.compile(r";\s*([A-Za-z*_-]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"?|([^\s;,]*))")


class LinkElement(NamedTuple):
    """An attribute that holds a URL.

    Attributes:
        element: tag name.
        attribute: attribute name.
        raw: the URL as written; of a srcset one candidate.
        kind: what kind of link it is.
        rel: rel words in lower case.
        node: the element.
    """

    element: str
    attribute: str
    raw: str
    kind: LinkKind
    rel: str
    node: LexborNode


def link_elements(tree: LexborHTMLParser) -> Iterator[LinkElement]:
    """Every attribute of a document that links somewhere, in document order (metas aside)."""
    for node in tree.css(_SELECTOR):
        tag = node.tag
        if tag is None:
            continue
        attributes = node.attributes
        if tag == "a" or tag == "area":
            if "href" in attributes:
                kind = LinkKind.A if tag == "a" else LinkKind.AREA
                yield LinkElement(tag, "href", attributes["href"] or "", kind, _rel(attributes.get("rel")), node)
        elif tag == "link":
            rel = _rel(attributes.get("rel"))
            if attributes.get("href") and not _CONNECTION_RELS.issuperset(rel.split() or [""]):
                kind = _link_kind(rel, "hreflang" in attributes)
                yield LinkElement(tag, "href", attributes["href"] or "", kind, rel, node)
        elif tag == "img" or tag == "source":
            # The src of a source is a sound or a film; of an img it is the image.
            if tag == "img" and attributes.get("src"):
                yield LinkElement(tag, "src", attributes["src"] or "", LinkKind.IMG, "", node)
            for raw in srcset_urls(attributes.get("srcset") or ""):
                yield LinkElement(tag, "srcset", raw, LinkKind.IMG, "", node)
        elif tag == "frame" or tag == "iframe":
            if attributes.get("src"):
                yield LinkElement(tag, "src", attributes["src"] or "", LinkKind.FRAME, "", node)
        elif "action" in attributes and (attributes.get("method") or "").strip().lower() not in ("post", "dialog"):
            rel = _rel(attributes.get("rel"))
            yield LinkElement(tag, "action", attributes["action"] or "", LinkKind.FORM, rel, node)


def found_links(
    tree: LexborHTMLParser, page_url: str, base: str | None = None, encoding: str = "utf-8"
) -> list[FoundLink]:
    """Every link of a document, in document order; a meta refresh with a target comes last.

    Args:
        tree: the document.
        page_url: its own URL.
        base: its base where it is known already.
        encoding: its encoding, in which browsers write the query of its links.
    """
    base = base or base_url(tree, page_url)
    found = []
    for element in link_elements(tree):
        url = resolved(element.raw, base, encoding) or ""
        found.append(FoundLink(url, element.raw, element.kind, element.rel, anchor_text(element)))
    refresh = meta_refresh(tree, base, page_url)
    if refresh is not None and refresh.raw:
        found.append(FoundLink(refresh.target, refresh.raw, LinkKind.META_REFRESH, "", ""))
    return found


def resolved(raw: str, base: str, encoding: str = "utf-8") -> str | None:
    """A URL as written, absolute; None when it is no URL.

    The query of a link is written in the document's encoding (URL standard, "encoding-parse a
    URL"): on a windows-1251 page `?q=д` asks for `?q=%E4`.
    """
    if encoding != "utf-8" and not raw.isascii():
        raw = _encoded_query(raw, encoding)
    return parse(raw, base)


def _encoded_query(raw: str, encoding: str) -> str:
    front, mark, rest = raw.partition("?")
    if not mark or "#" in front or encoding in ("utf-16le", "utf-16be", "replacement", "x-user-defined"):
        return raw
    query, hash_mark, fragment = rest.partition("#")
    codec = codec_of(encoding)

    def escaped(match: re.Match[str]) -> str:
        # What the encoding lacks becomes a numeric character reference, percent-encoded.
        written = match.group().encode(codec, "xmlcharrefreplace")
        return "".join(chr(byte) if 0x2F < byte < 0x7F and byte != 0x3B else f"%{byte:02X}" for byte in written)

    return f"{front}?{_NOT_ASCII.sub(escaped, query)}{hash_mark}{fragment}"


def anchor_text(element: LinkElement) -> str:
    """The text of a link, or what stands for it: the alternative text of an image."""
    node = element.node
    if element.kind is LinkKind.A:
        text = collapsed(node.text()[:_TOO_MUCH_TEXT])
        if not text:
            image = node.css_first("img")
            text = collapsed(attribute(image, "alt") or "") if image is not None else ""
    elif element.element in ("img", "area"):
        text = collapsed(attribute(node, "alt") or "")
    elif element.element in ("link", "iframe", "frame"):
        text = collapsed(attribute(node, "title") or "")
    else:
        text = ""
    return text[:MAX_ANCHOR_CHARACTERS]


def canonical_of(links: list[FoundLink]) -> str | None:
    """The absolute target of the first canonical link that names an http(s) URL."""
    for link in links:
        if link.kind is LinkKind.CANONICAL and link.url.startswith(_HTTP):
            return link.url
    return None


def header_links(lines: tuple[str, ...], page_url: str) -> list[FoundLink]:
    """The links of Link headers (RFC 8288, section 3) whose relation says where another page is."""
    found = []
    for line in lines:
        for target, parameters in _LINK_HEADER.findall(line):
            named = {name.lower(): quoted or bare for name, quoted, bare in _LINK_PARAMETER.findall(parameters)}
            rel = _rel(named.get("rel"))
            if {"canonical", "alternate", "next", "prev"}.isdisjoint(rel.split()) or "anchor" in named:
                continue
            kind = _link_kind(rel, "hreflang" in named)
            found.append(FoundLink(parse(target, page_url) or "", target, kind, rel, ""))
    return found


def resolved_links(html: str, url: str, only_http: bool = False, scripting: bool = False) -> list[tuple[str, str, str]]:
    """The links of one document as (element, attribute, absolute URL).

    Args:
        html: the document.
        url: its URL.
        only_http: leave out other schemes.
        scripting: take noscript as a browser that runs scripts does.
    """
    tree = parse_html(html, scripting)
    base = base_url(tree, url)
    links = []
    for element in link_elements(tree):
        target = resolved(element.raw, base)
        if target is not None and (not only_http or target.startswith(_HTTP)):
            links.append((element.element, element.attribute, target))
    return links


def raw_links(html: str) -> list[tuple[str, str, str]]:
    """The links of one document as (element, attribute, URL as written)."""
    return [(element.element, element.attribute, element.raw) for element in link_elements(parse_html(html))]


def _rel(value: str | None) -> str:
    return collapsed(value).lower() if value else ""


def _link_kind(rel: str, has_language: bool) -> LinkKind:
    words = rel.split()
    if "canonical" in words:
        return LinkKind.CANONICAL
    return LinkKind.HREFLANG if "alternate" in words and has_language else LinkKind.LINK
