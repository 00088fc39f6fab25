"""People's decisions: the inbox's events folded into the overrides in force.

Events are append-only and may be read in any order; the fold depends on their content alone. The
latest event of a (subject, kind) holds, from its time until its `until`, if it has one. `lift`
takes back the kind that its value names, or every kind of the subject when it names none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from recrawl.inbox import InboxEvent
from recrawl.tables.vocabulary import OverrideKind
from recrawl.urls.site_rules import SITE_RULE_KINDS, SiteRule, fault_of

_KINDS = {kind.value: kind for kind in OverrideKind}


@dataclass(frozen=True)
class Override:
    """A decision in force: a row of `overrides`."""

    subject: str
    kind: OverrideKind
    value: str | None
    reason: str
    who: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True)
class DecisionProblem:
    """An event that can't be followed, and why."""

    event_id: str
    reason: str


@dataclass(frozen=True)
class Decisions:
    """The overrides in force, by subject and kind, and the events that were left out."""

    overrides: tuple[Override, ...]
    problems: tuple[DecisionProblem, ...]


def _fault_of_value(kind: OverrideKind, value: str | None, subject: str) -> str:
    """Why the value does not fit the kind; empty: it does."""
    text = value or ""
    if kind == OverrideKind.TRAP:
        return _fault_of_trap(subject, text)
    if kind == OverrideKind.QUOTA and not (text.isascii() and text.isdigit()):
        return f"a quota must be a whole number of URLs, not {value!r}"
    if kind == OverrideKind.PRIORITY:
        try:
            factor = float(text)
        except ValueError:
            return f"a priority must be a number, not {value!r}"
        if not math.isfinite(factor) or factor < 0:
            return f"a priority must be a finite factor of 0 or more, not {value!r}"
    if kind == OverrideKind.LIFT and text and text not in _KINDS.keys() - {OverrideKind.LIFT}:
        return f"a lift must name a kind of decision or nothing, not {value!r}"
    return ""


def _fault_of_trap(prefix: str, test_url: str) -> str:
    """Why a prefix can be no trap; empty: it can. A whole host is blocked, not trapped."""
    scheme, mark, rest = prefix.partition("://")
    if not scheme or not mark or not rest.partition("/")[2]:
        return f"a trap must be a URL prefix with a path, not {prefix!r}"
    if not test_url.startswith(prefix):
        return f"its test URL {test_url!r} does not begin with it"
    return ""


def _fault(event: InboxEvent) -> str:
    """Why the event can't be followed; empty: it can."""
    if not event.subject.strip():
        return "it names no host, domain, prefix or URL"
    if event.at.tzinfo is None or (event.until is not None and event.until.tzinfo is None):
        return "its times have no time zone"
    if event.until is not None and event.until <= event.at:
        return "it ends before it begins"
    if event.kind in SITE_RULE_KINDS:
        return fault_of(SiteRule(event.kind, event.subject.strip(), event.value))
    return _fault_of_value(event.kind, event.value, event.subject.strip())


def fold_decisions(events: Iterable[InboxEvent], now: datetime) -> Decisions:
    """The overrides in force at `now` (the round's frozen time).

    Events after `now` wait for a later round without being a problem, so that a step run again
    finds the same. An event_id that is met twice counts once; met with another content, the
    content that sorts first counts and the other is a problem.
    """
    problems: list[DecisionProblem] = []
    valid: dict[str, InboxEvent] = {}
    for event in sorted(set(events), key=lambda e: (e.event_id, repr(e))):
        fault = _fault(event)
        if not fault and event.event_id in valid:
            fault = "another event has the same id"
        if fault:
            problems.append(DecisionProblem(event.event_id, fault))
        else:
            valid[event.event_id] = event
    latest: dict[tuple[str, OverrideKind], InboxEvent] = {}
    for event in sorted(valid.values(), key=lambda e: (e.at, e.event_id)):
        if event.at > now:
            continue
        kind = event.kind
        if kind != OverrideKind.LIFT:
            latest[event.subject.strip(), kind] = event
            continue
        for lifted in [_KINDS[event.value]] if event.value else list(OverrideKind):
            latest.pop((event.subject.strip(), lifted), None)
    overrides = [
        Override(subject, kind, event.value, event.reason, event.who, event.at, event.until)
        for (subject, kind), event in sorted(latest.items())
        if event.until is None or event.until > now
    ]
    return Decisions(tuple(overrides), tuple(problems))
