"""Accepted rules of sites as part of a configuration: what a round's steps canonicalise with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from recrawl.config.model import Configuration
from recrawl.inbox import read_events
from recrawl.seed.decisions import fold_decisions
from recrawl.storage import Store
from recrawl.tables.vocabulary import OverrideKind
from recrawl.urls.site_rules import SITE_RULE_KINDS, SiteRule


def with_site_decisions(configuration: Configuration, overrides: Iterable[Mapping[str, Any]]) -> Configuration:
    """The configuration with the accepted rules of sites behind its own.

    Frozen with the round, they are the same for each of its steps.

    Args:
        overrides: rows of `overrides`: override_kind, subject, value.
    """
    rules = [
        SiteRule(OverrideKind(row["override_kind"]), row["subject"], row["value"])
        for row in overrides
        if row["override_kind"] in SITE_RULE_KINDS
    ]
    lines = [line for line in sorted(rule.line for rule in rules) if line not in configuration.urls.site_rules]
    if not lines:
        return configuration
    urls = configuration.urls.model_copy(update={"site_rules": [*configuration.urls.site_rules, *lines]})
    return configuration.model_copy(update={"urls": urls})


def with_decisions_of_inbox(configuration: Configuration, store: Store, now: datetime) -> Configuration:
    """The same between rounds: with what the inbox holds of rules that are in force now."""
    decided = fold_decisions(read_events(store), now).overrides
    rows = [{"override_kind": o.kind, "subject": o.subject, "value": o.value} for o in decided]
    return with_site_decisions(configuration, rows)
