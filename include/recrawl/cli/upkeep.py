"""Upkeep of a crawl between rounds: `recrawl rekey`, `recrawl survey`, `recrawl proposals`, `recrawl accept`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from dataclasses import asdict
from typing import Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.errors import UsageError
from recrawl.tables.vocabulary import OverrideKind

_EXAMPLES = 10
_PROPOSED = ("override_kind", "subject", "value", "agreeing", "compared", "example_url", "other_example_url")


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `rekey`, `survey`, `proposals` and `accept` to the tree."""
    rekey = commands.add_parser(
        "rekey", parents=[shared], help="move known URLs to the ids that today's URL rules give them",
        allow_abbrev=False,
        description="A round of its own kind: rows that fall together become one, cash and history added up; old ids "
        "stay in url_aliases. One that was killed is finished by running it again; `recrawl undo` takes it back.",
    )  # fmt: skip
    rekey.add_argument("--dry-run", action="store_true", help="only say how many URLs would move, with examples")
    rekey.set_defaults(run=_rekey)
    survey = commands.add_parser(
        "survey", parents=[shared], help="look for URLs, hosts and parameters that name one page", allow_abbrev=False,
        description="Compares the captured pages. Host aliases, servers blind to case and index pages hold from the "
        "next round on (`recrawl lift` ends one for good); parameters that change nothing wait for `recrawl accept`.",
    )  # fmt: skip
    survey.set_defaults(run=_survey)
    listing = commands.add_parser(
        "proposals", parents=[shared], help="what the newest survey found, and what became of it", allow_abbrev=False
    )
    listing.set_defaults(run=_list)
    accept = commands.add_parser(
        "accept", parents=[shared], help="let a URL rule that was proposed hold from the next round on",
        allow_abbrev=False, description="`recrawl rekey` then moves known URLs to the ids that it gives them.",
    )  # fmt: skip
    accept.add_argument("subject", metavar="SUBJECT", help="as `recrawl proposals` writes it, e.g. example.org?ref")
    accept.add_argument("--reason", default="proposed by a survey", help="why, for the record")
    accept.add_argument("--who", help="who decides (default: the user of the machine)")
    accept.set_defaults(run=_accept)


def _rekey(context: Context) -> int:
    from jobs.rekey import preview, rekey

    with contextlib.redirect_stdout(sys.stderr if context.json else sys.stdout):
        if context.arguments.dry_run:
            found = preview(context.configuration, _EXAMPLES)
        else:
            closed = rekey(context.configuration)
    if context.arguments.dry_run:
        if context.json:
            output.print_json(asdict(found))
            return 0
        print(f"{found.moved:,} of {found.known:,} known URLs would have another id.")
        if found.examples:
            output.print_rows(("URL", "would become"), found.examples)
        return 0
    names = ("round_number", "round_id", "round_state", "known_before", "known_after", "merged_urls")
    if context.json:
        output.print_json({name: closed[name] for name in names})
    else:
        output.print_rows(names, [[closed[name] for name in names]])
    return 0


def _survey(context: Context) -> int:
    from jobs.survey import survey

    with contextlib.redirect_stdout(sys.stderr if context.json else sys.stdout):
        survey(context.configuration)
    return _list(context)


def _newest(context: Context) -> list[dict[str, Any]]:
    """The proposals of the newest survey, each with whether its rule holds."""
    from recrawl.inbox import read_events
    from recrawl.seed.decisions import fold_decisions

    if context.reader.version("proposals") is None:
        return []
    found = context.reader.query(
        "SELECT * FROM proposals WHERE round_id = (SELECT max(round_id) FROM proposals) ORDER BY override_kind, subject"
    )
    in_force = fold_decisions(read_events(context.store), context.clock.now()).overrides
    holding = {(decision.kind.value, decision.subject) for decision in in_force}
    return [{**row, "holds": (row["override_kind"], row["subject"]) in holding} for row in found.to_pylist()]


def _list(context: Context) -> int:
    rows = _newest(context)
    if context.json:
        output.print_json({"proposals": rows})
    elif rows:
        names = (*_PROPOSED, "holds")
        output.print_rows(names, [[row[name] for name in names] for row in rows])
    else:
        print("Nothing is proposed. `recrawl survey` looks for it.")
    return 0


def _accept(context: Context) -> int:
    from recrawl.inbox import add_event, new_event

    subject = context.arguments.subject.strip()
    found = next((row for row in _newest(context) if row["subject"] == subject), None)
    if found is None:
        raise UsageError(f"No survey has proposed {subject!r}.", "`recrawl proposals` lists what was.")
    kind = OverrideKind(found["override_kind"])
    now = context.clock.now()
    event = new_event(now, context.who, kind, subject, context.arguments.reason, found["value"])
    add_event(context.store, event)
    if context.json:
        output.print_json({**vars(event), "kind": kind.value})
        return 0
    print(f"{kind.value}: {subject}. It holds from the next round on; `recrawl rekey` moves known URLs to it.")
    return 0
