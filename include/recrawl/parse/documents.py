"""What a content handler is, and what it reads.

A handler of another package is a `Handler` that an entry point of the group `recrawl.handlers`
names:

    [project.entry-points."recrawl.handlers"]
    gemtext = "their_package.gemtext:HANDLER"

Its module is imported in every parse process, so what is heavy is imported in `parse`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recrawl.config.model import Parse
from recrawl.parse.capture import Capture, ParsedPage

ENTRY_POINT_GROUP = "recrawl.handlers"


@dataclass(frozen=True)
class Document:
    """What a handler reads.

    Attributes:
        capture: the capture; its body may be packed or larger than `body`.
        body: the bytes to parse: unpacked, and cut at the size limit.
        media_type: what the body shows.
        settings: the section `parse` of the configuration.
    """

    capture: Capture
    body: bytes
    media_type: str
    settings: Parse


@dataclass(frozen=True)
class Handler:
    """How documents of some media types are parsed.

    Attributes:
        name: stored with each page.
        media_types: `type/subtype` in lower case.
        parse: fills the page; sets `parse_outcome` and `detail` where not all went well. What it
            raises becomes the outcome FAILED, and what it filled in before is kept.
        max_bytes: bytes parsed instead of `parse.max_parse_bytes`; None: that.
        isolated: every document is parsed in a child process, which can be killed and whose memory
            is limited; else only large ones are.
        prepare: called before a document is parsed in a child, to import there what each child would
            import anew; it must be quick when it is called again.
        requires: module of an optional package; where it is not installed the handler is not there.
    """

    name: str
    media_types: frozenset[str]
    parse: Callable[[Document, ParsedPage], None]
    max_bytes: int | None = None
    isolated: bool = True
    prepare: Callable[[Document], None] | None = None
    requires: str | None = None
