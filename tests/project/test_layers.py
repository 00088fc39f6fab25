"""Who may import whom: the contracts of pyproject.toml, and the two rules that they can't say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.config.load import PROJECT_FOLDER

#: The first names of what only Spark's and Airflow's own layers may import.
SPARK = {"pyspark", "delta"}


def imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it; those only for type checkers too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names


def test_the_import_contracts_hold() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=PROJECT_FOLDER,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{PROJECT_FOLDER / 'include'}:{PROJECT_FOLDER}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_the_set_up_needs_no_package() -> None:
    """It runs before any is installed."""
    allowed = set(sys.stdlib_module_names) | {"recrawl"}
    for path in (PROJECT_FOLDER / "include" / "recrawl" / "bootstrap").glob("*.py"):
        names = imported(path)
        assert {name.split(".")[0] for name in names} <= allowed, path.name
        ours = {name for name in names if name.startswith("recrawl")}
        assert all(name.startswith(("recrawl.bootstrap", "recrawl.errors")) for name in ours), path.name


def test_the_set_up_runs_on_a_bare_python() -> None:
    # -S: no site-packages; -I: nothing of this environment.
    script = f"import sys; sys.path.insert(0, {str(PROJECT_FOLDER / 'include')!r}); import recrawl.bootstrap.setup"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize("path", sorted((PROJECT_FOLDER / "dags").glob("*.py")), ids=lambda path: path.stem)
def test_dags_know_neither_spark_nor_the_jobs(path: Path) -> None:
    names = {name.split(".")[0] for name in imported(path)}
    assert names & (SPARK | {"jobs"}) == set()
    assert names & {"recrawl", "airflow"}


def test_unit_tests_start_neither_spark_nor_airflow() -> None:
    for path in (PROJECT_FOLDER / "tests" / "unit").rglob("*.py"):
        names = {name.split(".")[0] for name in imported(path)}
        assert names & (SPARK | {"airflow"}) == set(), path
