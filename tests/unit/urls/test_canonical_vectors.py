"""The conformance cases of URL identity, each by the call that the module's docstring names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recrawl.urls.canonical import canonical_with, parse, same

VECTORS = Path(__file__).parents[2] / "vectors"
#: Cases that must agree, of those that are not disputed.
LEAST_SHARE = 0.99


def answer(case: dict[str, Any]) -> tuple[object, object]:
    """What we say and what the case says."""
    match case["family"]:
        case "whatwg":
            return parse(case["input"], case["base"]), case["href"]
        case "canonical":
            return canonical_with(case["input"], case["rules"]), case["expect"]
        case "pair":
            return same(case["a"], case["b"]), case["same"]
    raise AssertionError(f"unknown family {case['family']!r}")


def test_url_cases() -> None:
    cases = [
        case
        for path in sorted(VECTORS.glob("url_canonical.*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))
    ]
    disputed = [case for case in cases if "disputed" in case]
    failures = []
    for case in cases:
        ours, theirs = answer(case)
        if "disputed" not in case and ours != theirs:
            told = case.get("input", case.get("a"))
            failures.append(f"{case['source']}: {told!a} gives {ours!a}, not {theirs!a}")
    counted = len(cases) - len(disputed)
    share = 1 - len(failures) / counted
    print(f"{counted - len(failures)} of {counted} URL cases agree, {len(disputed)} disputed")
    assert counted >= 400
    assert share >= LEAST_SHARE, "\n".join(failures)
