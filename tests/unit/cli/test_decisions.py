"""What people decide, and how they see it."""

from __future__ import annotations

import pytest

from recrawl.inbox import read_events, read_stop
from recrawl.rounds import INBOX_FOLDER
from tests.unit.asking.small_crawl import THIRD, SmallCrawl
from tests.unit.cli.conftest import Recrawl


@pytest.mark.parametrize(
    ("arguments", "kind", "subject", "value"),
    [
        (["block", "Example.ORG"], "block", "example.org", None),
        (["block", "example.org:443"], "block", "example.org", None),
        (["block", "https://example.org/x"], "block", "example.org", None),
        (["block", "bücher.example:8080"], "block", "xn--bcher-kva.example:8080", None),
        (["quota", "example.org", "5"], "quota", "example.org", "5"),
        (["priority", "example.org", "2.5"], "priority", "example.org", "2.5"),
        (["priority", "HTTPS://example.org/a", "0"], "priority", "https://example.org/a", "0"),
        (["exclude", "https://Example.org/a?sid"], "exclude", "https://example.org/a?sid", None),
    ],
)
def test_a_decision_goes_into_the_inbox(
    recrawl: Recrawl, crawl: SmallCrawl, arguments: list[str], kind: str, subject: str, value: str | None
) -> None:
    assert recrawl(*arguments, "--reason", "why", "--until", "7d") == 0
    (event,) = read_events(crawl.store)
    assert (event.kind.value, event.subject, event.value) == (kind, subject, value)
    assert (event.who, event.reason) == ("ann", "why")
    assert event.until is not None
    assert recrawl("decisions", "--json") == 0
    (shown,) = recrawl.json()["decisions"]
    assert (shown["kind"], shown["subject"]) == (kind, subject)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["block", "exa mple", "--reason", "x"], "is no host"),
        (["block", "example.org/path", "--reason", "x"], "is no host"),
        (["quota", "example.org", "many", "--reason", "x"], "whole number"),
        (["priority", "example.org", "nan", "--reason", "x"], "finite factor"),
        (["exclude", "example.org/private", "--reason", "x"], "is no URL prefix"),
        (["block", "example.org", "--reason", "x", "--until", "soon"], "is not a time"),
        (["block", "example.org", "--reason", "x", "--until", "2020-01-01"], "is not in the future"),
        (["lift", "block", "example.org", "--reason", "x"], "No block of example.org is in force"),
        (["block", "example.org"], "--reason"),
    ],
)
def test_what_can_not_be_decided_is_refused(recrawl: Recrawl, arguments: list[str], said: str) -> None:
    assert recrawl(*arguments) == 2
    assert said in recrawl.err


def test_a_decision_is_lifted(recrawl: Recrawl) -> None:
    assert recrawl("block", "example.org", "--reason", "spam", "--who", "bob") == 0
    assert recrawl("lift", "block", "example.org", "--reason", "mended") == 0
    assert recrawl("decisions") == 0
    assert "No decision is in force" in recrawl.out
    assert recrawl("decisions", "--all", "--json") == 0
    assert [(e["kind"], e["who"]) for e in recrawl.json()["decisions"]] == [("block", "bob"), ("lift", "ann")]


def test_a_damaged_file_is_told_and_hides_nothing(recrawl: Recrawl, crawl: SmallCrawl) -> None:
    assert recrawl("block", "example.org", "--reason", "spam") == 0
    crawl.store.write_bytes(f"{INBOX_FOLDER}/bad.json", b"{")
    assert recrawl("decisions") == 0
    assert "spam" in recrawl.out
    assert "bad.json" in recrawl.err


def test_stop_asks_the_open_round(recrawl: Recrawl, crawl: SmallCrawl) -> None:
    assert recrawl("stop", "--reason", "enough") == 0
    request = read_stop(crawl.store, THIRD)
    assert request is not None
    assert request.reason == "enough"
    assert recrawl("stop") == 0
    assert "by ann" in recrawl.out


def test_stop_without_an_open_round(recrawl: Recrawl) -> None:
    assert recrawl("stop") == 1
    assert "No round is open" in recrawl.err
