"""What the root set opens to the crawl, as the steps of a round see it."""

from __future__ import annotations

from recrawl.spark.application import Step
from recrawl.tables.vocabulary import Scope
from recrawl.urls.scope import ScopeSet


def scope_set(step: Step) -> ScopeSet:
    """The scopes of all seeds at the round's opening."""
    rows = step.opening("seeds").select("scope", "url").collect()
    return ScopeSet((Scope(row["scope"]), row["url"]) for row in rows)
