"""The conformance cases of robots.txt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recrawl.robots.rules import RobotsRules

VECTORS = Path(__file__).parents[2] / "vectors"
#: Cases that must agree, of those that are not disputed.
LEAST_SHARE = 0.99


def answer(case: dict[str, Any]) -> tuple[object, object]:
    """What we say and what the case says."""
    rules = RobotsRules.parse(case["robots"], case["agent"])
    if "delay" in case:
        return rules.crawl_delay_seconds, case["delay"]
    decision = rules.decide(case["url"])
    assert decision.allowed == rules.allows(case["url"])
    assert decision.allowed or decision.rule, f"nothing forbids {case['url']}"
    return decision.allowed, case["allowed"]


def test_robots_cases() -> None:
    cases = [
        case for path in sorted(VECTORS.glob("robots.*.json")) for case in json.loads(path.read_text(encoding="utf-8"))
    ]
    disputed = [case for case in cases if "disputed" in case]
    failures = []
    for case in cases:
        ours, theirs = answer(case)
        if "disputed" not in case and ours != theirs:
            told = (case["robots"], case["agent"], case.get("url", "delay"))
            failures.append(f"{case['source']}: {told!a} gives {ours}, not {theirs}")
    counted = len(cases) - len(disputed)
    share = 1 - len(failures) / counted
    print(f"{counted - len(failures)} of {counted} robots cases agree, {len(disputed)} disputed")
    assert counted >= 400
    assert share >= LEAST_SHARE, "\n".join(failures)
