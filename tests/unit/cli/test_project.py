"""`config` and `docs`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl.cli.main import build_parser
from recrawl.cli.reference import configuration_page, pages, stale_pages, steps_page, write_pages
from recrawl.config.load import PROJECT_FOLDER
from recrawl.config.model import Configuration
from recrawl.stages import STEPS
from tests.unit.cli.conftest import Recrawl


def test_config_says_where_values_come_from(recrawl: Recrawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "recrawl.toml"
    file.write_text('[fetch]\nslots = 3\n[fetch.host_settings."example.org"]\npassword = "hidden"\n', encoding="utf-8")
    monkeypatch.setenv("RECRAWL__FRONTIER__MAX_URLS", "9")
    monkeypatch.setenv("RECRAWL__STORAGE__S3_SECRET_KEY", "hidden")
    assert recrawl("config", "--config", str(file), "--json") == 0
    rows = {row["key"]: (row["value"], row["source"]) for row in recrawl.json()}
    assert rows["fetch.slots"] == (3, str(file))
    assert rows["frontier.max_urls"] == (9, "RECRAWL__FRONTIER__MAX_URLS")
    assert rows["storage.root"] == (str(recrawl.root), "--root")
    assert rows["fetch.engine"] == ("curl", "default")
    assert "hidden" not in recrawl.out
    assert recrawl("config", "--config", str(file), "--changed") == 0
    assert "fetch.slots" in recrawl.out
    assert "fetch.engine" not in recrawl.out


def test_the_configuration_page_holds_every_key() -> None:
    page = configuration_page()
    for section, field in Configuration.model_fields.items():
        for key in field.annotation.model_fields:  # type: ignore[union-attr]
            assert f"| `{section}.{key}` | `RECRAWL__{section.upper()}__{key.upper()}` |" in page


def test_the_steps_page_holds_every_step() -> None:
    for step in STEPS:
        assert f"| `{step.name}` | {step.purpose} |" in steps_page()


def test_stale_pages_are_found_and_written(tmp_path: Path) -> None:
    parser = build_parser()
    assert stale_pages(tmp_path, parser) == sorted(pages(parser))
    assert write_pages(tmp_path, parser) == sorted(pages(parser))
    assert stale_pages(tmp_path, parser) == []
    (tmp_path / "steps.md").write_text("old", encoding="utf-8")
    assert stale_pages(tmp_path, parser) == ["steps.md"]


def test_pages_hold_nothing_of_this_machine() -> None:
    for text in pages(build_parser()).values():
        assert str(PROJECT_FOLDER) not in text
        assert str(Path.home()) not in text


def test_the_projects_pages_are_current(recrawl: Recrawl) -> None:
    assert recrawl("docs", "--check") == 0, recrawl.err


def test_the_sample_web_is_served_until_told_to_stop(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "recrawl.cli.main", "sample-web", "--write-seeds", str(seeds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        assert "127.0.0.1" in server.stdout.readline()
        server.terminate()
        server.communicate()
    assert server.returncode == 0
    lines = [line for line in seeds.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines and all(line.startswith("http://") for line in lines)


def test_doctor_says_how_each_thing_is_and_fails_on_a_problem(recrawl: Recrawl) -> None:
    status = recrawl("doctor", "--json")
    findings = {finding["name"]: finding for finding in recrawl.json()}
    assert findings["Python"]["level"] == "ok"
    assert status == int(any(finding["level"] == "problem" for finding in findings.values()))
    assert recrawl("doctor", "--root", "/dev/null/crawl") == 1
    storage = next(line for line in recrawl.out.splitlines() if " storage " in line)
    assert storage.startswith("problem")
