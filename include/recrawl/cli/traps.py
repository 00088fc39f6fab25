"""`recrawl trap`: what looks like a crawler trap, with its evidence, and a person's word on it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.errors import UsageError
from recrawl.tables.vocabulary import OverrideKind

_COLUMNS = ("id", "prefix", "score", "evidence", "test URL")


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `trap` to the tree."""
    trap = commands.add_parser(
        "trap", parents=[shared], help="suspected crawler traps, and accepting one as a filter rule", allow_abbrev=False
    )
    actions = trap.add_subparsers(dest="action", metavar="ACTION", required=True)
    suspects = actions.add_parser(
        "suspects", parents=[shared], allow_abbrev=False,
        help="URL prefixes of hosts with abnormally many trap links or duplicates, with evidence",
    )  # fmt: skip
    suspects.add_argument("--host", metavar="HOST", help="look into this host alone, whatever its score")
    suspects.set_defaults(run=_suspects)
    accept = actions.add_parser(
        "accept", parents=[shared], allow_abbrev=False,
        help="make a suspect's prefix a filter rule, from the next round on; `recrawl lift trap PREFIX` ends it",
    )  # fmt: skip
    accept.add_argument("suspect", metavar="ID", help="as `recrawl trap suspects` shows it")
    accept.add_argument("--host", metavar="HOST", help="the host that was looked into")
    accept.add_argument("--reason", required=True, help="why, for the record")
    accept.add_argument("--who", help="who decides (default: the user of the machine)")
    accept.set_defaults(run=_accept)


def _suspects(context: Context) -> int:
    from recrawl.asking.trap_suspects import trap_suspects

    found = trap_suspects(context.reader, context.arguments.host)
    if context.json:
        output.print_json({"suspects": [asdict(one) | {"evidence": one.evidence} for one in found]})
    elif found:
        rows = [(one.suspect_id, one.prefix, one.trap_score, one.evidence, one.test_url) for one in found]
        output.print_rows(_COLUMNS, rows)
    else:
        print("Nothing looks like a trap.")
    return 0


def _accept(context: Context) -> int:
    from recrawl.asking.trap_suspects import suspect_named, trap_suspects
    from recrawl.inbox import add_event, new_event
    from recrawl.seed.decisions import fold_decisions

    arguments, now = context.arguments, context.clock.now()
    suspect = suspect_named(trap_suspects(context.reader, arguments.host), arguments.suspect)
    reason = f"{arguments.reason} ({suspect.evidence})"
    event = new_event(now, context.who, OverrideKind.TRAP, suspect.prefix, reason, suspect.test_url)
    problems = fold_decisions([event], now).problems
    if problems:
        raise UsageError(f"The rule can't be made: {problems[0].reason}.")
    add_event(context.store, event)
    if context.json:
        output.print_json({**vars(event), "kind": event.kind.value})
    else:
        print(f"Accepted: {output.printable(suspect.prefix)} is a trap from the next round on.")
    return 0
