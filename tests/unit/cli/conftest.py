"""The command line, called in this process."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recrawl.cli.main import main
from tests.unit.asking.small_crawl import SmallCrawl, small_crawl


@dataclass
class Recrawl:
    """`recrawl` with a storage root of its own; the answer of the last call."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str, stdin: bytes | None = None) -> int:
        if stdin is not None:
            self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            status = main(["--root", str(self.root), *arguments])
        except SystemExit as ended:
            status = int(ended.code or 0)
        captured = self.capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        return status

    def json(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.out)

    def json_lines(self) -> list[Any]:
        """The answer as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def recrawl(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Recrawl:
    """`recrawl` on an empty root, in an environment without settings."""
    for name in ("RECRAWL_CONFIG", "RECRAWL_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "ann")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8"))
    return Recrawl(tmp_path / "crawl", capsys, monkeypatch)


@pytest.fixture
def crawl(recrawl: Recrawl) -> SmallCrawl:
    """Two closed rounds and an open one under the root of `recrawl`."""
    return small_crawl(recrawl.root)
