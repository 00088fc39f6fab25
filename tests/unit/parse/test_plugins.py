"""Content handlers of other packages, and what a parse process imports."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from recrawl.config.load import PROJECT_FOLDER
from recrawl.parse.documents import ENTRY_POINT_GROUP, Handler
from recrawl.parse.handlers import BUILT_IN

_MODULE = """
from recrawl.parse.capture import FoundLink
from recrawl.parse.handlers import Document, Handler
from recrawl.tables.vocabulary import LinkKind


def parse(document, page):
    for line in document.body.decode().splitlines():
        if line.startswith("# "):
            page.title = line[2:]
        elif line.startswith("=> "):
            url, _, text = line[3:].partition(" ")
            page.links.append(FoundLink(url, url, LinkKind.A, "", text))


HANDLER = Handler("gemtext", frozenset({"text/gemini"}), parse)
"""

_PARSE = """
import json, sys
from recrawl.config.model import Parse
from recrawl.parse.capture import Capture
from recrawl.parse.handlers import parse_capture

body, content_type, extractor = sys.argv[1:]
capture = Capture("http://e.example/", content_type, body.encode(), None, 0, "recrawl", True)
page = parse_capture(capture, Parse(text_extractor=extractor))
print(json.dumps({
    "title": page.title, "handler": page.handler, "outcome": page.parse_outcome,
    "links": [link.url for link in page.links], "modules": sorted(sys.modules),
}))
"""


def parsed_elsewhere(body: str, content_type: str, extractor: str, *path: Path) -> dict[str, Any]:
    """What a fresh interpreter says, with these folders on its path too."""
    folders = [PROJECT_FOLDER / "include", PROJECT_FOLDER, *path]
    done = subprocess.run(
        [sys.executable, "-c", _PARSE, body, content_type, extractor],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder that holds an installed package with one handler."""
    (tmp_path / "their_gemtext.py").write_text(_MODULE)
    metadata = tmp_path / "their_gemtext-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-gemtext\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\ngemtext = their_gemtext:HANDLER\n")
    return tmp_path


def test_an_installed_package_brings_a_type(package: Path) -> None:
    body = "# A capsule\n=> http://e.example/next more\n"
    without = parsed_elsewhere(body, "text/gemini", "none")
    assert (without["handler"], without["outcome"]) == ("none", "unsupported")
    found = parsed_elsewhere(body, "text/gemini", "none", package)
    assert (found["title"], found["handler"], found["outcome"]) == ("A capsule", "gemtext", "ok")
    assert found["links"] == ["http://e.example/next"]


def test_the_project_declares_its_handlers_as_any_package_would() -> None:
    project = tomllib.loads((PROJECT_FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"][ENTRY_POINT_GROUP] == BUILT_IN
    for name, reference in BUILT_IN.items():
        handler = pkgutil.resolve_name(reference)
        assert isinstance(handler, Handler)
        assert (handler.name, bool(handler.media_types)) == (name, True)


@pytest.mark.parametrize(
    ("extractor", "unwanted"),
    [
        ("none", {"pypdf", "feedparser", "imagesize", "lxml", "trafilatura", "py3langid", "resiliparse.extract"}),
        ("resiliparse", {"pypdf", "feedparser", "imagesize", "lxml", "trafilatura"}),
        ("trafilatura", {"pypdf", "feedparser", "imagesize"}),
    ],
)
def test_web_pages_alone_load_no_library_that_they_do_not_need(extractor: str, unwanted: set[str]) -> None:
    body = "<title>t</title><p>" + "A sentence that is long enough to be the main text of a page. " * 10
    found = parsed_elsewhere(body, "text/html", extractor)
    assert (found["title"], found["outcome"]) == ("t", "ok")
    assert unwanted & set(found["modules"]) == set()


def test_what_a_spark_worker_imports_needs_no_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import jobs.parse_rows, sys; print('pyspark' in sys.modules, 'lxml' in sys.modules)"],
        env={**os.environ, "PYTHONPATH": f"{PROJECT_FOLDER / 'include'}{os.pathsep}{PROJECT_FOLDER}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "False"]
