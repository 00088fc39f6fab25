"""Seed files as people leave them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.seed.seed_files import MAX_LINE_BYTES, SeedLine, parse_seed_file
from recrawl.tables.vocabulary import RejectFilter, Scope


def lower(url: str) -> str | None:
    """A canonicaliser small enough to see through: lower case, no fragment; ftp is not taken."""
    if url.startswith("ftp:"):
        return None
    if "%zz" in url:
        raise ValueError("a bad escape")
    return url.lower().split("#")[0]


def only(text: str | bytes) -> SeedLine:
    parsed = parse_seed_file(text.encode() if isinstance(text, str) else text, lower)
    assert not parsed.problems
    (seed,) = parsed.accepted
    return seed


def reason(text: str | bytes) -> str:
    parsed = parse_seed_file(text.encode() if isinstance(text, str) else text, lower)
    assert not parsed.accepted
    (problem,) = parsed.problems
    return problem.reason


def test_a_line_with_everything() -> None:
    seed = only("http://A.org/#x \t scope=Host tags=news,,daily,news credit=2.5 priority=3 # why\n")
    assert seed == SeedLine(
        line_number=1,
        url="http://A.org/#x",
        canonical_url="http://a.org/",
        scope=Scope.HOST,
        tags=("news", "daily"),
        credit=2.5,
        priority=3.0,
        note="",
    )


def test_a_bare_line_leaves_all_to_the_defaults() -> None:
    seed = only("http://a.org/")
    assert (seed.scope, seed.tags, seed.credit, seed.priority) == (None, (), None, None)


def test_comments_and_empty_lines_are_nothing() -> None:
    parsed = parse_seed_file(b"# one\n\n   \t\n  # two\n", lower)
    assert (parsed.accepted, parsed.problems) == ((), ())


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("example.org/path", "https://example.org/path"),
        ("example.org", "https://example.org"),
        ("//example.org/x", "https://example.org/x"),
        ("localhost:8000/x", "https://localhost:8000/x"),
        ("staging:8000/x", "https://staging:8000/x"),
        ("[::1]:8000/", "https://[::1]:8000/"),
        ("127.0.0.1/", "https://127.0.0.1/"),
    ],
)
def test_a_missing_scheme_is_added_and_noted(line: str, url: str) -> None:
    seed = only(line)
    assert (seed.url, seed.note) == (url, "had no scheme; https was added")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("hello", "not a URL"),
        ("/path/only", "not a URL"),
        ("user@", "not a URL"),
        ("ftp://a.org/", "not a URL"),
        ("http://a.org/%zz", "a bad escape"),
        ("http://a.org/ b", "must not contain blanks"),
        ("http://a.org/ scop=host", "nearest is 'scope'"),
        ("http://a.org/ credits=1", "nearest is 'credit'"),
        ("http://a.org/ scope=", "no value"),
        ("http://a.org/ scope=host scope=page", "twice"),
        ("http://a.org/ scope=planet", "none of page, prefix, host, domain, anywhere"),
        ("http://a.org/ credit=much", "not a number"),
        ("http://a.org/ credit=nan", "not between"),
        ("http://a.org/ credit=-1", "not between"),
        ("http://a.org/ priority=1e9", "not between 0 and 1000"),
        ("http://a.org/\0", "NUL"),
        (b"http://a.org/\xff", "not UTF-8 (byte 14)"),
        (b"http://a.org/" + b"x" * MAX_LINE_BYTES, "8,205 bytes"),
    ],
)
def test_a_bad_line_is_explained(line: str | bytes, words: str) -> None:
    assert words in reason(line)


def test_a_duplicate_names_both_lines() -> None:
    parsed = parse_seed_file(b"http://a.org/\n\nhttp://A.org/#top\n", lower)
    (problem,) = parsed.problems
    assert [seed.line_number for seed in parsed.accepted] == [1]
    assert (problem.line_number, problem.filter) == (3, RejectFilter.DUPLICATE_SEED)
    assert problem.reason == "the same URL as line 1: http://a.org/"


def test_a_duplicate_of_another_file_names_it() -> None:
    parsed = parse_seed_file(b"http://a.org/", lower, known={"http://a.org/": "first.txt, line 9"})
    assert "first.txt, line 9" in parsed.problems[0].reason


def test_a_line_that_was_turned_away_is_no_first() -> None:
    parsed = parse_seed_file(b"http://a.org/ scope=planet\nhttp://a.org/", lower)
    assert [seed.line_number for seed in parsed.accepted] == [2]


def test_filters_tell_bad_lines_from_bad_urls() -> None:
    parsed = parse_seed_file(b"http://a.org/ x\nftp://a.org/", lower)
    assert [problem.filter for problem in parsed.problems] == [RejectFilter.BAD_SEED, RejectFilter.INVALID]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfhttp://a.org/\r\nhttp://b.org/\r\n",
        b"http://a.org/\rhttp://b.org/",
        "http://a.org/\nhttp://b.org/".encode("utf-16"),
        b"\xfe\xff" + "http://a.org/\nhttp://b.org/".encode("utf-16-be"),
    ],
    ids=["BOM and CRLF", "CR", "UTF-16 with BOM", "UTF-16BE"],
)
def test_any_editor_will_do(data: bytes) -> None:
    parsed = parse_seed_file(data, lower)
    assert [(s.line_number, s.url) for s in parsed.accepted] == [(1, "http://a.org/"), (2, "http://b.org/")]


def test_shown_text_is_short_and_readable() -> None:
    (problem,) = parse_seed_file(b"\xff\0" + b"y" * 100_000, lower).problems
    assert problem.text.startswith("\\xff\\0y")
    assert len(problem.text) == 200


@given(st.binary(max_size=400))
def test_no_bytes_raise_and_no_line_vanishes(data: bytes) -> None:
    parsed = parse_seed_file(data, lower)
    numbers = [seed.line_number for seed in parsed.accepted] + [problem.line_number for problem in parsed.problems]
    assert len(set(numbers)) == len(numbers)
    assert json.loads(json.dumps(parsed.as_json()))["accepted"] is not None


@given(st.lists(st.sampled_from(["http://a.org/", "b.org", "junk", "# c", "", "http://c.org/ scope=page"]), max_size=9))
def test_every_line_is_taken_or_explained(lines: list[str]) -> None:
    parsed = parse_seed_file("\n".join(lines).encode(), lower)
    said = [line for line in lines if line and not line.startswith("#")]
    assert len(parsed.accepted) + len(parsed.problems) == len(said)
