"""What a round says of the URL rules, and what it says of others."""

from __future__ import annotations

import json

from recrawl.config.model import Urls
from recrawl.urls.rule_set import rule_changes, rules_text
from recrawl.urls.rules import RULES_VERSION


def test_the_same_rules_are_the_same_in_any_order_and_case() -> None:
    one = Urls(optional_rules=["sort_query", "drop_param"], drop_parameters=["SID", "ref"])
    other = Urls(optional_rules=["drop_param", "sort_query"], drop_parameters=["ref", "sid"], max_depth=3)
    assert rules_text(one) == rules_text(other)
    assert rule_changes(rules_text(one), rules_text(other)) == []


def test_each_difference_is_a_phrase() -> None:
    before = json.loads(rules_text(Urls(optional_rules=["sort_query"], drop_parameters=["a"]))) | {"version": 0}
    after = rules_text(Urls(optional_rules=["drop_param"], drop_parameters=["b"], site_rules=["alias x.org y.org"]))
    assert rule_changes(json.dumps(before), after) == [
        f"the rules have version {RULES_VERSION}, not 0",
        "the rule drop_param is on",
        "the rule sort_query is off",
        "the parameter b is dropped",
        "the parameter a is kept",
        "'alias x.org y.org' holds",
    ]
