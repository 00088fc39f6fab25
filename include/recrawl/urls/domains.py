"""Registered domains and SURTs: the keys that group URLs beyond their host."""

from __future__ import annotations

import re
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from recrawl.urls.canonical import split

_PORT = re.compile(r":\d*$")
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_WWW = re.compile(r"^www\d*\.")


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    # Reading the list takes a tenth of a second: once a process, and not at import.
    return PublicSuffixList()


def _is_address(host: str) -> bool:
    """Is a canonical host an IP address? The parser has already brought those to one form."""
    return host.startswith("[") or _IPV4.fullmatch(host) is not None


@lru_cache(maxsize=1 << 16)
def registered_domain(host: str) -> str:
    """The registered domain of a host: the public suffix and one label more.

    Args:
        host: a host as `host_of` gives it; a port is ignored.

    Returns:
        The registered domain; the host itself for IP addresses, for names of one label and for
        hosts that are public suffixes themselves.
    """
    name = _PORT.sub("", host)
    if _is_address(name):
        return name
    return _suffixes().privatesuffix(name) or name


def surt(url: str) -> str:
    """The SURT key of a canonical URL, as CDXJ indexes and the readers of web archives write it.

    Host labels (of an IPv4 address too) reversed and joined by commas, `:port`, `)`, path and
    sorted query; all in lower case, without scheme, brackets, a leading `www.` and a last slash,
    so that one look-up finds the variants that archives hold to be one page. It is a look-up
    key, never an identity.

    Raises:
        ValueError: the text is no canonical URL.
    """
    _, host, path, query = split(url)
    name = _PORT.sub("", host)
    port = host[len(name) :]
    labels = _WWW.sub("", name).split(".")
    if len(path) > 1:
        path = path.removesuffix("/")
    if query:
        pieces = sorted(piece.partition("=") for piece in query.lower().split("&"))
        query = "?" + "&".join(["".join(piece) for piece in pieces])
    return f"{','.join(reversed(labels)).strip('[]')}{port}){path.lower()}{query}"
