"""The rules of URL identity: one ordered, versioned list of small named functions.

The first step is always the WHATWG parser (`parse`), which already lower-cases scheme and host,
turns IDN into punycode, drops default ports, resolves dot segments, gives an empty path its
slash and percent-encodes what no URL may hold. The rules here come after it, in the order of
`RULES`; each takes a URL that has been parsed and gives one that would parse to itself.

A change that gives any URL another identity raises `RULES_VERSION`; maintenance then moves the
rows of `urls` to their new ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ada_url import join_url, normalize_url

from recrawl.config.model import Urls

#: Raised whenever a rule changes the canonical form of any URL.
RULES_VERSION: int = 1

#: Query parameters that carry a session or a campaign, not content: the configuration's defaults.
DEFAULT_DROP_PARAMETERS: tuple[str, ...] = tuple(Urls().drop_parameters)


@dataclass(frozen=True)
class Rule:
    """One rule of URL identity.

    Attributes:
        function: what it does; its first docstring line is the sentence for people. `drop_param`
            also takes the pattern of what it drops.
        before: a URL that it changes.
        after: what it makes of `before`.
        why: what would go wrong without it.
        needs: the rule can change a URL only if one of these occurs in it.
        optional: it can be left out by name (`canonical_with`); the others always apply.
        in_request: it also shapes what is requested, not only the identity.
    """

    function: Callable[..., str | None]
    before: str
    after: str
    why: str
    needs: tuple[str, ...]
    optional: bool = False
    in_request: bool = False

    @property
    def name(self) -> str:
        """How configuration, cases and documents call the rule."""
        return self.function.__name__

    @property
    def what(self) -> str:
        """What the rule does, one sentence."""
        return (self.function.__doc__ or "").partition("\n")[0]


def parse(input: str, base: str | None = None) -> str | None:
    """The href that the WHATWG URL parser makes of `input`, or None where it fails.

    Args:
        input: any text; lone surrogates count as U+FFFD, as the standard's strings demand.
        base: the URL that a relative `input` is resolved against.
    """
    try:
        return normalize_url(input) if base is None else join_url(base, input)
    except ValueError:
        scalars = _scalar_values(input)
        if scalars != input:
            return parse(scalars, base)
        if base is not None and (scalar_base := _scalar_values(base)) != base:
            return parse(input, scalar_base)
        return None


def _scalar_values(text: str) -> str:
    """`text` with lone surrogates replaced by U+FFFD (a USVString, WebIDL 3.2.12)."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def path_start(url: str) -> int:
    """The index of the slash that begins the path of a parsed http, https or ftp URL."""
    return url.index("/", url.index("://") + 3)


_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def lone_percent(url: str) -> str:
    """Encodes a percent sign that begins no escape."""
    return _LONE_PERCENT.sub("%25", url)


_UNRESERVED_ESCAPE = re.compile(r"%(?:2[DEde]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])")


def needless_escapes(url: str) -> str:
    """Decodes escapes of unreserved characters (RFC 3986, 6.2.2.2)."""
    return _UNRESERVED_ESCAPE.sub(lambda escape: chr(int(escape[0][1:], 16)), url)


_LOWER_ESCAPE = re.compile(r"%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])")


def escape_case(url: str) -> str:
    """Writes the hex digits of escapes in upper case (RFC 3986, 6.2.2.1)."""
    return _LOWER_ESCAPE.sub(lambda escape: escape[0].upper(), url)


_NOT_URI = re.compile(r'["<>\[\\\]^`{|}]')


def unsafe_characters(url: str) -> str:
    """Encodes characters of path and query that RFC 3986 allows nowhere but the parser lets pass."""
    # The authority stays as it is: the brackets of an IPv6 address belong there.
    start = path_start(url)
    if _NOT_URI.search(url, start) is None:
        return url
    return url[:start] + _NOT_URI.sub(lambda unsafe: f"%{ord(unsafe[0]):02X}", url[start:])


def drop_userinfo(url: str) -> str:
    """Drops user name and password."""
    start, end = url.index("://") + 3, path_start(url)
    at = url.rfind("@", start, end)
    return url if at < 0 else url[:start] + url[at + 1 :]


def drop_fragment(url: str) -> str:
    """Drops the fragment, which never reaches the server."""
    return url.partition("#")[0]


_PORT = re.compile(r":\d+$")


def trailing_dot(url: str) -> str | None:
    """Drops the dots at the end of a host name."""
    end = path_start(url)
    port = _PORT.search(url[:end])
    host_end = end if port is None else port.start()
    cut = url[:host_end].rstrip(".")
    # Without its dot a host can be an IPv4 address (`0x7f.1..`) or nothing: parse again.
    return url if len(cut) == host_end else parse(cut + url[host_end:])


def parameter_pattern(drop_parameters: Sequence[str]) -> re.Pattern[str] | None:
    """A pattern of the parameters to drop, each with the `?`, `&` or `;` before it.

    Args:
        drop_parameters: names, compared without case; a `*` at the end matches any ending.
    """
    names = [
        re.escape(name[:-1]) + "[^=&;/?#]*" if name.endswith("*") else re.escape(name)
        for name in drop_parameters
        if name.strip("*")
    ]
    return re.compile(rf"([?&;])(?:{'|'.join(names)})(?=[=&;/?#]|$)", re.IGNORECASE) if names else None


def drop_param(url: str, dropped: re.Pattern[str]) -> str | None:
    """Drops session and tracking parameters, of the query and of path segments.

    `dropped` (of `parameter_pattern`) matches what goes. Query parameters go
    with and without a value, path parameters (`;jsessionid=…`) only with one.
    """
    if dropped.search(url) is None:
        return url
    front, hash_mark, fragment = url.partition("#")
    path, question, query = front.partition("?")
    kept = [piece for piece in query.split("&") if dropped.match(f"&{piece}") is None]
    query = "&".join(kept)
    bare = _drop_path_parameters(path, dropped)
    dropped_url = bare + (question if query else "") + query + hash_mark + fragment
    # `/..;sid=1` has become a dot segment.
    return dropped_url if bare == path else parse(dropped_url)


def _drop_path_parameters(path: str, dropped: re.Pattern[str]) -> str:
    start = path_start(path)
    if ";" not in path:
        return path
    segments = []
    for segment in path[start:].split("/"):
        name, *parameters = segment.split(";")
        kept = [text for text in parameters if "=" not in text or dropped.match(f";{text}") is None]
        segments.append(";".join((name, *kept)))
    return path[:start] + "/".join(segments)


def sort_query(url: str) -> str:
    """Sorts the parameters of the query by name, then value, and drops empty ones."""
    front, hash_mark, fragment = url.partition("#")
    path, question, query = front.partition("?")
    if "&" not in query:
        return url
    # By name, then value: `a` and `a=` stay apart, `a-b` sorts behind `a`.
    pieces = sorted(piece.partition("=") for piece in query.split("&") if piece)
    query = "&".join(["".join(piece) for piece in pieces])
    return f"{path}{question}{query}{hash_mark}{fragment}"


def empty_query(url: str) -> str:
    """Drops the question mark of an empty query."""
    front, hash_mark, fragment = url.partition("#")
    return f"{front[:-1]}{hash_mark}{fragment}" if front.endswith("?") and "?" not in front[:-1] else url


RULES: tuple[Rule, ...] = (
    Rule(
        lone_percent,
        "http://example.com/90%",
        "http://example.com/90%25",
        "Servers read it as the escape, and pages write both.",
        ("%",),
    ),
    Rule(
        needless_escapes,
        "http://example.com/%7Eann",
        "http://example.com/~ann",
        "RFC 3986 calls both forms the same URL.",
        ("%",),
    ),
    Rule(
        escape_case,
        "http://example.com/%c3%a9",
        "http://example.com/%C3%A9",
        "RFC 3986 calls both forms the same URL.",
        ("%",),
    ),
    Rule(
        unsafe_characters,
        "http://example.com/?x[y]=1",
        "http://example.com/?x%5By%5D=1",
        "Browsers, other crawlers and archives write these in two ways.",
        tuple('"<>[\\]^`{|}'),
    ),
    Rule(
        drop_userinfo,
        "http://ann:secret@example.com/",
        "http://example.com/",
        "Credentials are no part of what a page is, and must not be stored.",
        ("@",),
        optional=True,
        in_request=True,
    ),
    Rule(
        drop_fragment,
        "http://example.com/#top",
        "http://example.com/",
        "It names a place in the page, not another page.",
        ("#",),
        optional=True,
        in_request=True,
    ),
    Rule(
        trailing_dot,
        "http://example.com./",
        "http://example.com/",
        "Both name the same host, and servers answer both.",
        ("./", ".:"),
        optional=True,
        in_request=True,
    ),
    Rule(
        drop_param,
        "http://example.com/a;jsessionid=1?utm_source=x&id=3",
        "http://example.com/a?id=3",
        "A session or campaign makes endless URLs of one page.",
        ("?", ";"),
        optional=True,
        in_request=True,
    ),
    Rule(
        sort_query,
        "http://example.com/?b=2&a=1",
        "http://example.com/?a=1&b=2",
        "Forms and templates write the same parameters in any order.",
        ("&",),
        optional=True,
    ),
    Rule(
        empty_query,
        "http://example.com/?",
        "http://example.com/",
        "Servers answer both alike.",
        ("?",),
    ),
)

OPTIONAL_RULES: tuple[str, ...] = tuple(rule.name for rule in RULES if rule.optional)
