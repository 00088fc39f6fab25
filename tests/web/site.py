"""The ordinary part of a test host: linked pages with titles and text, robots.txt, sitemaps, traps."""

from __future__ import annotations

import gzip
import hashlib
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NamedTuple
from urllib.parse import parse_qs

LAST_MODIFIED = datetime(2026, 1, 1, tzinfo=UTC)
_TEXT = (
    "river stone window garden letter morning copper bridge orchard winter lantern harbour "
    "meadow paper thunder basket violin candle forest market pepper shadow signal timber"
)
_WORDS = _TEXT.split(" ")


class Answer(NamedTuple):
    """An ordinary answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Site:
    """One host. Change its attributes at any time; they hold from the next request on.

    Attributes:
        host: its name.
        address: the loopback address that it is served from.
        pages: how many pages it has, `/` and `/page/1.html` to `/page/<pages - 1>.html`.
        robots: the body of robots.txt, or a status to answer instead of one.
        robots_behaviour: a path of `behaviours` (`/odd/hang`) that answers for robots.txt instead.
        delay_seconds: how long every answer waits.
        language: the language that pages declare.
        links_to: hosts that its front page links to.
        versions: how often `MisbehavingWeb.change` changed a path.
    """

    host: str
    address: str = "127.0.0.1"
    pages: int = 20
    robots: str | bytes | int = 404
    robots_behaviour: str = ""
    delay_seconds: float = 0.0
    language: str = "en"
    links_to: tuple[str, ...] = ()
    versions: dict[str, int] = field(default_factory=dict)

    @property
    def robots_text(self) -> str | None:
        """The rules that bind a crawler, or None."""
        if self.robots_behaviour or isinstance(self.robots, int):
            return None
        return self.robots if isinstance(self.robots, str) else self.robots.decode("utf-8-sig", "replace")

    def answer(self, path: str, port: int) -> Answer:
        """What the site answers to `path` (with its query)."""
        name, _, query = path.partition("?")
        if name == "/robots.txt":
            return self._robots()
        if name in ("/", "/index.html"):
            return self._page(0, path, port)
        if name.startswith("/page/") and name.endswith(".html"):
            number = name[len("/page/") : -len(".html")]
            if number.isascii() and number.isdigit() and 0 < int(number) < self.pages:
                return self._page(int(number), path, port)
        if name in ("/sitemap.xml", "/sitemap.xml.gz", "/sitemap-index.xml"):
            return self._sitemap(name, port)
        if name == "/calendar":
            return _calendar(query)
        if name.startswith("/deep/"):
            return _html(
                f"Depth {name.count('/')}", f'<a href="{name.rstrip("/")}/deeper/">deeper</a> <a href="a/">a</a>'
            )
        if name == "/session":
            sid = hashlib.sha1(query.encode(), usedforsecurity=False).hexdigest()
            return _html("Session", f'<a href="/session?sid={sid}">again</a> <a href="/page/1.html?sid={sid}">page</a>')
        _, headers, body = _html("Not found", "<p>There is no such page.</p>")
        return Answer(404, headers, body)

    def _robots(self) -> Answer:
        if isinstance(self.robots, int):
            return Answer(self.robots, [("Content-Type", "text/plain")], b"")
        body = self.robots.encode() if isinstance(self.robots, str) else self.robots
        return Answer(200, [("Content-Type", "text/plain; charset=utf-8")], body)

    def _page(self, number: int, path: str, port: int) -> Answer:
        version = self.versions.get(path, 0)
        chance = random.Random(f"{self.host} {number} {version}")
        targets = [2 * number + 1, 2 * number + 2, chance.randrange(self.pages)]
        links = [f'<a href="/page/{target}.html">Page {target}</a>' for target in targets if 0 < target < self.pages]
        links += [f'<a href="http://{host}:{port}/">{host}</a>' for host in self.links_to if number == 0]
        text = "".join(f"<p>{' '.join(chance.choices(_WORDS, k=60)).capitalize()}.</p>\n" for _ in range(4))
        title = f"Page {number} of {self.host}" + (f", version {version}" if version else "")
        modified = format_datetime(LAST_MODIFIED + timedelta(days=version), usegmt=True)
        status, headers, body = _html(title, f"<nav>{' '.join(links)}</nav>\n<article>{text}</article>", self.language)
        return Answer(status, [*headers, ("ETag", f'"{number}-{version}"'), ("Last-Modified", modified)], body)

    def _sitemap(self, name: str, port: int) -> Answer:
        root = f"http://{self.host}:{port}"
        form = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        if name == "/sitemap-index.xml":
            entries = (
                f"<sitemap><loc>{root}/sitemap.xml</loc></sitemap><sitemap><loc>{root}/sitemap.xml.gz</loc></sitemap>"
            )
            return _xml(f"<sitemapindex {form}>{entries}</sitemapindex>")
        entries = "".join(f"<url><loc>{root}/page/{number}.html</loc></url>" for number in range(1, self.pages))
        answer = _xml(f"<urlset {form}>{entries}</urlset>")
        if name.endswith(".gz"):
            return Answer(200, [("Content-Type", "application/gzip")], gzip.compress(answer.body, mtime=0))
        return answer


def _html(title: str, body: str, language: str = "en") -> Answer:
    text = f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title></head>\n'
    return Answer(200, [("Content-Type", "text/html; charset=utf-8")], f"{text}<body>{body}</body></html>\n".encode())


def _xml(text: str) -> Answer:
    return Answer(200, [("Content-Type", "application/xml")], f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode())


def _calendar(query: str) -> Answer:
    month = int(parse_qs(query).get("month", ["0"])[0])
    links = f'<a href="/calendar?month={month - 1}">before</a> <a href="/calendar?month={month + 1}">after</a>'
    return _html(f"Month {month}", links)
