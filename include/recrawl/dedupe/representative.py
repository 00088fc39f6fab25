"""Which URL stands for a content that several URLs show.

The representative in force stays as long as it still shows the content: changing it without need
would move cash and links back and forth. Otherwise the page nearest to a seed is taken, then the one
with the shortest URL, then the smallest url_id.

A canonical link has a say where content agrees and the site speaks for itself: of pages that show the
same content, the one that they name stands, as long as it lies in the registered domain of the one
that would stand otherwise. A link to another site, or to other content, is no identity.

In SQL: `min(<order_struct_sql>)` over the round's captures GROUP BY identity_checksum gives the
best newcomer (a hash aggregate, no sort), and with FILTER the best that names itself; `contents`
joins on identity_checksum for the one in force, `urls` on its (bucket, url_id) and the round's
captures on url_id; `<chosen_sql>` then decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from recrawl.tables.vocabulary import UrlState

#: States in which a page still stands for its content; a failing answer of the day changes nothing.
_STANDING_STATES = frozenset({UrlState.FETCHED})

_PORT = re.compile(r":[0-9]+$")

#: Stands for the depth of a page whose depth is not known: behind all others.
_UNKNOWN_DEPTH = 2**31 - 1


@dataclass(frozen=True)
class Candidate:
    """A capture of the content in this round.

    Attributes:
        url_id, url, depth: the page. host, registered_domain: its authority and the domain of that.
        names_itself: its canonical link leads to itself.
    """

    url_id: int
    url: str
    depth: int | None
    host: str = ""
    registered_domain: str = ""
    names_itself: bool = False


@dataclass(frozen=True)
class Incumbent:
    """The representative that `contents` names.

    Attributes:
        url_id: the page.
        state, content_checksum: of its row in `urls` at the opening version; the checksum is what
            identifies the content, that of its normalised text or of its body.
        captured_checksum: of its capture in this round; None: not captured.
        host: its authority.
        names_itself: its capture in this round has a canonical link to itself.
    """

    url_id: int
    state: UrlState
    content_checksum: int | None
    captured_checksum: int | None = None
    host: str = ""
    names_itself: bool = False


def still_stands(known: Incumbent, checksum: int) -> bool:
    """Whether the representative in force still shows the content.

    A capture in this round decides; without one, the row's state and checksum.
    """
    if known.captured_checksum is not None:
        return known.captured_checksum == checksum
    return known.state in _STANDING_STATES and known.content_checksum == checksum


def still_stands_sql(*, state: str, content_checksum: str, captured_checksum: str, checksum: str) -> str:
    """SQL predicate of `still_stands`; false where there is none in force (all NULL)."""
    states = ", ".join(f"'{word}'" for word in sorted(_STANDING_STATES))
    row = f"{state} IN ({states}) AND {content_checksum} = {checksum}"
    return (
        f"coalesce(CASE WHEN {captured_checksum} IS NOT NULL THEN {captured_checksum} = {checksum} "
        f"ELSE {row} END, false)"
    )


def order_struct_sql(*, depth: str, url: str, url_id: str, host: str, registered_domain: str, names_itself: str) -> str:
    """SQL of a candidate's place; the least struct wins, and its field `url_id` is the choice."""
    return (
        f"named_struct('depth', coalesce({depth}, {_UNKNOWN_DEPTH}), 'length', length({url}), 'url_id', {url_id}, "
        f"'host', {host}, 'domain', {registered_domain}, 'names_itself', {names_itself})"
    )


def chosen_sql(
    *, stands: str, in_force_url_id: str, in_force_host: str, in_force_names_itself: str, best: str, named: str
) -> str:
    """SQL of `choose_representative`; BIGINT.

    Args:
        best: min(`order_struct_sql`) of the content's captures. named: the same of those that name themselves.
    """
    name = f"regexp_replace(CASE WHEN {stands} THEN {in_force_host} ELSE {best}.host END, ':[0-9]+$', '')"
    near = f"({name} = {named}.domain OR endswith({name}, concat('.', {named}.domain)))"
    own = f"CASE WHEN {stands} THEN {in_force_names_itself} ELSE {best}.names_itself END"
    return (
        f"CASE WHEN coalesce({near}, false) AND NOT coalesce({own}, false) THEN {named}.url_id "
        f"WHEN {stands} THEN {in_force_url_id} ELSE {best}.url_id END"
    )


def choose_representative(checksum: int, captures: Iterable[Candidate], known: Incumbent | None) -> int:
    """The url_id that stands for the content. ValueError where neither a capture nor one in force is left."""

    def place(candidate: Candidate) -> tuple[int, int, int]:
        depth = _UNKNOWN_DEPTH if candidate.depth is None else candidate.depth
        return depth, len(candidate.url), candidate.url_id

    ordered = sorted(captures, key=place)
    standing: Candidate | Incumbent
    if known is not None and still_stands(known, checksum):
        standing = known
    elif ordered:
        standing = ordered[0]
    else:
        raise ValueError("nothing shows the content")
    named = next((candidate for candidate in ordered if candidate.names_itself), None)
    if named is None or standing.names_itself or not _lies_in(standing.host, named.registered_domain):
        return standing.url_id
    return named.url_id


def _lies_in(host: str, domain: str) -> bool:
    name = _PORT.sub("", host)
    return name == domain or name.endswith(f".{domain}")
