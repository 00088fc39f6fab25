"""What the documents promise exists: make targets, commands, files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recrawl.cli.main import build_parser
from recrawl.config.load import PROJECT_FOLDER

MAKEFILE = (PROJECT_FOLDER / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
DOCUMENTS = sorted(
    path
    for path in (
        PROJECT_FOLDER / "README.md",
        PROJECT_FOLDER / "CONTRIBUTING.md",
        *(PROJECT_FOLDER / "docs").rglob("*.md"),
    )
    if path.is_file()
)


def commands() -> set[str]:
    """The commands of `recrawl`."""
    (subparsers,) = (
        action for action in build_parser()._actions if hasattr(action, "choices") and isinstance(action.choices, dict)
    )
    return set(subparsers.choices)


def test_there_is_a_readme() -> None:
    assert PROJECT_FOLDER / "README.md" in DOCUMENTS


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_and_commands_of_a_document_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)\b", text, re.MULTILINE)) <= TARGETS
    called = re.findall(r"(?:^|`|\.venv/bin/)recrawl ((?:--\w+ \S+ )*)([a-z][a-z-]*)\b", text, re.MULTILINE)
    assert {name for _, name in called} <= commands()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_of_a_document_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (document.parent / target).exists(), target


def test_every_target_explains_itself_and_is_phony() -> None:
    explained = set(re.findall(r"^([a-z-]+):.*## \S", MAKEFILE, re.MULTILINE))
    phony = set(re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[0].split())
    assert explained == TARGETS == phony


def test_ci_runs_the_checks_and_the_tests() -> None:
    script = (PROJECT_FOLDER / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^make check$", script, re.MULTILINE) and "make --no-print-directory test" in script
    assert "set -euo pipefail" in script
