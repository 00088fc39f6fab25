"""The command `recrawl`: its tree of commands, and how faults become one sentence.

Exit statuses: 0 done; 1 a fault (or a check that found one); 2 a command, form or configuration
that can't be used; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from recrawl import __version__
from recrawl.cli import alerts, decisions, hosts, project, rounds, seeds, sql, state, traps, upkeep, verify, workbench
from recrawl.cli.context import Context
from recrawl.errors import RecrawlError

#: Set to 1 to see the traceback of a fault.
DEBUG_VARIABLE = "RECRAWL_DEBUG"

_FAMILIES = (rounds, seeds, decisions, traps, state, hosts, alerts, verify, upkeep, sql, workbench, project)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    shared = shared_options(argparse.SUPPRESS)
    parser = argparse.ArgumentParser(
        prog="recrawl",
        description="A batch recrawl platform: rounds of seed, frontier, fetch, parse, dedupe and rank.",
        epilog="`recrawl COMMAND --help` explains a command. `make help` lists what the project folder offers.",
        parents=[shared_options(None)],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"recrawl {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", required=True)
    for family in _FAMILIES:
        family.add_commands(commands, shared)
    return parser


def shared_options(default: object) -> argparse.ArgumentParser:
    """The options that stand before or after any command.

    Args:
        default: SUPPRESS after the command, so that what stood before it is kept.
    """
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    group = options.add_argument_group("options of every command")
    group.add_argument("--config", metavar="FILE", default=default, help="the configuration file (TOML)")
    group.add_argument("--root", metavar="ROOT", default=default, help="the storage root: a path or s3a:// address")
    group.add_argument(
        "--json", action="store_true", default=default if default else False, help="the answer as JSON, for programs"
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; gives the exit status."""
    arguments = build_parser().parse_args(argv)
    try:
        status: int = arguments.run(Context(arguments))
        sys.stdout.flush()
        return status
    except RecrawlError as error:
        if os.environ.get(DEBUG_VARIABLE) == "1":
            raise
        print(f"recrawl: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("recrawl: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (`head`, a pager) has gone; what it wanted it has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
