"""Running and taking back: `recrawl round`, `recrawl stop`, `recrawl undo`."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.errors import RoundStateError, UsageError
from recrawl.stages import STEP_NAMES
from recrawl.tables.vocabulary import FrontierMode, RoundState

_STANDING = (RoundState.OPEN, RoundState.FOLDING, RoundState.CLOSED, RoundState.ABANDONED, RoundState.UNDOING)


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `round`, `stop` and `undo` to the tree."""
    _add_round(commands, shared)
    stop = commands.add_parser(
        "stop", parents=[shared], help="drain the running fetch; the round goes on with parse", allow_abbrev=False
    )
    stop.add_argument("--reason", default="", help="why, for the record")
    stop.add_argument("--who", help="who decides (default: the user of the machine)")
    stop.set_defaults(run=_stop)
    undo = commands.add_parser(
        "undo", parents=[shared], help="take back the last round, or several", allow_abbrev=False,
        description="Takes back the last round, after asking. State tables are restored, the rounds' rows deleted, "
        "WARC files moved aside. What people decided (block, quota, …) stays.",
    )  # fmt: skip
    undo.add_argument("--to", metavar="ROUND", help="take back ROUND and every later one")
    undo.add_argument("--yes", action="store_true", help="don't ask")
    undo.set_defaults(run=_undo)


def _add_round(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "round", parents=[shared], help="run one crawl round here, without Airflow", allow_abbrev=False,
        description="Runs the six steps of one round in this process. A round found open is continued.",
    )  # fmt: skip
    add = parser.add_argument
    add("--seeds", nargs="+", metavar="FILE", default=[], help="seed files, or seed URLs, besides the configured ones")
    add("--only", nargs="+", metavar="WHAT", default=[], help="only these hosts, domains or URLs, or files of them")
    add("--force", action="store_true", help="ignore due times (never politeness)")
    add("--max-urls", type=int, metavar="N", help="URLs that the round plans at most")
    add("--time-budget-seconds", type=float, metavar="S", help="seconds that the fetch step may take")
    add("--mode", choices=[mode.value for mode in FrontierMode], help="the order in which due URLs are taken")
    add("--now", metavar="TIME", help="the round's frozen time, ISO 8601 (default: the time of the run)")
    add("--plan-only", action="store_true", help="show the plan and its predicted end, fetch nothing")
    add("--on-open-round", choices=["continue", "abandon"], help="what to do with a round that is found open")
    add("--from-step", choices=STEP_NAMES, help="first step to run in a round found open")
    parser.set_defaults(run=_round)


def _round(context: Context) -> int:
    from recrawl.config.form import RoundForm

    arguments = context.arguments
    form = RoundForm.from_mapping({name: getattr(arguments, name, None) for name in RoundForm.model_fields})
    form.seed_files_and_lines()
    form.only_files_and_names()
    configuration = context.configured(form.overrides())
    from recrawl.spark.application import run_round

    started_seconds = time.monotonic()
    # Steps say what they do as they go; with --json, standard output is for the answer alone.
    with contextlib.redirect_stdout(sys.stderr if context.json else sys.stdout):
        summaries = run_round(configuration, form, None)
    if context.json:
        output.print_json(summaries)
        return 0
    figures = [(step, name, value) for step, summary in summaries.items() for name, value in summary.items()]
    output.print_rows(("step", "figure", "value"), figures)
    context.note(f"The run took {output.duration_text(time.monotonic() - started_seconds)}.")
    context.note('Next: `recrawl status`, `recrawl sql "SELECT url, title FROM crawl.pages LIMIT 10"`.')
    return 0


def _stop(context: Context) -> int:
    from recrawl.inbox import read_stop, request_stop

    opened = [row for row in context.reader.rounds() if row["round_state"] == RoundState.OPEN.value]
    if not opened:
        raise RoundStateError("No round is open.", "`recrawl status` shows the rounds.")
    row = opened[-1]
    round_id = row["round_id"]
    now = context.clock.now()
    first = request_stop(context.store, round_id, context.who, context.arguments.reason, now)
    request = read_stop(context.store, round_id)
    if context.json:
        output.print_json({"round_id": round_id, "first_request": first, "request": vars(request) if request else None})
    elif first:
        name = f"Round {row['round_number']} ({round_id})"
        print(f"{name} stops fetching within about 10 seconds and goes on with parse.")
    else:
        by = f" by {request.who} at {output.cell(request.at)} UTC" if request else ""
        print(f"Round {row['round_number']} ({round_id}) was asked to stop{by} already.")
    return 0


def _undo(context: Context) -> int:
    reader = context.reader
    standing = [row for row in reader.rounds() if row["round_state"] in _STANDING]
    if not standing:
        raise UsageError("There is no round to undo.")
    wanted = context.arguments.to
    first = reader.resolve_round(wanted) if wanted else standing[-1]
    if first["round_state"] not in _STANDING:
        raise UsageError(f"Round {first['round_number']} ({first['round_id']}) is {first['round_state']} already.")
    dropped = [row for row in reversed(standing) if row["round_number"] >= first["round_number"]]
    if not context.json:
        context.note(f"This takes back {len(dropped)} round{'s' if len(dropped) > 1 else ''}:")
        columns = ("round_number", "round_id", "round_state", "opened_at", "fetched", "new_urls")
        output.print_rows(columns, [[row[name] for name in columns] for row in dropped])
    if not context.arguments.yes and not context.confirmed("Their rows are deleted for good. Go on?"):
        context.note("Nothing was done.")
        return 1
    from recrawl.spark.undo import undo

    with contextlib.redirect_stdout(sys.stderr if context.json else sys.stdout):
        undone = undo(context.configuration, first["round_id"])
    if context.json:
        output.print_json({"undone": undone})
    else:
        print(f"Taken back: {', '.join(undone)}.")
    return 0
