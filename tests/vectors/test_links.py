"""Every case of links.handed.json: links, base, refresh, directives and charset of a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recrawl.parse import charset, html, links

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("links.handed.json").read_text("utf-8"))
UNDISPUTED = [(number, case) for number, case in enumerate(CASES) if "disputed" not in case]
DISPUTED = [(number, case) for number, case in enumerate(CASES) if "disputed" in case]

#: The result fields of each kind of case.
RESULTS = {
    "links": ("links",),
    "raw_links": ("links",),
    "base": ("base",),
    "meta_refresh": ("target", "delay"),
    "robots_meta": ("index", "follow"),
    "charset": ("encoding",),
}


def answer(case: dict[str, Any]) -> tuple[Any, ...]:
    """What the program says to a case, in the order of RESULTS."""
    match case["kind"]:
        case "links":
            found = links.resolved_links(
                case["html"], case["url"], case.get("only_http", False), case.get("scripting", False)
            )
            return ([list(link) for link in found],)
        case "raw_links":
            return ([list(link) for link in links.raw_links(case["html"])],)
        case "base":
            return (html.base_url(html.parse_html(case["html"]), case["url"]),)
        case "meta_refresh":
            tree = html.parse_html(case["html"])
            refresh = html.meta_refresh(tree, html.base_url(tree, case["url"]), case["url"])
            return (None, None) if refresh is None else (refresh.target, refresh.delay_seconds)
        case "robots_meta":
            directives = html.robots_directives(html.parse_html(case["html"]), "recrawl")
            return (not directives.noindex, not directives.nofollow)
        case "charset":
            return (charset.detect(bytes.fromhex(case["body_hex"]), case["content_type"]),)
        case kind:
            raise AssertionError(f"unknown kind {kind!r}")


def expected(case: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(case[field] for field in RESULTS[case["kind"]])


@pytest.mark.parametrize(("number", "case"), UNDISPUTED, ids=lambda value: value if isinstance(value, int) else "")
def test_case_has_its_result(number: int, case: dict[str, Any]) -> None:
    assert expected(case) == answer(case), f"case {number}: {case['source']}, {case['kind']}"


def test_disputed_cases_are_few_and_still_disputed() -> None:
    assert len(DISPUTED) <= len(CASES) // 20
    for number, case in DISPUTED:
        assert expected(case) != answer(case), f"case {number} passes; drop its mark"
