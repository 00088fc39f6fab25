"""Seed files: one URL a line, with what a person wants to say about it.

    # comment
    https://example.org/            scope=host tags=news,daily credit=2.5
    example.com/start               priority=3

After the URL, separated by blanks or tabs, come attributes `key=value`; a word that begins with
`#` ends the line. Nothing here raises: each line that can't be taken is a problem with its number
and its reason, and the rest is taken. Files come as people's editors leave them: with or without
BOM, any line ends, UTF-16 too.
"""

from __future__ import annotations

import codecs
import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from recrawl.tables.vocabulary import RejectFilter, Scope

#: The canonical form of a URL; None, or a ValueError that says why, where it is none.
Canonicalise = Callable[[str], str | None]

MAX_LINE_BYTES = 8_192
MAX_CREDIT = 1_000_000.0
MAX_PRIORITY = 1_000.0

KNOWN_KEYS = ("scope", "tags", "credit", "priority")

_TEXT_SHOWN = 200
_LINE_END = re.compile(rb"\r\n|\n|\r")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
_SCHEMELESS = re.compile(r"^(localhost|\[[0-9a-f:.]+\]|[^\s/?#:@]+\.[^\s/?#:@]+|[^\s/?#:@]+(?=:\d))", re.IGNORECASE)


@dataclass(frozen=True)
class SeedLine:
    """A seed as it stands in a file; None where the line says nothing.

    Attributes:
        line_number: from 1. url: as written, with a scheme. canonical_url: the seed's identity.
        credit: AOPIC credit. priority: factor on the crawl value.
        note: what was done to the line that its writer should know; empty: nothing.
    """

    line_number: int
    url: str
    canonical_url: str
    scope: Scope | None
    tags: tuple[str, ...]
    credit: float | None
    priority: float | None
    note: str


@dataclass(frozen=True)
class SeedProblem:
    """A line that was not taken, and why."""

    line_number: int
    text: str
    reason: str
    filter: RejectFilter


@dataclass(frozen=True)
class ParsedSeeds:
    """The seeds of a file and the lines that are none, both in the file's order."""

    accepted: tuple[SeedLine, ...]
    problems: tuple[SeedProblem, ...]

    def as_json(self) -> dict[str, list[dict[str, object]]]:
        """Both lists as JSON-ready data."""
        return {"accepted": [asdict(s) for s in self.accepted], "problems": [asdict(p) for p in self.problems]}


class _LineError(ValueError):
    """A line that is no seed; the message is the reason."""

    def __init__(self, reason: str, turned_away_by: RejectFilter = RejectFilter.BAD_SEED) -> None:
        super().__init__(reason)
        self.turned_away_by = turned_away_by


def _number(key: str, value: str, lowest: float, highest: float) -> float:
    try:
        number = float(value)
    except ValueError:
        raise _LineError(f"{key}={value} is not a number") from None
    if not math.isfinite(number) or not lowest <= number <= highest:
        raise _LineError(f"{key}={value} is not between {lowest:g} and {highest:g}")
    return number


def _scope(value: str) -> Scope:
    scopes = {scope.value: scope for scope in Scope}
    if value.lower() not in scopes:
        raise _LineError(f"scope={value} is none of {', '.join(scopes)}")
    return scopes[value.lower()]


def _attributes(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = key.lower()
        if not equals:
            raise _LineError(f"{word!r} is not key=value; a URL must not contain blanks")
        if key not in KNOWN_KEYS:
            nearest = difflib.get_close_matches(key, KNOWN_KEYS, n=1, cutoff=0.0)[0]
            raise _LineError(f"the attribute {key!r} is not known; the nearest is {nearest!r}")
        if key in found:
            raise _LineError(f"the attribute {key!r} is given twice")
        if not value:
            raise _LineError(f"the attribute {key!r} has no value")
        found[key] = value
    return found


def _with_scheme(url: str) -> tuple[str, str]:
    """The URL with a scheme, and a note if one was added. https: sites that lack it redirect or fail visibly."""
    if url.startswith("//"):
        return f"https:{url}", "had no scheme; https was added"
    if _SCHEME.match(url):
        return url, ""
    if not _SCHEMELESS.match(url):
        raise _LineError(f"{url!r} is not a URL")
    return f"https://{url}", "had no scheme; https was added"


def _canonical(url: str, canonicalise: Canonicalise) -> str:
    try:
        canonical = canonicalise(url)
    except ValueError as error:
        raise _LineError(str(error) or "it is not a URL", RejectFilter.INVALID) from None
    if canonical is None:
        raise _LineError("it is not a URL", RejectFilter.INVALID)
    return canonical


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_LINE_BYTES:
        raise _LineError(f"the line has {len(raw):,} bytes; more than {MAX_LINE_BYTES:,} is not a URL")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _LineError(f"the line is not UTF-8 (byte {error.start + 1})") from None
    if "\0" in text:
        raise _LineError("the line contains NUL bytes; is the file binary?")
    return text


def _parse_line(line_number: int, raw: bytes, canonicalise: Canonicalise) -> SeedLine | None:
    words = _decoded(raw).split()
    comment = next((place for place, word in enumerate(words) if word.startswith("#")), len(words))
    words = words[:comment]
    if not words:
        return None
    attributes = _attributes(words[1:])
    url, note = _with_scheme(words[0])
    credit, priority = attributes.get("credit"), attributes.get("priority")
    tags = (tag.strip() for tag in attributes.get("tags", "").split(","))
    return SeedLine(
        line_number=line_number,
        url=url,
        canonical_url=_canonical(url, canonicalise),
        scope=_scope(attributes["scope"]) if "scope" in attributes else None,
        tags=tuple(dict.fromkeys(tag for tag in tags if tag)),
        credit=None if credit is None else _number("credit", credit, 0.0, MAX_CREDIT),
        priority=None if priority is None else _number("priority", priority, 0.0, MAX_PRIORITY),
        note=note,
    )


def _lines(data: bytes) -> list[bytes]:
    """The lines, as UTF-8 where the BOM says UTF-16 and the text agrees."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", errors="replace").encode("utf-8", errors="replace")
    return _LINE_END.split(data.removeprefix(codecs.BOM_UTF8))


def parse_seed_file(data: bytes, canonicalise: Canonicalise, known: Mapping[str, str] | None = None) -> ParsedSeeds:
    """Reads a seed file.

    Args:
        data: the file's bytes.
        canonicalise: the rules that make two spellings one seed.
        known: canonical URLs that other files gave, with their place ("a.txt, line 3").
    """
    accepted: list[SeedLine] = []
    problems: list[SeedProblem] = []
    places = dict(known or {})
    for line_number, raw in enumerate(_lines(data), start=1):
        try:
            seed = _parse_line(line_number, raw, canonicalise)
            if seed is None:
                continue
            if seed.canonical_url in places:
                first = places[seed.canonical_url]
                raise _LineError(f"the same URL as {first}: {seed.canonical_url}", RejectFilter.DUPLICATE_SEED)
        except _LineError as error:
            shown = raw[: _TEXT_SHOWN * 4].decode("utf-8", errors="backslashreplace").replace("\0", "\\0").strip()
            problems.append(SeedProblem(line_number, shown[:_TEXT_SHOWN], str(error), error.turned_away_by))
            continue
        places[seed.canonical_url] = f"line {line_number}"
        accepted.append(seed)
    return ParsedSeeds(tuple(accepted), tuple(problems))
