"""`recrawl alerts`: what a round found that a person should know."""

from __future__ import annotations

import argparse
from typing import Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.tables.vocabulary import AlertKind

_COLUMNS = ("round_id", "alert_kind", "severity", "subject", "message")


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `alerts` to the tree."""
    alerts = commands.add_parser(
        "alerts", parents=[shared], help="the alerts of the last round, or of others", allow_abbrev=False
    )
    which = alerts.add_mutually_exclusive_group()
    which.add_argument("--round", metavar="ROUND", default="last", help="an id, number, date, last or -2")
    which.add_argument("--all", action="store_true", help="of every round")
    kinds = [kind.value for kind in AlertKind]
    alerts.add_argument("--kind", choices=kinds, metavar="KIND", help=f"one kind alone: {', '.join(kinds)}")
    alerts.set_defaults(run=_alerts)


def _alerts(context: Context) -> int:
    arguments, reader = context.arguments, context.reader
    wanted = ["true"]
    if not arguments.all and reader.rounds():
        wanted.append(f"round_id = '{reader.resolve_round(arguments.round)['round_id']}'")
    if arguments.kind:
        wanted.append(f"alert_kind = '{arguments.kind}'")
    found: list[dict[str, Any]] = []
    if reader.version("alerts") is not None:
        order = "ORDER BY round_id DESC, alert_kind, subject"
        found = reader.query(f"SELECT * FROM alerts WHERE {' AND '.join(wanted)} {order}").to_pylist()
    if context.json:
        output.print_json({"alerts": found})
    elif found:
        output.print_rows(_COLUMNS, [[row[name] for name in _COLUMNS] for row in found])
    else:
        print("No alert.")
    return 0
