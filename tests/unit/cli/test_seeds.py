"""Adding to the root set."""

from __future__ import annotations

from pathlib import Path

import pytest

from recrawl.config.model import Storage
from recrawl.inbox import read_seed_lines
from recrawl.seed.seed_files import parse_seed_file
from recrawl.storage import Store
from recrawl.urls.canonical import Canonicalizer
from tests.unit.cli.conftest import Recrawl


def _added(recrawl: Recrawl) -> list[str]:
    return [line.line for line in read_seed_lines(Store(Storage(root=str(recrawl.root))))]


def test_seeds_with_attributes(recrawl: Recrawl) -> None:
    options = ["--scope", "host", "--tags", "news, daily", "--credit", "2.5", "--priority", "3"]
    assert recrawl("seed", "add", "https://example.org/", "example.com", *options) == 0
    attributes = "scope=host tags=news,daily credit=2.5 priority=3.0"
    assert _added(recrawl) == [f"https://example.org/ {attributes}", f"https://example.com {attributes}"]
    parsed = parse_seed_file("\n".join(_added(recrawl)).encode(), Canonicalizer().canonical)
    assert [seed.canonical_url for seed in parsed.accepted] == ["https://example.org/", "https://example.com/"]
    assert not parsed.problems


def test_good_lines_of_a_file_are_taken_and_bad_ones_named(recrawl: Recrawl, tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("# mine\nhttps://example.org/ scope=page\nhttps://EXAMPLE.org/\nnot a url\n", encoding="utf-8")
    assert recrawl("seed", "add", "--file", str(file)) == 1
    assert _added(recrawl) == ["https://example.org/ scope=page"]
    assert "line 3: the same URL as line 2" in recrawl.out
    assert "line 4:" in recrawl.out


def test_check_adds_nothing(recrawl: Recrawl, tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("example.org\n", encoding="utf-8")
    assert recrawl("seed", "check", str(file)) == 0
    assert "https was added" in recrawl.out
    assert recrawl("seed", "check", str(file), "--json") == 0
    assert recrawl.json()["accepted"][0]["canonical_url"] == "https://example.org/"
    assert _added(recrawl) == []


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["seed", "add"], 2),
        (["seed", "add", "--file", "/absent"], 2),
        (["seed", "add", "--file", "/dev/null", "--scope", "host"], 2),
        (["seed", "add", "https://x.example/", "--scope", "galaxy"], 2),
        (["seed", "add", "https://x.example/", "--credit", "-1"], 1),
        (["seed", "add", "https://x.example/ scope=anywhere"], 0),
    ],
)
def test_what_can_not_be_added(recrawl: Recrawl, arguments: list[str], status: int) -> None:
    assert recrawl(*arguments) == status
    assert len(_added(recrawl)) == (status == 0)
