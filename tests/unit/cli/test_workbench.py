"""`recrawl try`: every case that is handed out is answered as it says, in the same order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Recrawl

VECTORS = Path(__file__).parents[2] / "vectors"
RESULTS = {
    "url_canonical": {"href", "expect", "same"},
    "robots": {"allowed", "delay"},
    "links": {"links", "base", "target", "delay", "index", "follow", "encoding"},
}


def _results_of(kind: str, case: dict[str, Any]) -> set[str]:
    if case.get("kind") == "base":
        return {"base"}
    return RESULTS[kind] & case.keys() - ({"base"} if kind != "links" else set())


@pytest.mark.parametrize(
    ("what", "kind", "share"), [("url", "url_canonical", 0.97), ("robots", "robots", 0.98), ("links", "links", 0.95)]
)
def test_the_cases_are_answered_from_their_inputs_alone(recrawl: Recrawl, what: str, kind: str, share: float) -> None:
    cases = json.loads((VECTORS / f"{kind}.handed.json").read_text(encoding="utf-8"))
    inputs = [{k: v for k, v in case.items() if k not in _results_of(kind, case)} for case in cases]
    assert recrawl("try", what, stdin="\n".join(map(json.dumps, inputs)).encode()) == 0
    answers = recrawl.json_lines()
    assert len(answers) == len(cases)
    wrong = []
    for case, given, answer in zip(cases, inputs, answers, strict=True):
        assert {k: answer[k] for k in given} == given
        wrong += [case] if any(answer.get(k) != case[k] for k in _results_of(kind, case)) else []
    assert len(wrong) <= (1 - share) * len(cases), wrong


def test_a_bad_line_answers_with_its_error_and_stops_nothing(recrawl: Recrawl) -> None:
    lines = b'{"input": "http://a.example"}\n{"input": 3, "n": 1}\nnope\n\n[]\n\xff\n{"input": "http://b.example"}\n'
    assert recrawl("try", "url", stdin=lines) == 1
    answers = recrawl.json_lines()
    assert [answer.get("canonical") for answer in answers] == [
        "http://a.example/", None, None, None, None, "http://b.example/",
    ]  # fmt: skip
    assert ["error" in answer for answer in answers] == [False, True, True, True, True, False]
    assert answers[1]["n"] == 1


@pytest.mark.parametrize(
    "line", [{"kind": "charset", "body_hex": "zz"}, {"kind": "other", "html": ""}, {"html": 5}, {"kind": 7}]
)
def test_documents_that_can_not_be_answered(recrawl: Recrawl, line: dict[str, Any]) -> None:
    assert recrawl("try", "links", stdin=json.dumps(line).encode()) == 1
    assert "error" in recrawl.json_lines()[0]


def test_one_url_from_arguments(recrawl: Recrawl) -> None:
    assert recrawl("try", "url", "HTTP://Example.org:80/a/../b?b=1&a=2#x", "--json") == 0
    answer = recrawl.json()
    assert answer["canonical"] == "http://example.org/b?a=2&b=1"
    assert answer["request_form"] == "http://example.org/b?b=1&a=2"
    assert isinstance(answer["url_id"], str)
    assert recrawl("try", "url", "http://example.org", "--same-as", "http://example.org/#x") == 0
    assert "same: yes" in recrawl.out
    assert recrawl("try", "url", "../c", "--base", "http://example.org/a/b", "--json") == 0
    assert recrawl.json()["href"] == "http://example.org/c"
    assert recrawl("try", "url", "http://example.org/", "--rules", "none_such") == 2


def test_a_robots_file(recrawl: Recrawl, tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text("User-agent: recrawl\nDisallow: /a\nCrawl-delay: 3\n", encoding="utf-8")
    assert recrawl("try", "robots", str(file), "http://example.org/ab") == 0
    assert "allowed: no\nrule: Disallow: /a" in recrawl.out
    assert recrawl("try", "robots", str(file), "--json") == 0
    assert recrawl.json()["delay"] == 3
    assert recrawl("try", "robots", str(tmp_path / "absent")) == 2


def test_a_document(recrawl: Recrawl, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    text = "Ein Absatz, der lang genug ist, um als Text der Seite zu gelten: Größe, Maß und Übermut."
    file.write_bytes(
        f"<meta charset=iso-8859-1><title>Über</title><base href=/x/><p>{text}<p><a href=y>z</a>".encode("latin-1")
    )
    assert recrawl("try", "links", str(file), "--url", "http://example.org/", "--json") == 0
    assert recrawl.json()["links"] == [["a", "href", "http://example.org/x/y"]]
    assert recrawl("try", "text", str(file), "--json") == 0
    answer = recrawl.json()
    assert (answer["encoding"], answer["title"]) == ("windows-1252", "Über")
    assert "Größe" in answer["text"]
