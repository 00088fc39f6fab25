"""The root set: `recrawl seed add` and `recrawl seed check`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.errors import UsageError
from recrawl.tables.vocabulary import Scope


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `seed` to the tree."""
    seed = commands.add_parser("seed", help="add to the root set, or check a seed file", allow_abbrev=False)
    actions = seed.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser(
        "add", parents=[shared], help="add seeds; the next round takes them", allow_abbrev=False,
        description="Adds seeds to the inbox; the next round's first step takes them into the lasting root set.",
    )  # fmt: skip
    add.add_argument("urls", nargs="*", metavar="URL", help="seed URLs")
    add.add_argument("--file", type=Path, help="a seed file: one URL a line, then scope= tags= credit= priority=")
    add.add_argument("--scope", choices=[scope.value for scope in Scope], help="what the URLs open to the crawl")
    add.add_argument("--tags", help="free words, comma separated")
    add.add_argument("--credit", type=float, help="AOPIC credit")
    add.add_argument("--priority", type=float, help="factor on the crawl value")
    add.add_argument("--who", help="who adds them (default: the user of the machine)")
    add.set_defaults(run=_add)
    check = actions.add_parser("check", parents=[shared], help="check a seed file", allow_abbrev=False)
    check.add_argument("file", type=Path)
    check.set_defaults(run=_check)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"The seed file {path} can't be read: {error.strerror}.") from None


def _parsed(context: Context, data: bytes) -> Any:
    from recrawl.seed.seed_files import parse_seed_file
    from recrawl.urls.canonical import Canonicalizer

    return parse_seed_file(data, Canonicalizer.from_settings(context.configuration.urls).canonical)


def _attributes(arguments: argparse.Namespace) -> str:
    named = {name: getattr(arguments, name) for name in ("scope", "tags", "credit", "priority")}
    if named["tags"]:
        named["tags"] = ",".join(word.strip() for word in named["tags"].split(",") if word.strip())
    return "".join(f" {name}={value}" for name, value in named.items() if value not in (None, ""))


def _add(context: Context) -> int:
    from recrawl.inbox import add_seed_lines

    arguments = context.arguments
    attributes = _attributes(arguments)
    if not arguments.urls and arguments.file is None:
        raise UsageError("Nothing to add.", "Name URLs, or a seed file with --file.")
    if arguments.file is not None and attributes:
        raise UsageError("--scope, --tags, --credit and --priority go with URLs.", "In a file they stand on each line.")
    data = "\n".join(f"{url}{attributes}" for url in arguments.urls).encode()
    if arguments.file is not None:
        data = _read(arguments.file) + b"\n" + data
    parsed = _parsed(context, data)
    lines = [_line_of(seed) for seed in parsed.accepted]
    event_id = add_seed_lines(context.store, lines, context.who, context.clock.now()) if lines else None
    if context.json:
        output.print_json({"event_id": event_id, **parsed.as_json()})
    else:
        _print_problems(parsed)
        print(f"{len(lines)} seed{'' if len(lines) == 1 else 's'} added; the next round takes them.")
    return 1 if parsed.problems else 0


def _line_of(seed: Any) -> str:
    """A checked seed as a line of a seed file."""
    words = [seed.url]
    if seed.scope is not None:
        words.append(f"scope={seed.scope.value}")
    if seed.tags:
        words.append(f"tags={','.join(seed.tags)}")
    if seed.credit is not None:
        words.append(f"credit={seed.credit!r}")
    if seed.priority is not None:
        words.append(f"priority={seed.priority!r}")
    return " ".join(words)


def _check(context: Context) -> int:
    parsed = _parsed(context, _read(context.arguments.file))
    if context.json:
        output.print_json(parsed.as_json())
    else:
        _print_problems(parsed)
        for seed in parsed.accepted:
            if seed.note:
                print(f"line {seed.line_number}: {output.printable(seed.url)} {seed.note}")
        print(f"{len(parsed.accepted)} seeds, {len(parsed.problems)} lines that are none.")
    return 1 if parsed.problems else 0


def _print_problems(parsed: Any) -> None:
    for problem in parsed.problems:
        shown = output.printable(problem.text)
        print(f"line {problem.line_number}: {problem.reason} [{problem.filter.value}]: {shown}")
