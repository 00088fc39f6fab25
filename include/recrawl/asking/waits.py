"""Why a host's URLs wait, said in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recrawl.asking.stored_robots import RobotsFile
from recrawl.asking.verdict import time_text, utc
from recrawl.rank.transitions import DECIDED_STATES
from recrawl.tables.vocabulary import OverrideKind, RobotsOutcome, SkipReason

Row = Mapping[str, Any]


def waits(parts: Mapping[str, Any], now: datetime) -> list[str]:
    """Everything that keeps the host's URLs from being asked for, the strongest first."""
    said = _of_people(parts["decisions"])
    known = parts["known"]
    if known is not None and known["blocked_until"] is not None and utc(known["blocked_until"]) > now:
        until = time_text(known["blocked_until"])
        said.append(f"It is not contacted before {until} after {known['error_streak']} faults in a row.")
    said += _of_robots(parts["robots"], now)
    if parts["earliest_at"] is not None:
        said.append(
            f"Its gap of {parts['delay_seconds']:g} s since the last access ends at {time_text(parts['earliest_at'])}."
        )
    elif parts["delay_seconds"] > 0:
        said.append(f"Requests keep a gap of {parts['delay_seconds']:g} s: {_why_so_long(known, parts)}.")
    return said + _of_urls(parts)


def _of_people(in_force: Sequence[Row]) -> list[str]:
    said = []
    for row in in_force:
        until = f" until {time_text(utc(row['until']))}" if row["until"] else ""
        if row["kind"] == OverrideKind.BLOCK.value:
            said.append(f"{row['who']} blocked {row['subject']}{until}: {row['reason']}")
        elif row["kind"] == OverrideKind.EXCLUDE.value:
            said.append(f"{row['who']} excluded {row['subject']}{until}: {row['reason']}")
        elif row["kind"] == OverrideKind.TRAP.value:
            said.append(f"{row['who']} accepted {row['subject']} as a trap: {row['reason']}")
        elif row["kind"] == OverrideKind.QUOTA.value:
            said.append(f"{row['who']} set a quota of {row['value']} URLs a round for {row['subject']}{until}.")
    return said


def _of_robots(files: Sequence[RobotsFile], now: datetime) -> list[str]:
    said = []
    for file in files:
        name = f"{file.scheme} robots.txt"
        if file.outcome == RobotsOutcome.UNREACHABLE.value:
            stale = "nothing is allowed for now" if file.body is None else "the stored file stands in"
            again = (
                f"it is tried again after {time_text(file.expires_at)}"
                if file.expires_at > now
                else "it is tried again first"
            )
            said.append(f"Its {name} could not be had at {time_text(file.fetched_at)}: {stale}; {again}.")
        if not file.root_allowed and file.root_rule:
            said.append(f"Its {name} disallows / by the line {file.root_rule!r}.")
    return said


def _of_urls(parts: Mapping[str, Any]) -> list[str]:
    open_states = [row for row in parts["urls"] if row["state"] not in DECIDED_STATES]
    due = sum(int(row["due"]) for row in open_states)
    if not parts["urls"]:
        return ["No URL of it is known."]
    said = []
    if due == 0:
        next_times = [utc(row["next_fetch_at"]) for row in open_states if row["next_fetch_at"] is not None]
        said.append(
            f"No URL of it is due before {time_text(min(next_times))}." if next_times else "No URL of it is ever due."
        )
    elif due > parts["quota"]:
        said.append(f"{due:,} URLs of it are due; a round takes {parts['quota']:,} at most.")
    else:
        said.append(f"{due:,} URLs of it are due: the next round takes those whose crawl value fits.")
    newest = [row for row in parts["skips"] if row["round_id"] == parts["skips"][0]["round_id"]]
    for row in newest:
        reason = SkipReason(row["skip_reason"])
        said.append(
            f"Round {row['round_id']} gave back {row['urls']:,} ({row['step']}, {reason.value}): {reason.sentence}"
        )
    return said


def _why_so_long(known: Row | None, parts: Mapping[str, Any]) -> str:
    if known is not None and known["crawl_delay_seconds"] == parts["delay_seconds"]:
        return "its robots.txt asks for it"
    if known is not None and known["adaptive_delay_seconds"] == parts["delay_seconds"]:
        return "its answers took that long"
    return "the least that is configured"
