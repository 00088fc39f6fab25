"""`status`, `explain`, `sql --engine arrow`, `undo` up to its question."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from recrawl.cli.sql import statements
from tests.unit.asking.small_crawl import CAPPED, HOME, THIRD
from tests.unit.cli.conftest import Recrawl

pytestmark = pytest.mark.usefixtures("crawl")


def test_status_for_people_and_programs(recrawl: Recrawl) -> None:
    assert recrawl("status") == 0
    assert "Round 3 is open. Steps done: none. Next or running: seed." in recrawl.out
    assert recrawl("status", "--json", "--rounds", "1") == 0
    status = recrawl.json()
    assert [row["round_id"] for row in status["rounds"]] == [THIRD]
    assert status["live"][0]["current_step"] == "seed"


def test_explain_for_people_and_programs(recrawl: Recrawl) -> None:
    assert recrawl("explain", CAPPED) == 0
    assert "(capacity)" in recrawl.out
    assert recrawl("explain", CAPPED, "--json") == 0
    answer = recrawl.json()
    assert answer["canonical"] == CAPPED
    assert isinstance(answer["url_id"], str)
    assert answer["skips"][0]["url_id"] == answer["url_id"]


def test_sql_for_people_and_programs(recrawl: Recrawl) -> None:
    query = f"SELECT url, url_id FROM crawl.urls WHERE url_id = url_id('{HOME}')"
    assert recrawl("sql", "--engine", "arrow", query) == 0
    assert recrawl.out.splitlines()[-1].startswith(HOME)
    assert recrawl("sql", "--engine", "arrow", "--json", query) == 0
    assert recrawl.json()[0]["url"] == HOME
    assert isinstance(recrawl.json()[0]["url_id"], str)
    assert recrawl("sql", "--engine", "arrow", "--csv", "-", stdin=query.encode()) == 0
    assert next(csv.reader(recrawl.out.splitlines())) == ["url", "url_id"]
    assert recrawl("sql", "--engine", "arrow", "--json", "SELECT versions_at_close AS v FROM rounds LIMIT 1") == 0
    assert recrawl.json() == [{"v": {"urls": 1}}]


def test_sql_at_a_round(recrawl: Recrawl) -> None:
    for at, count in (("1", 2), ("last", 3)):
        assert recrawl("sql", "--engine", "arrow", "--json", "--at", at, "SELECT count(*) AS n FROM urls") == 0
        assert recrawl.json() == [{"n": count}]


def test_statements_from_standard_input(recrawl: Recrawl) -> None:
    script = b"SELECT 1 AS a;\nSELECT nope FROM urls;\nSELECT\n 2 AS a\n"
    assert recrawl("sql", "--engine", "arrow", "--csv", stdin=script) == 2
    assert recrawl.out == "a\n1\na\n2\n"
    assert "nope" in recrawl.err


def test_statements_end_at_their_semicolon() -> None:
    lines = ["SELECT 1;", "", "SELECT", "2 -- ; no", ";", ";", "SELECT 3"]
    assert list(statements(iter(lines))) == ["SELECT 1", "SELECT\n2 -- ; no", "SELECT 3"]
    assert list(statements(iter(["SELECT 1;", "quit", "SELECT 2;"]))) == ["SELECT 1"]


def test_sql_before_the_first_round(recrawl: Recrawl, tmp_path: Path) -> None:
    for engine in ("spark", "arrow"):
        assert recrawl("sql", "--root", str(tmp_path / "new"), "--engine", engine, "SELECT * FROM crawl.urls") == 1
        assert "first round" in recrawl.err


def test_undo_names_the_rounds_and_asks(recrawl: Recrawl) -> None:
    assert recrawl("undo", "--to", "2") == 2
    assert "takes back 2 rounds" in recrawl.err
    assert THIRD in recrawl.out
    assert "Say --yes" in recrawl.err


def test_undo_of_a_round_that_is_not_there(recrawl: Recrawl) -> None:
    assert recrawl("undo", "--to", "9", "--yes") == 2
    assert "names no round" in recrawl.err
