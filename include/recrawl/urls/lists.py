"""Blacklists and allow lists of hosts, URL prefixes, patterns and extensions.

A list holds its entries or names files of them: an entry `file:/path` stands for the lines of that
file, read anew whenever the filters are built, so once a round or task. Lists are sets asked a few
times, never loops, so that 100,000 hosts cost what ten do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from recrawl.errors import ConfigurationError

FILE_PREFIX = "file:"

_PORT = re.compile(r":\d*$")


def entries_of(key: str, listed: Iterable[str]) -> list[str]:
    """The entries of a list of the configuration, those of its files in their place.

    Blank lines and lines that begin with `#` say nothing. In lists of hosts a line may be one of a
    hosts file (`0.0.0.0 ads.example`) and end in a comment.

    Args:
        key: the list's name in the section `urls`, for messages.

    Raises:
        ConfigurationError: a file can't be read.
    """
    entries: list[str] = []
    for entry in listed:
        if entry.startswith(FILE_PREFIX):
            entries += _lines(key, Path(entry.removeprefix(FILE_PREFIX)))
        else:
            entries.append(entry)
    return entries


def _lines(key: str, file: Path) -> Iterator[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(
            f"urls.{key}: the file {file} can't be read: {told}.", "Give a path that every worker can read."
        ) from None
    for line in text.splitlines():
        line = line.strip()
        if key.endswith("_hosts"):
            line = (line.partition("#")[0].split() or [""])[-1]
        if line and not line.startswith("#"):
            yield line


class HostList:
    """Hosts and domains, each with all its subdomains, whatever the port."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._hosts = frozenset(host.lower().strip(".") for host in hosts)

    def __bool__(self) -> bool:
        return bool(self._hosts)

    def found(self, url: str, start: int, end: int) -> str:
        """The entry that names the host of `url`, whose path begins at `start`; "" for none."""
        name = url[url.find(":") + 3 : start].rpartition("@")[2]
        name = _PORT.sub("", name).lower().rstrip(".")
        while name:
            if name in self._hosts:
                return name
            name = name.partition(".")[2]
        return ""


class PrefixList:
    """URL prefixes, compared with canonical URLs as they are written."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._prefixes = frozenset(prefixes)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def __bool__(self) -> bool:
        return bool(self._prefixes)

    def found(self, url: str, start: int, end: int) -> str:
        """The entry with which `url` begins; "" for none."""
        for length in self._lengths:
            if length > len(url):
                break
            if url[:length] in self._prefixes:
                return url[:length]
        return ""


class PatternList:
    """Regular expressions that may match anywhere in the URL.

    Raises:
        ConfigurationError: a pattern is no regular expression.
    """

    def __init__(self, key: str, patterns: Iterable[str]) -> None:
        self._patterns = []
        for pattern in patterns:
            try:
                self._patterns.append(re.compile(pattern))
            except re.error as error:
                raise ConfigurationError(
                    f"urls.{key}: {pattern!r} is no regular expression ({error}).", "Mend or remove it."
                ) from None

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def found(self, url: str, start: int, end: int) -> str:
        """The pattern that matches in `url`; "" for none."""
        for pattern in self._patterns:
            if pattern.search(url):
                return pattern.pattern
        return ""


class ExtensionList:
    """Extensions of the last path segment, compared without case.

    Compressed sitemaps (`….xml.gz`) are never found: they are how sites list their pages.
    """

    _WITH_PARAMETERS = re.compile(r"\.([A-Za-z0-9]{1,10})(?:;[^/]*)?$")

    def __init__(self, extensions: Iterable[str]) -> None:
        self._extensions = frozenset(extension.lower().lstrip(".") for extension in extensions)

    def __bool__(self) -> bool:
        return bool(self._extensions)

    def found(self, url: str, start: int, end: int) -> str:
        """The extension of `url` that is listed; "" for none. Its path is `url[start:end]`."""
        dot = url.rfind(".", start, end)
        slash = url.rfind("/", start, end)
        if dot <= slash:
            return ""
        if url.find(";", slash, end) < 0:
            last = end
            extension = url[dot + 1 : end].lower()
        else:
            match = self._WITH_PARAMETERS.search(url[slash:end])
            if match is None:
                return ""
            last = slash + match.end(1)
            extension = match[1].lower()
        if extension not in self._extensions or url[:last].lower().endswith(".xml.gz"):
            return ""
        return extension
