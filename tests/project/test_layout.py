"""The project's shape: each step has its parts, modules stay small, names say something."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from recrawl.config.load import PROJECT_FOLDER
from recrawl.stages import STEP_NAMES

MOST_MODULE_LINES = 400
MOST_FUNCTION_LINES = 60
CODE_FOLDERS = ("include", "jobs", "dags", "plugins", "tests")

#: Names that say nothing about what is inside.
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "lib", "tools"}


def modules(*folders: str) -> list[Path]:
    """The Python files under these folders of the project."""
    return sorted(
        path
        for folder in folders
        for path in (PROJECT_FOLDER / folder).rglob("*.py")
        if "__pycache__" not in path.parts
    )


def name_of(path: Path) -> str:
    """The path as the project's files are named."""
    return path.relative_to(PROJECT_FOLDER).as_posix()


@pytest.mark.parametrize("step", STEP_NAMES)
def test_each_step_has_a_job_a_package_and_a_test(step: str) -> None:
    assert (PROJECT_FOLDER / "jobs" / f"{step}.py").is_file()
    assert (PROJECT_FOLDER / "include" / "recrawl" / step / "__init__.py").is_file()
    assert (PROJECT_FOLDER / "tests" / "jobs" / f"test_{step}.py").is_file()


def test_modules_have_at_most_400_lines() -> None:
    sizes = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules(*CODE_FOLDERS)}
    assert {name: lines for name, lines in sizes.items() if lines > MOST_MODULE_LINES} == {}


def test_functions_have_at_most_60_lines() -> None:
    too_long = {}
    for path in modules("include", "jobs", "dags", "plugins"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > MOST_FUNCTION_LINES:
                    too_long[f"{name_of(path)}:{node.name}"] = lines
    assert too_long == {}


def test_no_module_or_folder_has_a_name_that_says_nothing() -> None:
    named = {
        part for path in modules(*CODE_FOLDERS) for part in (*path.relative_to(PROJECT_FOLDER).parts[:-1], path.stem)
    }
    assert named & EMPTY_NAMES == set()


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(path) for path in modules(*CODE_FOLDERS) if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert silent == []


def test_public_functions_and_classes_have_docstrings() -> None:
    silent = []
    for path in modules("include", "jobs", "dags", "plugins"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and not ast.get_docstring(node):
                silent.append(f"{name_of(path)}:{node.name}")
    assert silent == []


def test_no_work_is_left_for_later() -> None:
    marks = re.compile(r"#.*\b(?:TODO|FIXME|XXX|HACK)\b")
    here = Path(__file__)
    left = [name_of(path) for path in modules(*CODE_FOLDERS) if path != here and marks.search(path.read_text("utf-8"))]
    assert left == []


def test_decisions_are_numbered_once_and_have_a_status() -> None:
    decisions = sorted((PROJECT_FOLDER / "docs" / "decisions").glob("[0-9]*.md"))
    assert decisions, "docs/decisions holds no numbered decision"
    numbers = Counter(path.name.split("-")[0] for path in decisions)
    assert [number for number, times in numbers.items() if times > 1] == []
    without = [path.name for path in decisions if not re.search(r"^\**Status\b", path.read_text("utf-8"), re.MULTILINE)]
    assert without == []


def test_what_is_made_on_a_machine_is_not_in_git() -> None:
    if not (PROJECT_FOLDER / ".git").exists():
        listed = [".gitignore"]
    else:
        command = ["git", "-C", str(PROJECT_FOLDER), "ls-files"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    made = re.compile(r"(^|/)(\.venv|\.recrawl|__pycache__|airflow\.cfg|\.env|.*\.warc(\.gz)?)(/|$)")
    assert [name for name in listed if made.search(name) and "tests/" not in name] == []
    ignored = (PROJECT_FOLDER / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {".venv/", ".recrawl/", ".env"} <= set(ignored)
