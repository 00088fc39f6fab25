"""The installation: `recrawl doctor`, `recrawl config`, `recrawl docs`, `recrawl sample-web`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recrawl.cli import output
from recrawl.cli.context import Context


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the four to the tree."""
    doctor = commands.add_parser(
        "doctor", parents=[shared], help="check this machine and say how to mend each finding", allow_abbrev=False
    )
    doctor.set_defaults(run=_doctor)
    config = commands.add_parser(
        "config", parents=[shared], help="the configuration in force, without secrets", allow_abbrev=False
    )
    config.add_argument("--changed", action="store_true", help="only what differs from the defaults")
    config.set_defaults(run=_config)
    docs = commands.add_parser("docs", parents=[shared], help="render docs/generated from the code", allow_abbrev=False)
    docs.add_argument("--check", action="store_true", help="write nothing; fail when a page is out of date")
    docs.set_defaults(run=_docs)
    sample = commands.add_parser(
        "sample-web", parents=[shared], help="serve a small web of made-up sites on loopback", allow_abbrev=False
    )
    sample.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1; 0 for any that is free")
    sample.add_argument("--write-hosts", metavar="FILE", help="write its host names, in the form of /etc/hosts")
    sample.add_argument("--write-seeds", metavar="FILE", help="write its seeds, a URL a line")
    sample.set_defaults(run=_sample_web)


def _sample_web(context: Context) -> int:
    arguments = context.arguments
    command = [sys.executable, "-m", "recrawl.sampleweb", "--port", str(arguments.port)]
    for option, value in (("--write-hosts", arguments.write_hosts), ("--write-seeds", arguments.write_seeds)):
        command += [option, value] if value else []
    # In place of this process, so that signals reach the server itself.
    os.execv(command[0], command)


def _docs(context: Context) -> int:
    from recrawl.cli.main import build_parser
    from recrawl.cli.reference import stale_pages, write_pages
    from recrawl.config.load import PROJECT_FOLDER

    folder = PROJECT_FOLDER / "docs" / "generated"
    check = context.arguments.check
    names = (stale_pages if check else write_pages)(folder, build_parser())
    if context.json:
        output.print_json({"folder": str(folder), "stale" if check else "written": names})
    elif check and names:
        context.note(f"Out of date in {folder}: {', '.join(names)}. Run `recrawl docs`.")
    else:
        print(f"{folder}: {', '.join(names) + ' written' if names else 'all pages are current'}.")
    return 1 if check and names else 0


def _config(context: Context) -> int:
    rows = list(effective_values(context))
    if context.arguments.changed:
        rows = [row for row in rows if row["source"] != "default"]
    if context.json:
        output.print_json(rows)
    elif rows:
        shown = [(row["key"], json.dumps(row["value"], ensure_ascii=False), row["source"]) for row in rows]
        output.print_rows(("key", "value", "from"), shown)
    else:
        print("Everything is at its default.")
    return 0


def effective_values(context: Context) -> Iterator[dict[str, Any]]:
    """Each key with its value in force and where that comes from; secrets are left out."""
    from recrawl.config.load import ENVIRONMENT_PREFIX, configuration_file, read_file

    file = configuration_file(getattr(context.arguments, "config", None), os.environ)
    in_file = read_file(file) if file is not None else {}
    environment = {name.upper() for name in os.environ}
    for section, values in context.configuration.without_secrets().items():
        for key, value in dict(values).items():  # type: ignore[call-overload]
            variable = f"{ENVIRONMENT_PREFIX}{section.upper()}__{key.upper()}"
            source = "default"
            if section == "storage" and key == "root" and getattr(context.arguments, "root", None) is not None:
                source = "--root"
            elif variable in environment:
                source = variable
            elif key in in_file.get(section, {}):
                source = str(Path(str(file)))
            yield {"key": f"{section}.{key}", "value": value, "source": source}


def _doctor(context: Context) -> int:
    from recrawl.doctor.checks import run_checks
    from recrawl.doctor.finding import Level

    findings = run_checks(context.configuration)
    if context.json:
        output.print_json([vars(finding) for finding in findings])
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{finding.level.value:8} {finding.name:{width}}  {output.printable(finding.found)}")
            if finding.mend:
                print(f"{'':8} {'':{width}}  {output.printable(finding.mend)}")
    return 1 if any(finding.level is Level.PROBLEM for finding in findings) else 0
