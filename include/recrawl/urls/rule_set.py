"""Which URL rules a round names its URLs by, as text that can be kept and compared.

Known URLs keep the ids that the rules of their day gave them; `rounds.engine_versions` holds these
rules, so that a round with others is noticed before it knows one page under two names.
"""

from __future__ import annotations

import json
from typing import Any

from recrawl.config.model import Urls
from recrawl.urls.rules import RULES_VERSION

#: The key of `rounds.engine_versions` that holds the text.
RULES_KEY = "url_rules"


def rules_text(urls: Urls) -> str:
    """All of the configuration that an identity depends on, and the version of the rules, as JSON."""
    return json.dumps(
        {
            "version": RULES_VERSION,
            "optional_rules": sorted(urls.optional_rules),
            "drop_parameters": sorted(name.lower() for name in urls.drop_parameters),
            "site_rules": sorted(urls.site_rules),
        },
        sort_keys=True,
    )


def rule_changes(before: str, after: str) -> list[str]:
    """What is different in `after`, a phrase for each thing; empty: the rules are the same."""
    old, new = json.loads(before), json.loads(after)
    said: list[str] = []
    if old.get("version") != new.get("version"):
        said.append(f"the rules have version {new.get('version')}, not {old.get('version')}")
    for key, on, off in (
        ("optional_rules", "the rule {} is on", "the rule {} is off"),
        ("drop_parameters", "the parameter {} is dropped", "the parameter {} is kept"),
        ("site_rules", "'{}' holds", "'{}' no longer holds"),
    ):
        was, now = _items(old.get(key)), _items(new.get(key))
        said += [on.format(item) for item in sorted(now - was)] + [off.format(item) for item in sorted(was - now)]
    return said


def _items(value: Any) -> set[str]:
    return {str(item) for item in value or ()}
