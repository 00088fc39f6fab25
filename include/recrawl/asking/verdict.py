"""Facts about a URL, said in sentences: why it was or was not fetched."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from recrawl.tables.vocabulary import Outcome, OverrideKind, RobotsOutcome, SkipReason, UrlState


def verdicts(facts: Mapping[str, Any], now: datetime) -> list[str]:
    """The answer in sentences: what happened last, then everything that keeps it from being fetched.

    Args:
        facts: the fields of `Explanation` by name.
        now: what "due" means.
    """
    said = [_what_happened(facts)]
    said += _obstacles(facts, now)
    known = facts["known"]
    if known is not None and not _is_settled(known):
        due = known["next_fetch_at"]
        if due is not None and utc(due) > now:
            said.append(f"It is not due before {time_text(due)}.")
        elif len(said) == 1:
            said.append("It is due: the next round takes it if its crawl value and the quotas allow.")
    return said


def _is_settled(known: Mapping[str, Any]) -> bool:
    return known["state"] in (UrlState.EXCLUDED.value, UrlState.TRAP.value)


def _what_happened(facts: Mapping[str, Any]) -> str:
    known, tries, skips = facts["known"], facts["tries"], facts["skips"]
    newest_try = tries[0] if tries else None
    newest_skip = skips[0] if skips else None
    if newest_skip is not None and (newest_try is None or newest_skip["round_id"] > newest_try["round_id"]):
        reason = SkipReason(newest_skip["skip_reason"])
        return f"It was not fetched in round {newest_skip['round_id']} ({reason.value}): {reason.sentence}"
    if newest_try is not None:
        outcome = Outcome(newest_try["outcome"])
        status = f", status {newest_try['status']}" if newest_try["status"] is not None else ""
        when = f"in round {newest_try['round_id']} at {time_text(newest_try['ended_at'])}{status}"
        return f"It was tried {when} ({outcome.value}): {outcome.sentence}"
    if known is not None:
        state = UrlState(known["state"])
        if known["last_fetch_at"] is not None:
            return f"It was last tried at {time_text(known['last_fetch_at'])}; it is {state.value}: {state.sentence}"
        said = f"It is known since round {known['discovered_round']}; none of the rounds looked at tried it."
        return said if state is UrlState.NEW else f"{said} It is {state.value}: {state.sentence}"
    if facts["rejects"]:
        row = facts["rejects"][0]
        who = f"the filter {row['filter']}: {row['reject_reason']}"
        return f"A link to it was turned away in round {row['round_id']} by {who}"
    if facts["last_round"] is None:
        return "This crawl has no round yet."
    return "It is not known: no seed and no page that was read leads to it."


def _obstacles(facts: Mapping[str, Any], now: datetime) -> list[str]:
    said: list[str] = []
    if facts["rejection"] is not None:
        said.append(f"The filter {facts['rejection']['filter']} turns it away: {facts['rejection']['reason']}")
    if not facts["scope"] and facts["last_round"] is not None:
        said.append("It is outside of every seed's scope.")
    for decision in facts["decisions"]:
        if decision["kind"] in (OverrideKind.BLOCK.value, OverrideKind.EXCLUDE.value):
            what = "blocked" if decision["kind"] == OverrideKind.BLOCK.value else "excluded"
            said.append(f"{decision['who']} {what} {decision['subject']}: {decision['reason']}")
        elif decision["kind"] == OverrideKind.TRAP.value:
            said.append(f"{decision['who']} accepted {decision['subject']} as a trap: {decision['reason']}")
        elif decision["kind"] == OverrideKind.QUOTA.value:
            said.append(f"{decision['who']} set a quota of {decision['value']} URLs a round for {decision['subject']}.")
    robots = facts["robots"]
    if robots is not None and not robots["allowed"]:
        if robots["robots_outcome"] == RobotsOutcome.UNREACHABLE.value:
            said.append(
                f"robots.txt could not be had at {time_text(robots['fetched_at'])}: nothing is allowed for now."
            )
        else:
            said.append(f"robots.txt disallows it to {robots['agent']} by the line {robots['rule']!r}.")
    host = facts["host_state"]
    if host is not None and host["blocked_until"] is not None and utc(host["blocked_until"]) > now:
        until = time_text(host["blocked_until"])
        said.append(f"Its host is not contacted before {until} after {host['error_streak']} faults.")
    representative = facts["representative"]
    if representative is not None:
        said.append(f"Its representative is {representative.get('url') or representative['url_id']}.")
    return said


def utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken for UTC, as tables hold it."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def time_text(moment: datetime) -> str:
    """The moment as sentences have it."""
    return f"{utc(moment):%Y-%m-%d %H:%M:%S} UTC"
