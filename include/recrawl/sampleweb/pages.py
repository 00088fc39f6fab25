"""What a sample site answers to a path: a pure function of the site, the path and the edition."""

from __future__ import annotations

import hashlib
import random
from html import escape
from typing import NamedTuple

from recrawl.sampleweb.texts import SITES, SampleSite

_STYLE = "body{max-width:42em;margin:2em auto;font:1.1em/1.6 serif;color:#233}nav a{margin-right:1em}"


class SamplePage(NamedTuple):
    """An answer; `location` is the target of a redirect, or empty."""

    status: int
    content_type: str
    body: bytes
    location: str = ""


def page_of(site: SampleSite, path: str, origin: str, edition: int) -> SamplePage:
    """The answer of `site` to `path`.

    Args:
        site: the site.
        path: the path without a query.
        origin: the scheme and authority that the site is served as.
        edition: a number that grows with time; front page and news change with it, and so do
            the weather site's articles.
    """
    if path == "/":
        return _front(site, origin, edition)
    if path == "/robots.txt":
        return _robots(site, origin)
    if path == "/sitemap.xml":
        return _sitemap(site, origin)
    if path == "/news":
        return _html(
            site, f"News, edition {edition}", _paragraphs(site, site.topics[edition % len(site.topics)], edition)
        )
    if path == "/about":
        return _html(
            site, f"About: {site.title}", f"<p>A made-up site of the sample web: {', '.join(site.topics)}.</p>"
        )
    if path.startswith(("/private/", "/archive/")):
        return _html(site, "Not for crawlers", f"<p>robots.txt may ask crawlers to stay away from {escape(path)}.</p>")
    # An article has a page for readers, the same page for printing, and an address that it once had.
    for prefix in ("/articles/", "/print/", "/old/"):
        number = path.removeprefix(prefix)
        if path.startswith(prefix) and number.isascii() and number.isdigit() and int(number) < article_count(site):
            if prefix == "/old/":
                return SamplePage(301, "text/html; charset=utf-8", b"", f"{origin}/articles/{int(number)}")
            return _article(site, int(number), edition)
    page = _html(site, "Not found", "<p>There is nothing here.</p>")
    return page._replace(status=404)


def article_count(site: SampleSite) -> int:
    """How many articles the site has; they are numbered from 0."""
    return len(site.topics) * len(site.aspects)


def _article_title(site: SampleSite, number: int) -> tuple[str, str]:
    topic = site.topics[number % len(site.topics)]
    return site.aspects[number // len(site.topics)].format(topic=topic), topic


def _front(site: SampleSite, origin: str, edition: int) -> SamplePage:
    links = "".join(
        f'<li><a href="/articles/{number}">{escape(_article_title(site, number)[0])}</a></li>'
        for number in range(0, article_count(site), 2)
    )
    port = origin.rpartition(":")[2]
    friends = "".join(
        f'<li><a href="http://{other.host}:{port}/" hreflang="{other.language}">{escape(other.title)}</a></li>'
        for other in SITES
        if other != site
    )
    others = (("/about", "About"), ("/missing", "A page that is gone"), ("/private/diary", "Private"))
    more = "".join(f'<a href="{href}">{text}</a> ' for href, text in others)
    body = f"<p>Edition {edition}.</p><ul>{links}</ul><p>{more}</p><h2>Friends</h2><ul>{friends}</ul>"
    return _html(site, site.title, body)


def _article(site: SampleSite, number: int, edition: int) -> SamplePage:
    title, topic = _article_title(site, number)
    changing = edition if site.host.startswith("weather.") else 0
    last = article_count(site) - 1
    links = "".join(
        f'<a href="{href}">{escape(text)}</a> '
        for href, text in (
            (f"/articles/{min(number + 1, last)}", _article_title(site, min(number + 1, last))[0]),
            (f"/old/{number * 7 % (last + 1)}", _article_title(site, number * 7 % (last + 1))[0]),
            (f"/print/{number}", "⎙"),
        )
    )
    return _html(site, title, f"<article>{_paragraphs(site, topic, number * 1000 + changing)}</article><p>{links}</p>")


def _paragraphs(site: SampleSite, topic: str, seed: int) -> str:
    chance = random.Random(f"{site.host} {seed}")
    sentences = [sentence.format(topic=topic or site.title) for sentence in site.sentences]
    chance.shuffle(sentences)
    joint = "" if site.language == "ja" else " "
    half = len(sentences) // 2
    return "".join(f"<p>{escape(joint.join(part))}</p>\n" for part in (sentences[:half], sentences[half:-1]))


def _html(site: SampleSite, title: str, body: str) -> SamplePage:
    text = (
        f'<!DOCTYPE html>\n<html lang="{site.language}"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="author" content="{escape(site.title)}"><style>{_STYLE}</style></head>\n'
        f'<body><nav><a href="/">{escape(site.title)}</a><a href="/news">News</a></nav>\n'
        f"<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )
    return SamplePage(200, "text/html; charset=utf-8", text.encode())


def _robots(site: SampleSite, origin: str) -> SamplePage:
    if site.robots is None:
        return SamplePage(404, "text/plain", b"")
    text = f"User-agent: *\n{site.robots}\nSitemap: {origin}/sitemap.xml\n"
    return SamplePage(200, "text/plain; charset=utf-8", text.encode())


def _sitemap(site: SampleSite, origin: str) -> SamplePage:
    paths = ["/", "/news", "/about", *(f"/articles/{number}" for number in range(article_count(site)))]
    entries = "".join(f"<url><loc>{origin}{path}</loc></url>\n" for path in paths)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'
    return SamplePage(200, "application/xml", text.encode())


def etag_of(body: bytes) -> str:
    """The ETag of a body."""
    return f'"{hashlib.sha256(body).hexdigest()[:16]}"'
