"""How things stand: `recrawl status` and `recrawl explain`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.cli.output import print_section, print_titled_rows

if TYPE_CHECKING:
    from recrawl.asking.explain import Explanation
    from recrawl.asking.status import CrawlStatus, LiveRound

_WATCH_SECONDS = 2.0
_CLEAR = "\033[H\033[2J"

_URL_COLUMNS = (
    "state", "depth", "discovered_round", "fetch_count", "change_count", "failure_streak", "last_fetch_at",
    "last_success_at", "last_change_at", "next_fetch_at", "last_status", "last_outcome", "change_rate_per_day", "cash",
    "history", "inlinks", "seed_credit", "seed_tag", "manual_priority", "content_round_id",
)  # fmt: skip
_HOST_COLUMNS = (
    "registered_domain", "ips", "crawl_delay_seconds", "adaptive_delay_seconds", "last_access_at", "blocked_until",
    "error_streak", "url_count", "page_count", "quota_urls_per_round",
)  # fmt: skip


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `status` and `explain` to the tree."""
    status = commands.add_parser(
        "status", parents=[shared], help="rounds (live ones too), lease, table sizes", allow_abbrev=False
    )
    status.add_argument("--watch", action="store_true", help=f"again every {_WATCH_SECONDS:.0f} s until interrupted")
    status.add_argument("--rounds", type=int, default=10, metavar="N", help="the newest rounds shown (default: 10)")
    status.set_defaults(run=_status)
    explain = commands.add_parser(
        "explain", parents=[shared], allow_abbrev=False,
        help="what is known of a URL, and why it was or was not fetched",
    )  # fmt: skip
    explain.add_argument("url", metavar="URL")
    explain.add_argument("--rounds", type=int, default=10, metavar="N", help="newest rounds looked at (default: 10)")
    explain.set_defaults(run=_explain)


def _status(context: Context) -> int:
    from recrawl.asking.status import crawl_status

    arguments = context.arguments
    while True:
        status = crawl_status(
            context.reader, context.store, context.clock.now(), max(1, arguments.rounds), sizes=not arguments.watch
        )
        if context.json:
            (output.print_json_line if arguments.watch else output.print_json)(asdict(status))
        else:
            if arguments.watch and sys.stdout.isatty():
                print(_CLEAR, end="")
            _print_status(status)
        if not arguments.watch:
            return 0
        context.clock.sleep(_WATCH_SECONDS)


def _print_status(status: CrawlStatus) -> None:
    print(f"Crawl {status.root}, {output.cell(status.at)} UTC")
    if status.lease is None:
        print("Nobody writes.")
    else:
        expired = ", expired" if status.lease_expired else ""
        since = output.cell(status.lease.since)
        print(f"In use by {status.lease.owner} for {status.lease.purpose} since {since} UTC{expired}.")
    print()
    if not status.rounds:
        print("No round yet. Run one: `recrawl round --seeds FILE`.")
        return
    columns = {
        "round": "round_number", "id": "round_id", "kind": "round_kind", "state": "round_state", "planned": "planned",
        "fetched": "fetched", "skipped": "skipped_after_plan", "ok": "outcomes_ok", "same": "outcomes_unchanged",
        "failed": "outcomes_failed", "new URLs": "new_urls", "known": "known_after",
    }  # fmt: skip
    output.print_rows(list(columns), [[row[name] for name in columns.values()] for row in status.rounds])
    for live in status.live:
        print()
        _print_live(live)
    if status.tables:
        print()
        output.print_rows(
            ("table", "rows", "files", "size", "version"),
            [(t.table, t.rows, t.files, output.size_text(t.bytes), t.version) for t in status.tables],
        )


def _print_live(live: LiveRound) -> None:
    done = ", ".join(live.steps_done) or "none"
    current = live.current_step or "none"
    print(f"Round {live.round_number} is {live.state}. Steps done: {done}. Next or running: {current}.")
    if live.stop is not None:
        print(f"{live.stop.who} asked it to stop fetching: {live.stop.reason or 'no reason given'}.")
    if live.figures is not None:
        print(output.printable(live.figures.line()))


def _explain(context: Context) -> int:
    from recrawl.asking.explain import explain

    arguments = context.arguments
    found = explain(
        arguments.url, context.reader, context.store, context.configuration, context.clock.now(), arguments.rounds
    )
    if context.json:
        output.print_json(asdict(found))
    else:
        _print_explanation(found)
    return 0


def _print_explanation(found: Explanation) -> None:
    print(output.printable(found.canonical or found.given))
    for sentence in found.verdicts:
        print(f"  {output.printable(sentence)}")
    if found.canonical is None:
        return
    print_section("identity", {
        "as given": found.given, "canonical": found.canonical, "requested as": found.request_form,
        "url_id": found.url_id, "host": found.host, "domain": found.domain, "bucket": found.bucket,
    })  # fmt: skip
    print_titled_rows("URL rules that changed it", found.rules, ("rule", "what", "result"))
    print_titled_rows("seeds that open it", found.scope, ("url", "scope", "added_by"))
    print_section("filters", found.rejection or {"passes": True})
    if found.robots is not None:
        names = ("agent", "allowed", "rule", "robots_outcome", "status", "fetched_at", "expires_at")
        print_section("robots.txt", {name: found.robots[name] for name in names})
    else:
        print_section("robots.txt", {"stored": False})
    print_titled_rows("decisions in force", found.decisions, ("kind", "subject", "value", "who", "reason", "until"))
    print_titled_rows(
        "URL rules proposed", found.proposals,
        ("override_kind", "subject", "value", "agreeing", "compared", "example_url", "other_example_url"),
    )  # fmt: skip
    print_titled_rows("other ids that it had", found.aliases, ("round_id", "url", "url_id"))
    if found.known is not None:
        print_section("known", {name: found.known[name] for name in _URL_COLUMNS})
    if found.host_state is not None:
        print_section("host", {name: found.host_state[name] for name in _HOST_COLUMNS})
    print_titled_rows("planned", found.plans, ("round_id", "crawl_value", "queue", "fetch_partition", "rank_in_host"))
    print_titled_rows(
        "tries", found.tries, ("round_id", "attempt", "hop", "url", "outcome", "status", "ended_at", "detail")
    )
    print_titled_rows("skipped", found.skips, ("round_id", "step", "skip_reason"))
    print_titled_rows("links turned away", found.rejects, ("round_id", "step", "filter", "reject_reason"))
    print_titled_rows("linked from", found.linked_from, ("round_id", "src_url", "link_kind", "anchor_text"))
