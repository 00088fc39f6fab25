"""The rules of one robots.txt for our agent: may this URL be fetched, and which line says so?"""

from __future__ import annotations

import re
from typing import NamedTuple, Self
from urllib.parse import quote, quote_from_bytes

from protego import Protego

from recrawl.robots.lines import Field, Line, part_for

#: Characters of a deciding line that are kept.
MAX_RULE_CHARACTERS = 500


class RobotsDecision(NamedTuple):
    """May a URL be fetched?

    Attributes:
        allowed: the answer.
        rule: the line that decided, "" where no line speaks of the URL.
    """

    allowed: bool
    rule: str


class RobotsRules:
    """What a robots.txt lets our agent fetch (RFC 9309, 2.2.2): the longest matching rule decides.

    Made by `parse`. protego decides, given nothing but the rules that concern our agent; the
    deciding line, which protego can't name, is looked up here.
    """

    def __init__(self, lines: tuple[Line, ...], crawl_delay_seconds: float | None, sitemaps: tuple[str, ...]) -> None:
        self.crawl_delay_seconds = crawl_delay_seconds
        self.sitemaps = sitemaps
        self._protego = _protego_of(lines)
        patterns = sorted(map(_Pattern.of, lines), key=lambda pattern: len(pattern.normal), reverse=True)
        # By what they say, each side as one text: objects would take seven times the memory, and a task keeps
        # thousands of files.
        self._packed = tuple("\n".join(p.packed() for p in patterns if p.allow == allow) for allow in (False, True))

    @classmethod
    def parse(cls, body: bytes | str, agent: str) -> Self:
        """The rules for `agent` in a robots.txt of any content; never fails.

        Args:
            body: the file; bytes after the first 512 KiB are not read.
            agent: our product token (a whole User-Agent header does too).
        """
        part = part_for(body, agent)
        return cls(part.rules, part.crawl_delay_seconds, part.sitemaps)

    def allows(self, url: str) -> bool:
        """May `url`, a canonical URL or one as it is requested, be fetched?"""
        return self._protego is None or self._protego.can_fetch(url, "*")

    def decide(self, url: str) -> RobotsDecision:
        """Like `allows`, with the line that decided."""
        allowed = self.allows(url)
        path = _normal_path(url)
        if path != "/robots.txt":
            packed = self._packed[allowed]
            for line in packed.split("\n") if packed else ():
                pattern = _Pattern.unpacked(line, allowed)
                if pattern.matches(path):
                    return RobotsDecision(allowed, pattern.text)
        return RobotsDecision(allowed, "")


def _protego_of(lines: tuple[Line, ...]) -> Protego | None:
    if not lines:
        return None
    rules = [f"{line.field.value}: {_ascii(line.value)}\n" for line in lines]
    return Protego.parse("User-agent: *\n" + "".join(rules))


def _ascii(value: str) -> str:
    """`value` with all but printable ASCII encoded: protego also ends lines at U+2028 and such."""
    return re.sub(r"[^\x20-\x7e]", lambda found: quote(found[0], errors="surrogateescape"), value)


class _Pattern(NamedTuple):
    """A rule ready to be compared: pieces between its wildcards, anchored or not."""

    allow: bool
    normal: str
    text: str

    @classmethod
    def of(cls, line: Line) -> Self:
        value = _ascii(line.value)
        # A rule written as an absolute URL speaks of paths that hold that URL.
        if value.startswith(("http://", "https://")):
            value = f"/{value}"
        anchor = "$" if value.endswith("$") else ""
        normal = _normal(value.removesuffix("$"), kept="/%*") + anchor
        text = line.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return cls(line.field is Field.ALLOW, normal, text[:MAX_RULE_CHARACTERS])

    def packed(self) -> str:
        """The pattern as a line; its `normal` form has no white space, its text no line end."""
        return f"{self.normal}\t{self.text}"

    @classmethod
    def unpacked(cls, line: str, allow: bool) -> Self:
        """The pattern of `packed`."""
        normal, _, text = line.partition("\t")
        return cls(allow, normal, text)

    def matches(self, path: str) -> bool:
        if _matches(self.normal, path):
            return True
        # What Google's parser does and protego with it: `$` also stands for itself, and an
        # allowed index.html allows its folder.
        if self.normal.endswith("$"):
            return _matches(self.normal[:-1] + "%24", path)
        return (
            self.allow
            and self.normal.endswith("/index.html")
            and _matches(self.normal.removesuffix("index.html") + "$", path)
        )


def _matches(pattern: str, path: str) -> bool:
    """Does `pattern` (`*`: any characters, `$` at its end: the end) match from the start of `path`?

    Each piece is taken at its first place, which is enough and linear, where a regular
    expression of many stars would not end.
    """
    anchored = pattern.endswith("$")
    first, *rest = (pattern[:-1] if anchored else pattern).split("*")
    if not path.startswith(first):
        return False
    position = len(first)
    if not rest:
        return not anchored or position == len(path)
    *middle, last = rest
    for piece in middle:
        found = path.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    if anchored:
        return len(path) - len(last) >= position and path.endswith(last)
    return path.find(last, position) >= 0


_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def _normal(text: str, kept: str) -> str:
    """`text` in the one spelling in which rules and paths are compared (RFC 9309, 2.2.2).

    Escapes are decoded, save those of the characters in `kept`, and everything that needs an
    escape gets one.
    """

    def decoded(escape: re.Match[bytes]) -> bytes:
        byte = bytes.fromhex(escape[1].decode("ascii"))
        return escape[0].upper() if byte in kept.encode("ascii") else byte

    raw = _ESCAPE.sub(decoded, text.encode("utf-8", "surrogateescape"))
    # protego compares text, where all bytes that are no UTF-8 are one and the same.
    return quote_from_bytes(raw.decode("utf-8", "replace").encode("utf-8"), safe=f"{kept}=")


_BEFORE_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


def _normal_path(url: str) -> str:
    path = _BEFORE_PATH.sub("", url.partition("#")[0], count=1)
    return _normal(path if path.startswith("/") else f"/{path}", kept="/%")
