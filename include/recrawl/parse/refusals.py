"""Challenge and block pages: a refusal, though the status says that all is well.

The rules are data, `refusals.toml` beside this module.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

#: Characters of a document that are searched.
SEARCHED_CHARACTERS = 64 << 10


class RefusalRule(NamedTuple):
    """One kind of page; everything that is not None must be found.

    Attributes:
        name: for people.
        title: matches somewhere in the title, which is "" where there is none.
        body: occurs in the document, in lower case.
        header: occurs in a header line `name: value`, in lower case.
    """

    name: str
    title: re.Pattern[str] | None
    body: str | None
    header: str | None


@cache
def refusal_rules() -> tuple[RefusalRule, ...]:
    """The rules, read once a process."""
    listed = tomllib.loads(files("recrawl.parse").joinpath("refusals.toml").read_text(encoding="utf-8"))["rule"]
    return tuple(
        RefusalRule(
            rule["name"],
            re.compile(rule["title"], re.IGNORECASE) if "title" in rule else None,
            rule["body"].lower() if "body" in rule else None,
            rule["header"].lower() if "header" in rule else None,
        )
        for rule in listed
    )


def refusal_of(header_lines: Sequence[str], title: str | None, document: str) -> str:
    """The name of the rule by which a document is a challenge or block page; "" when it is none.

    Args:
        header_lines: `name: value` of the answer.
        title: the document's title.
        document: its source.
    """
    headers = [line.lower() for line in header_lines]
    body: str | None = None
    for rule in refusal_rules():
        if rule.title is not None and rule.title.search(title or "") is None:
            continue
        if rule.header is not None and not any(rule.header in line for line in headers):
            continue
        if rule.body is not None:
            body = document[:SEARCHED_CHARACTERS].lower() if body is None else body
            if rule.body not in body:
                continue
        return rule.name
    return ""
