"""The list of odd behaviours, and what they share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tests.web.server import Conversation

Behaviour = Callable[["Conversation"], Awaitable[None]]

PAGE = (
    b"<!DOCTYPE html><html><head><title>An odd page</title></head><body><p>"
    + b"words and more " * 60
    + b"</p></body></html>"
)

BEHAVIOURS: dict[str, Behaviour] = {}


class Gone(Exception):
    """The behaviour has closed the connection on purpose; the log does not call that leaving."""


def odd(function: Behaviour) -> Behaviour:
    """Serve `/odd/<name of the function, - for _>` by it."""
    BEHAVIOURS["/odd/" + function.__name__.removesuffix("_").replace("_", "-")] = function
    return function


def number(talk: Conversation, name: str, default: float) -> float:
    """A parameter of the path."""
    return float(talk.query.get(name, default))


def close(talk: Conversation) -> NoReturn:
    """End the connection in an orderly way."""
    talk.keep = False
    raise Gone
