"""The lasting state of a URL after a try: a table, not a set of branches.

Outcomes of one kind act alike, so the table is states x kinds. Rows of it in words:

- An answer brings any page back to life: whatever it was, it is fetched, duplicate or redirect.
- A fault never demotes a page: `fetched` stays `fetched` through time-outs and 404s alike (its
  content fields stay too), and only pages never answered show `failing`.
- Three spaced 404/410 make a page `gone`, three spaced 401/403/451 make it `denied`; robots.txt is
  a rule, not a fault, and denies at once. All of them are looked at again.
- `trap` and `excluded` are decisions about a URL; no answer lifts them.

The SQL is rendered from the same data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from recrawl.tables.vocabulary import Outcome, UrlState


class OutcomeKind(StrEnum):
    """Outcomes that act alike on a page's state and schedule."""

    CAPTURED = "captured"
    UNCHANGED = "unchanged"
    REDIRECTED = "redirected"
    ABSENT = "absent"
    REFUSED = "refused"
    DISALLOWED = "disallowed"
    LASTING_FAULT = "lasting_fault"
    PASSING_FAULT = "passing_fault"


class ContentVerdict(StrEnum):
    """What dedupe says of a capture's content."""

    OWN = "own"
    DUPLICATE = "duplicate"
    CANONICAL = "canonical"


#: The kind of every outcome. A passing fault is worth a short retry, a lasting one is not.
OUTCOME_KINDS: Mapping[Outcome, OutcomeKind] = {
    Outcome.OK: OutcomeKind.CAPTURED,
    Outcome.NOT_MODIFIED: OutcomeKind.UNCHANGED,
    Outcome.REDIRECT: OutcomeKind.REDIRECTED,
    Outcome.TOO_MANY_REDIRECTS: OutcomeKind.LASTING_FAULT,
    Outcome.NOT_FOUND: OutcomeKind.ABSENT,
    Outcome.GONE: OutcomeKind.ABSENT,
    Outcome.FORBIDDEN: OutcomeKind.REFUSED,
    Outcome.CLIENT_ERROR: OutcomeKind.LASTING_FAULT,
    Outcome.RATE_LIMITED: OutcomeKind.PASSING_FAULT,
    Outcome.SERVER_ERROR: OutcomeKind.PASSING_FAULT,
    Outcome.ROBOTS_DENIED: OutcomeKind.DISALLOWED,
    Outcome.ROBOTS_UNAVAILABLE: OutcomeKind.PASSING_FAULT,
    Outcome.ADDRESS_REFUSED: OutcomeKind.LASTING_FAULT,
    Outcome.DNS_ERROR: OutcomeKind.LASTING_FAULT,
    Outcome.CONNECT_ERROR: OutcomeKind.PASSING_FAULT,
    Outcome.TLS_ERROR: OutcomeKind.LASTING_FAULT,
    Outcome.TIMEOUT: OutcomeKind.PASSING_FAULT,
    Outcome.PROTOCOL_ERROR: OutcomeKind.LASTING_FAULT,
    Outcome.INVALID_URL: OutcomeKind.LASTING_FAULT,
}

#: Kinds that end a streak of failures.
SUCCESS_KINDS = frozenset({OutcomeKind.CAPTURED, OutcomeKind.UNCHANGED, OutcomeKind.REDIRECTED})

#: Kinds whose tries count only when they are spaced, with the state at the end of the streak.
STREAK_ENDS: Mapping[OutcomeKind, UrlState] = {
    OutcomeKind.ABSENT: UrlState.GONE,
    OutcomeKind.REFUSED: UrlState.DENIED,
}

#: States set by people and filters: no outcome changes them.
DECIDED_STATES = frozenset({UrlState.TRAP, UrlState.EXCLUDED})

#: Rows that neither hold cash nor are paid by Lambda's index (AOPIC rule 4); the rest is payable.
TERMINAL_STATES = frozenset({UrlState.GONE, UrlState.DENIED, *DECIDED_STATES})
PAYABLE_STATES = frozenset(UrlState) - TERMINAL_STATES

_KINDS = tuple(OutcomeKind)


def _row(*states: UrlState) -> Mapping[OutcomeKind, UrlState]:
    return dict(zip(_KINDS, states, strict=True))


_NEW, _FETCHED, _FAILING = UrlState.NEW, UrlState.FETCHED, UrlState.FAILING
_GONE, _DENIED, _DUPLICATE = UrlState.GONE, UrlState.DENIED, UrlState.DUPLICATE
_REDIRECT, _TRAP, _EXCLUDED = UrlState.REDIRECT, UrlState.TRAP, UrlState.EXCLUDED

#: state x kind -> state, before the end of a streak and the verdict on content are looked at.
#: A 304 to a page that never answered is a server's error: there is nothing it could stand for.
TRANSITIONS: Mapping[UrlState, Mapping[OutcomeKind, UrlState]] = {
    # state            captured   unchanged   redirected  absent      refused     disallowed  lasting     passing
    _NEW: _row(_FETCHED, _FAILING, _REDIRECT, _FAILING, _FAILING, _DENIED, _FAILING, _FAILING),
    _FETCHED: _row(_FETCHED, _FETCHED, _REDIRECT, _FETCHED, _FETCHED, _DENIED, _FETCHED, _FETCHED),
    _FAILING: _row(_FETCHED, _FAILING, _REDIRECT, _FAILING, _FAILING, _DENIED, _FAILING, _FAILING),
    _GONE: _row(_FETCHED, _FETCHED, _REDIRECT, _GONE, _GONE, _DENIED, _GONE, _GONE),
    _DENIED: _row(_FETCHED, _FETCHED, _REDIRECT, _DENIED, _DENIED, _DENIED, _DENIED, _DENIED),
    _DUPLICATE: _row(_FETCHED, _DUPLICATE, _REDIRECT, _DUPLICATE, _DUPLICATE, _DENIED, _DUPLICATE, _DUPLICATE),
    _REDIRECT: _row(_FETCHED, _FETCHED, _REDIRECT, _REDIRECT, _REDIRECT, _DENIED, _REDIRECT, _REDIRECT),
    _TRAP: _row(*[_TRAP] * len(_KINDS)),
    _EXCLUDED: _row(*[_EXCLUDED] * len(_KINDS)),
}


def succeeded(state: UrlState, outcome: Outcome) -> bool:
    """Whether the try counts as a success for a page in `state`: answered, and not by an empty 304."""
    kind = OUTCOME_KINDS[outcome]
    return kind in SUCCESS_KINDS and TRANSITIONS[state][kind] != UrlState.FAILING


def failure_streak_after(
    streak: int,
    last_outcome: Outcome | None,
    outcome: Outcome,
    *,
    state: UrlState,
    last_fetch_at: datetime | None,
    now: datetime,
    spacing_seconds: int,
) -> int:
    """`failure_streak` after a try.

    Failures count in a row only with failures of their kind, so two quick 503s and one 404 are no
    three 404s. Absent and refused tries count only if `spacing_seconds` lie between them (use at
    most a day, and less than the first interval): three forced tries in an hour prove nothing.
    """
    if succeeded(state, outcome):
        return 0
    kind = OUTCOME_KINDS[outcome]
    if last_outcome is None or OUTCOME_KINDS[last_outcome] != kind or streak == 0:
        return 1
    too_soon = last_fetch_at is not None and now - last_fetch_at < timedelta(seconds=spacing_seconds)
    return streak if kind in STREAK_ENDS and too_soon else streak + 1


def next_state(
    state: UrlState,
    outcome: Outcome,
    *,
    failure_streak: int,
    gone_after_failures: int,
    verdict: ContentVerdict = ContentVerdict.OWN,
) -> UrlState:
    """The state after a try.

    Args:
        state: the opening version's. outcome: of the final row of `fetches`.
        failure_streak: including this try (`failure_streak_after`).
        gone_after_failures: spaced failures of one kind that end a page.
        verdict: dedupe's, where there was content; also on 304, when the representative changed.
    """
    kind = OUTCOME_KINDS[outcome]
    after = TRANSITIONS[state][kind]
    if kind in STREAK_ENDS and state not in DECIDED_STATES and failure_streak >= gone_after_failures:
        return STREAK_ENDS[kind]
    if after == UrlState.FETCHED and kind in SUCCESS_KINDS and verdict != ContentVerdict.OWN:
        return UrlState.DUPLICATE
    return after


def _literals(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in sorted(values))


def payable_sql(state: str) -> str:
    """SQL predicate: a row in `state` is payable."""
    return f"{state} IN ({_literals(PAYABLE_STATES)})"


def terminal_sql(state: str) -> str:
    """SQL predicate: a row in `state` is terminal."""
    return f"{state} IN ({_literals(TERMINAL_STATES)})"


def outcome_kind_sql(outcome: str) -> str:
    """SQL of `OUTCOME_KINDS`; NULL for NULL."""
    cases = " ".join(
        f"WHEN {outcome} IN ({_literals(o for o, k in OUTCOME_KINDS.items() if k == kind)}) THEN '{kind}'"
        for kind in OutcomeKind
    )
    return f"CASE {cases} END"


def succeeded_sql(state: str, outcome: str) -> str:
    """SQL predicate of `succeeded`."""
    good = {kind: [s for s in UrlState if TRANSITIONS[s][kind] != UrlState.FAILING] for kind in SUCCESS_KINDS}
    parts = [
        f"({state} IN ({_literals(states)}) AND "
        f"{outcome} IN ({_literals(o for o, k in OUTCOME_KINDS.items() if k == kind)}))"
        for kind, states in sorted(good.items())
    ]
    return f"({' OR '.join(parts)})"


def failure_streak_after_sql(
    streak: str,
    last_outcome: str,
    outcome: str,
    *,
    state: str,
    last_fetch_at: str,
    now: str,
    spacing_seconds: int,
) -> str:
    """SQL of `failure_streak_after`; INT."""
    kind, last_kind = outcome_kind_sql(outcome), outcome_kind_sql(last_outcome)
    too_soon = f"coalesce(unix_micros({now}) - unix_micros({last_fetch_at}) < {spacing_seconds * 1_000_000}L, false)"
    return (
        f"CASE WHEN {succeeded_sql(state, outcome)} THEN 0 "
        f"WHEN NOT coalesce({last_kind} = {kind}, false) OR coalesce({streak}, 0) = 0 THEN 1 "
        f"WHEN {kind} IN ({_literals(STREAK_ENDS)}) AND {too_soon} THEN {streak} ELSE {streak} + 1 END"
    )


def next_state_sql(state: str, outcome: str, *, failure_streak: str, gone_after_failures: int, verdict: str) -> str:
    """SQL of `next_state`, rendered from `TRANSITIONS`; a NULL verdict means `own`."""
    cases: list[str] = []
    for kind, end in STREAK_ENDS.items():
        outcomes = _literals(o for o, k in OUTCOME_KINDS.items() if k == kind)
        cases.append(
            f"WHEN {outcome} IN ({outcomes}) AND {failure_streak} >= {gone_after_failures} "
            f"AND {state} NOT IN ({_literals(DECIDED_STATES)}) THEN '{end}'"
        )
    for before in UrlState:
        for after in sorted(set(TRANSITIONS[before].values())):
            outcomes = _literals(o for o, kind in OUTCOME_KINDS.items() if TRANSITIONS[before][kind] == after)
            successes = _literals(
                o
                for o, kind in OUTCOME_KINDS.items()
                if TRANSITIONS[before][kind] == after == UrlState.FETCHED and kind in SUCCESS_KINDS
            )
            if successes:
                cases.append(
                    f"WHEN {state} = '{before}' AND {outcome} IN ({successes}) "
                    f"AND {verdict} <> '{ContentVerdict.OWN}' THEN '{UrlState.DUPLICATE}'"
                )
            cases.append(f"WHEN {state} = '{before}' AND {outcome} IN ({outcomes}) THEN '{after}'")
    return f"CASE {' '.join(cases)} END"
