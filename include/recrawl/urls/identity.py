"""All that follows from a URL's identity: its keys, its host, how it is requested."""

from __future__ import annotations

from typing import TypedDict

from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.keys import url_id


class Identity(TypedDict):
    """Columns that a row of `urls` or `seeds` takes from its URL."""

    url_id: int
    url: str
    host: str
    registered_domain: str
    request_url: str | None


def identity_of(asked: str, canonicalizer: Canonicalizer) -> Identity | None:
    """What the rules make of a URL as it is requested; None where they have no name for it.

    The URL as requested holds more than the canonical one: the order of its query comes back when a
    rule that sorted it is switched off.
    """
    canonical = canonicalizer.canonical(asked)
    if canonical is None:
        return None
    host = host_of(canonical)
    return Identity(
        url_id=url_id(canonical),
        url=canonical,
        host=host,
        registered_domain=registered_domain(host),
        request_url=canonicalizer.request_form(asked),
    )
