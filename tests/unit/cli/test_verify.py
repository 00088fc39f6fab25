"""`recrawl verify`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.asking.published import PublishedRound, published_round
from tests.unit.asking.small_crawl import FIRST, SECOND, SmallCrawl
from tests.unit.cli.conftest import Recrawl


@pytest.fixture
def rounds(recrawl: Recrawl) -> tuple[PublishedRound, PublishedRound]:
    """Two closed rounds, a WARC file each."""
    crawl = SmallCrawl(recrawl.root)
    return published_round(crawl), published_round(crawl, SECOND, 2)


@pytest.mark.usefixtures("rounds")
@pytest.mark.parametrize("arguments", [(), ("--all",), ("--sample", "2"), ("--round", "1", "--sample", "1")])
def test_all_as_published(recrawl: Recrawl, arguments: tuple[str, ...]) -> None:
    assert recrawl("verify", *arguments) == 0
    files = 1 if "--round" in arguments else 2
    assert recrawl.out.startswith(f"{files} of {files} WARC files read: {12 * files} records, ")
    assert recrawl.out.endswith("all as published.\n")


def test_findings_are_sentences_and_status_1(recrawl: Recrawl, rounds: tuple[PublishedRound, PublishedRound]) -> None:
    rounds[1].cdxj.unlink()
    assert recrawl("verify", "--all") == 1
    assert recrawl.out == f"{rounds[1].warc_file}: its CDXJ index is missing.\n"
    assert "Findings: 1." in recrawl.err
    assert recrawl("verify", "--round", "last") == 1
    assert recrawl("verify", "--round", FIRST) == 0
    assert recrawl("verify", "--json") == 1
    answer = recrawl.json()
    assert (answer["files_known"], answer["files"], answer["records"]) == (2, 2, 24)
    (finding,) = answer["findings"]
    assert (finding["round_id"], finding["warc_file"]) == (SECOND, rounds[1].warc_file)


def test_before_the_first_round(recrawl: Recrawl, tmp_path: Path) -> None:
    assert recrawl("verify", "--root", str(tmp_path / "new")) == 0
    assert recrawl.out == "No WARC file is published yet.\n"
    assert recrawl("verify", "--root", str(tmp_path / "new"), "--round", "last") == 2


@pytest.mark.parametrize("arguments", [("--sample", "0"), ("--sample", "1", "--all"), ("--round", "9")])
@pytest.mark.usefixtures("rounds")
def test_what_can_not_be_asked(recrawl: Recrawl, arguments: tuple[str, ...]) -> None:
    assert recrawl("verify", *arguments) == 2
