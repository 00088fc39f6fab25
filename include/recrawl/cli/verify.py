"""`recrawl verify`: published WARC files, read again."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from random import SystemRandom
from typing import Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.errors import UsageError

_SAMPLE = 10


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `verify` to the tree."""
    verify = commands.add_parser(
        "verify", parents=[shared], allow_abbrev=False, help="read published WARC files again and compare",
        description="Compares published WARC files with the tables: SHA-256, records, digests, CDXJ indexes and "
        "the places that rows name; warcio reads them too. Exit status 1 and a sentence for each finding; 0 when all "
        "is as published.",
    )  # fmt: skip
    verify.add_argument("--round", metavar="ROUND", help="only the files of this round (default: of all rounds)")
    how_many = verify.add_mutually_exclusive_group()
    how_many.add_argument("--sample", type=int, metavar="N", help=f"N files, at random (default: {_SAMPLE})")
    how_many.add_argument("--all", action="store_true", help="every file")
    verify.set_defaults(run=_verify)


def _verify(context: Context) -> int:
    from recrawl.asking.verify import verify

    arguments = context.arguments
    sample = None if arguments.all else _SAMPLE if arguments.sample is None else arguments.sample
    if sample is not None and sample < 1:
        raise UsageError(f"--sample {sample} reads nothing.", "Name a number of 1 or more.")
    round_id = str(context.reader.resolve_round(arguments.round)["round_id"]) if arguments.round else None

    def on_file(name: str) -> None:
        if sys.stderr.isatty() and not context.json:
            context.note(name)

    found = verify(context.reader, context.store, round_id, sample, SystemRandom(), on_file)
    if context.json:
        output.print_json(asdict(found))
        return 1 if found.findings else 0
    for finding in found.findings:
        print(output.printable(finding.sentence))
    read = f"{found.files:,} of {found.files_known:,} WARC files read: {found.records:,} records, "
    read += output.size_text(found.bytes)
    if found.findings:
        context.note(f"{read}. Findings: {len(found.findings):,}.")
        return 1
    print(f"{read}; all as published." if found.files_known else "No WARC file is published yet.")
    return 0
