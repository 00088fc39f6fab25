"""What people decide: `block`, `quota`, `priority`, `exclude`, `lift`, and `decisions` that lists it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recrawl.cli import output
from recrawl.cli.context import Context, moment
from recrawl.errors import UsageError
from recrawl.tables.vocabulary import OverrideKind

if TYPE_CHECKING:
    from recrawl.inbox import InboxEvent
    from recrawl.seed.decisions import Decisions


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the decisions to the tree."""
    block = _decision(commands, shared, "block", "never contact a host (or domain, with its subdomains)")
    block.add_argument("subject", metavar="HOST")
    quota = _decision(commands, shared, "quota", "plan at most N URLs of a host a round")
    quota.add_argument("subject", metavar="HOST")
    quota.add_argument("value", metavar="N")
    priority = _decision(commands, shared, "priority", "multiply crawl values by a factor")
    priority.add_argument("subject", metavar="SUBJECT", help="a host, domain, URL prefix or URL")
    priority.add_argument("value", metavar="FACTOR")
    exclude = _decision(commands, shared, "exclude", "never fetch URLs with a prefix")
    exclude.add_argument("subject", metavar="PREFIX")
    lift = _decision(commands, shared, "lift", "end a decision")
    liftable = [kind.value for kind in OverrideKind if kind is not OverrideKind.LIFT]
    lift.add_argument("value", metavar="KIND", choices=liftable, help=", ".join(liftable))
    lift.add_argument("subject", metavar="SUBJECT", help="as it was named in the decision")
    listing = commands.add_parser(
        "decisions", parents=[shared], help="the decisions in force, and who took them why", allow_abbrev=False
    )
    listing.add_argument("--all", action="store_true", help="every event, ended and lifted ones too")
    listing.set_defaults(run=_list)


def _decision(commands: Any, shared: argparse.ArgumentParser, kind: str, help_text: str) -> Any:
    parser = commands.add_parser(
        kind, parents=[shared], help=help_text, allow_abbrev=False,
        description=f"Decision: {help_text}. {_takes_effect(kind)}",
    )  # fmt: skip
    parser.add_argument("--reason", required=True, help="why, for the record")
    parser.add_argument("--until", metavar="TIME", help="when it ends: 2026-12-31, 7d, 12h (default: when lifted)")
    parser.add_argument("--who", help="who decides (default: the user of the machine)")
    parser.set_defaults(run=_decide)
    return parser


def _takes_effect(kind: str) -> str:
    if kind in (OverrideKind.BLOCK, OverrideKind.LIFT):
        return "A running fetch heeds blocks, and their lifting, within about 10 seconds; plans from the next round on."
    return "It holds from the next round on."


def _decide(context: Context) -> int:
    from recrawl.inbox import add_event, new_event, read_events

    arguments, now = context.arguments, context.clock.now()
    kind = OverrideKind(arguments.command)
    event = new_event(
        at=now,
        who=context.who,
        kind=kind,
        subject=_subject(context, kind, arguments.subject),
        reason=arguments.reason,
        value=getattr(arguments, "value", None),
        until=moment(arguments.until, now) if arguments.until else None,
    )
    problems = _folded([event], now).problems
    if problems:
        raise UsageError(f"The decision can't be taken: {problems[0].reason}.")
    if kind is OverrideKind.LIFT:
        in_force = _folded(read_events(context.store), now).overrides
        if not any(o.kind.value == event.value and o.subject == event.subject for o in in_force):
            raise UsageError(f"No {event.value} of {event.subject} is in force.", "`recrawl decisions` lists them.")
    add_event(context.store, event)
    if context.json:
        output.print_json({**vars(event), "kind": event.kind.value})
        return 0
    value = f" {event.value}" if event.value is not None else ""
    until = f" until {output.cell(event.until)} UTC" if event.until else ""
    print(f"{kind.value}{value}: {event.subject}{until}. {_takes_effect(kind)}")
    return 0


def _folded(events: Iterable[InboxEvent], now: datetime) -> Decisions:
    """What is in force now, by the same fold as the step `seed`."""
    from recrawl.seed import decisions

    return decisions.fold_decisions(events, now)


def _subject(context: Context, kind: OverrideKind, text: str) -> str:
    """The subject as tables write it: hosts as in canonical URLs, prefixes and URLs canonical.

    Raises:
        UsageError: a host or prefix that can't be one.
    """
    from recrawl.urls.canonical import Canonicalizer, host_of, parse

    subject = text.strip()
    if kind is OverrideKind.LIFT:
        return subject
    is_url = "://" in subject
    urls = context.configuration_in_force.urls
    if not (kind is OverrideKind.PRIORITY and is_url):
        # A host or prefix as named, though it may be another's alias.
        urls = urls.model_copy(update={"site_rules": []})
    canonicalizer = Canonicalizer.from_settings(urls)
    if kind is OverrideKind.EXCLUDE:
        # As the parser writes it, but whole: a prefix may end in the middle of a parameter.
        prefix = parse(subject)
        if not is_url or prefix is None or canonicalizer.canonical(subject) is None:
            raise UsageError(f"{text!r} is no URL prefix.", "Write it as https://example.org/private/.")
        return prefix
    # Hosts are written without their scheme's default port.
    scheme = "https" if subject.endswith(":443") else "http"
    canonical = canonicalizer.canonical(subject if is_url else f"{scheme}://{subject}/")
    if canonical is None:
        raise UsageError(f"{text!r} is no host.", "Write it as example.org or example.org:8080.")
    if kind is OverrideKind.PRIORITY and is_url:
        return canonical
    if not is_url and canonical != f"{scheme}://{host_of(canonical)}/":
        raise UsageError(f"{text!r} is no host.", "A URL or prefix begins with http:// or https://.")
    return host_of(canonical)


def _list(context: Context) -> int:
    from recrawl.inbox import InboxReader

    inbox = InboxReader(context.store).read()
    folded = _folded(inbox.events, context.clock.now())
    chosen: tuple[Any, ...] = inbox.events if context.arguments.all else folded.overrides
    problems = [*inbox.problems, *(f"{p.event_id}: {p.reason}" for p in folded.problems)]
    if context.json:
        rows = [{**vars(item), "kind": item.kind.value} for item in chosen]
        output.print_json({"decisions": rows, "problems": problems})
        return 0
    if chosen:
        since = "at" if context.arguments.all else "since"
        names = ("kind", "subject", "value", "who", since, "until", "reason")
        output.print_rows(names, [[getattr(item, name) for name in names] for item in chosen])
    else:
        print("No decision is in force.")
    for problem in problems:
        context.note(f"warning: {problem}")
    return 0
