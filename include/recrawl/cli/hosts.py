"""`recrawl host`: what is known of a host, and why it waits."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.cli.output import print_section, print_titled_rows

if TYPE_CHECKING:
    from recrawl.asking.host import HostReport
    from recrawl.asking.stored_robots import RobotsFile

_RECORD = (
    "registered_domain", "ips", "zone", "crawl_delay_seconds", "adaptive_delay_seconds", "last_access_at",
    "blocked_until", "error_streak", "url_count", "page_count", "duplicate_count", "trap_link_count", "trap_score",
    "quota_urls_per_round", "mirror_of", "robots_digest", "robots_expires_at", "last_round_id",
)  # fmt: skip
_VISIT = (
    "round_id", "requests", "errors", "deferred", "min_gap_ms", "retry_after_seconds", "dns_ms", "connect_ms",
    "first_byte_ms", "error_streak", "blocked_until",
)  # fmt: skip


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `host` to the tree."""
    host = commands.add_parser(
        "host", parents=[shared], allow_abbrev=False,
        help="what is known of a host: record, decisions, visits, robots.txt, and why it waits",
    )  # fmt: skip
    host.add_argument("name", metavar="NAME", help="a host, with its port where that is not the default; or a URL")
    host.add_argument("--rounds", type=int, default=10, metavar="N", help="newest rounds looked at (default: 10)")
    host.set_defaults(run=_host)


def _host(context: Context) -> int:
    from recrawl.asking.host import host_named, host_report

    arguments = context.arguments
    name = host_named(arguments.name, context.configuration)
    rounds = max(1, arguments.rounds)
    found = host_report(name, context.reader, context.store, context.configuration, context.clock.now(), rounds)
    if context.json:
        output.print_json(asdict(found))
    else:
        _print(found)
    return 0


def _print(found: HostReport) -> None:
    print(output.printable(found.host))
    for sentence in found.waits:
        print(f"  {output.printable(sentence)}")
    if found.known is None:
        print("\nNo round has met it.")
    else:
        print_section("record", {"bucket": found.bucket} | {name: found.known[name] for name in _RECORD})
    print_section("next round", {"gap in seconds": found.delay_seconds, "URLs at most": found.quota})
    if found.planned is not None:
        print_section("open round", found.planned)
    print_titled_rows("URLs", found.urls, ("state", "urls", "due", "next_fetch_at"))
    print_titled_rows("decisions in force", found.decisions, ("kind", "subject", "value", "who", "reason", "until"))
    print_titled_rows("visits", found.visits, _VISIT)
    print_titled_rows("tries", found.outcomes, ("round_id", "outcome", "urls"))
    print_titled_rows("given back", found.skips, ("round_id", "step", "skip_reason", "urls"))
    for file in found.robots:
        _print_robots(file)
    if not found.robots:
        print_section("robots.txt", {"stored": False})


def _print_robots(file: RobotsFile) -> None:
    print_section(f"robots.txt ({file.scheme})", {
        "outcome": file.outcome, "status": file.status, "fetched_at": file.fetched_at, "expires_at": file.expires_at,
        "redirect_target": file.redirect_target, "/ is allowed": file.root_allowed,
        "by the line": file.root_rule or None, "Crawl-delay": file.crawl_delay_seconds,
        "sitemaps": len(file.sitemaps), "file of": file.body_fetched_at,
    })  # fmt: skip
    for line in (file.body or "").splitlines():
        print(f"  | {output.printable(line)}")
