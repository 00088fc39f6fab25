"""The tree of commands, and how faults are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.cli.main import build_parser
from recrawl.errors import UsageError
from tests.unit.cli.conftest import Recrawl

#: Modules that take longer to import than a help text may.
HEAVY = ("pyspark", "pyarrow", "pydantic", "deltalake", "airflow", "pycurl", "trafilatura", "selectolax")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom recrawl.cli.main import build_parser\nbuild_parser().format_help()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    assert done.stdout.strip() == "[]"


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_every_command_explains_itself(recrawl: Recrawl) -> None:
    commands = build_parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    assert commands
    for name in commands:
        assert recrawl(str(name), "--help") == 0
        assert recrawl.out.startswith(f"usage: recrawl {name}")


@pytest.mark.parametrize("arguments", [["nope"], [], ["round", "--mod", "best-first"], ["block"]])
def test_a_wrong_command_line_ends_with_two(recrawl: Recrawl, arguments: list[str]) -> None:
    assert recrawl(*arguments) == 2
    assert "Traceback" not in recrawl.err


def test_a_fault_is_one_sentence_and_its_mend(recrawl: Recrawl, tmp_path: Path) -> None:
    assert recrawl("--config", str(tmp_path / "absent.toml"), "status") == 2
    assert recrawl.err.startswith("recrawl: The configuration file")
    assert recrawl.err.count("\n") == 1


def test_a_fault_has_its_traceback_when_asked(recrawl: Recrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_DEBUG", "1")
    with pytest.raises(UsageError):
        recrawl("undo", "--yes")


def test_shared_options_stand_before_and_after_the_command(recrawl: Recrawl, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert recrawl("status", "--json") == 0
    assert recrawl.json()["root"] == str(recrawl.root)
    assert recrawl("--json", "status", "--root", str(other)) == 0
    assert recrawl.json()["root"] == str(other)
