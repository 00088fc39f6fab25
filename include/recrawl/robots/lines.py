"""Reading robots.txt: lines, groups, and the part of the file that speaks to one agent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

#: RFC 9309, 2.5 asks for at least 500 KiB; what comes later is not read.
MAX_BYTES = 512 * 1024

_BOM = b"\xef\xbb\xbf"


class Field(Enum):
    """The fields that mean something to us; all other lines are as if they were not there."""

    AGENT = "agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    CRAWL_DELAY = "crawl_delay"
    SITEMAP = "sitemap"


# Spellings found in the wild; the colon may be missing. The named groups are those of `Field`.
_LINE = re.compile(
    r"""\s*(?:
        (?P<agent>user[- ]?agent)
      | (?P<allow>allow)
      | (?P<disallow>diss?all?ow|diasllow|disallaw)
      | (?P<crawl_delay>crawl[- ]?delay)
      | (?P<sitemap>site-?maps?)
    )(?:\s*:|\s|$)(?P<value>.*)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


class Line(NamedTuple):
    """A line that means something.

    Attributes:
        field: what it says.
        value: its value, without comment and outer white space.
        text: the line as it stands, without comment and outer white space.
    """

    field: Field
    value: str
    text: str


def read_lines(body: bytes | str) -> Iterator[Line]:
    """The meaningful lines of a robots.txt.

    Bytes that are no UTF-8 stay what they are (as lone surrogates), because rules compare bytes.
    Of a file over `MAX_BYTES` the line that the cap cuts is left out: half a path forbids more
    than the whole one.
    """
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    data = data.removeprefix(_BOM)
    if len(data) > MAX_BYTES:
        end = max(data.rfind(b"\n", 0, MAX_BYTES), data.rfind(b"\r", 0, MAX_BYTES))
        data = data[: max(end, 0)]
    # bytes.splitlines knows CR, LF and CRLF alone; that of str would also cut at U+2028.
    for raw in data.splitlines():
        text = raw.partition(b"#")[0].decode("utf-8", "surrogateescape").strip()
        found = _LINE.match(text)
        if found is not None:
            name = next(field for field in Field if found[field.value] is not None)
            yield Line(name, found["value"].strip(), text)


def agent_token(value: str) -> str:
    """The product token of an agent line's value, in lower case; `*` for everyone, "" for nobody."""
    if value.startswith("*") and (len(value) == 1 or value[1].isspace()):
        return "*"
    token = re.split(r"[\s/,;]", value.replace("*", ""), maxsplit=1)[0]
    return token.lower()


class AgentPart(NamedTuple):
    """What a robots.txt says to one agent.

    Attributes:
        rules: the allow and disallow lines of its groups, in the order of the file.
        crawl_delay_seconds: the greatest Crawl-delay given to it, or None.
        sitemaps: the values of the Sitemap lines, which concern everyone.
    """

    rules: tuple[Line, ...]
    crawl_delay_seconds: float | None
    sitemaps: tuple[str, ...]


def part_for(body: bytes | str, agent: str) -> AgentPart:
    """The part of a robots.txt that concerns `agent` (RFC 9309, 2.2.1).

    Groups of one token are merged; without a group of its own the agent obeys those of `*`. A
    Crawl-delay does not end a group (RFC 9309, 2.2.4), so that agent lines on both of its sides
    share the rules below; the delay itself concerns only the agents named since the last delay
    or rule.
    """
    name = agent.strip().lower()
    rules: dict[str, list[Line]] = {}
    delays: dict[str, float] = {}
    sitemaps: dict[str, None] = {}
    group: set[str] = set()
    delayed: set[str] = set()
    group_ended = delay_ended = False
    for line in read_lines(body):
        if line.field is Field.AGENT:
            if group_ended:
                group.clear()
            if delay_ended:
                delayed.clear()
            group_ended = delay_ended = False
            token = agent_token(line.value)
            # Groups of others are not kept: a hostile file can name 30,000 agents.
            if token == "*" or _names(token, name):
                group.add(token)
                delayed.add(token)
                rules.setdefault(token, [])
        elif line.field is Field.SITEMAP:
            if line.value:
                sitemaps[line.value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")] = None
        elif line.field is Field.CRAWL_DELAY:
            delay_ended = True
            seconds = _seconds(line.value)
            if seconds is not None:
                delays.update({token: max(seconds, delays.get(token, 0.0)) for token in delayed})
        else:
            group_ended = delay_ended = True
            if line.value:
                for token in group:
                    rules[token].append(line)
    # The longest token that names the agent; `*` names everyone, but stands behind all others.
    chosen = max(rules, key=lambda token: (token != "*", len(token)), default="")
    return AgentPart(tuple(rules.get(chosen, ())), delays.get(chosen), tuple(sitemaps))


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _names(token: str, agent: str) -> bool:
    """Does `token` stand at the start of a word of `agent`, a token or a whole User-Agent?"""
    index = agent.find(token) if token else -1
    while index > 0 and (agent[index - 1].isalnum() or agent[index - 1] in "-_"):
        index = agent.find(token, index + 1)
    return index >= 0
