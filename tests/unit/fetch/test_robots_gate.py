"""robots.txt files at hand: what they say, how long they hold, what stands in for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from recrawl.config.model import Configuration
from recrawl.fetch.robots_gate import RobotsFetch, RobotsGate, StoredRobots
from recrawl.fetch.spill import SpillFile
from recrawl.tables.vocabulary import Outcome, RobotsOutcome

NOW = datetime(2026, 11, 30, 3, 0, 0, tzinfo=UTC)
KEY = ("https", "a.test")
RULES = b"User-agent: *\nDisallow: /private\nCrawl-delay: 3\n"


#: Scratch files of one test, closed at its end.
_spills: list[SpillFile] = []


@pytest.fixture(autouse=True)
def closes_scratch_files() -> Iterator[None]:
    yield
    while _spills:
        _spills.pop().close()


def gate(
    stored: dict[tuple[str, str], StoredRobots] | None = None, configuration: Configuration | None = None
) -> RobotsGate:
    _spills.append(SpillFile())
    robots = RobotsGate(configuration or Configuration(), _spills[-1])
    for key, file in (stored or {}).items():
        robots.learn(key, file)
    return robots


def stored(age: timedelta, expires_in: timedelta, outcome: RobotsOutcome = RobotsOutcome.RULES) -> StoredRobots:
    body = RULES.decode() if outcome is not RobotsOutcome.ALLOW_ALL else None
    return StoredRobots(outcome, body, None, NOW + expires_in, NOW - age)


def test_rules_decide_with_digest_and_line() -> None:
    robots = gate()
    assert not robots.is_known(KEY, NOW)
    row = robots.accept(KEY, RobotsFetch(200, RULES, NOW), "r")
    assert robots.is_known(KEY, NOW)
    denied = robots.judge_url(KEY, "https://a.test/private/x", NOW)
    assert (denied.outcome, denied.rule) == (Outcome.ROBOTS_DENIED, "Disallow: /private")
    assert denied.digest == row["body_digest"]
    assert robots.judge_url(KEY, "https://a.test/x", NOW)[:1] == (None,)
    assert robots.crawl_delay_seconds(KEY) == row["crawl_delay_seconds"] == 3.0
    assert row["robots_outcome"] == "rules"
    assert row["expires_at"] == "2026-12-01T03:00:00.000000Z"


def test_no_file_allows_everything() -> None:
    robots = gate()
    row = robots.accept(KEY, RobotsFetch(404, b"", NOW), "r")
    assert row["robots_outcome"] == "allow_all"
    assert row["body"] is None
    assert robots.judge_url(KEY, "https://a.test/private", NOW).outcome is None


@pytest.mark.parametrize(
    ("fetch", "outcome"),
    [
        (RobotsFetch(503, b"", NOW), Outcome.ROBOTS_UNAVAILABLE),
        (RobotsFetch(429, b"", NOW), Outcome.ROBOTS_UNAVAILABLE),
        (RobotsFetch(None, b"", NOW, Outcome.TIMEOUT, "late"), Outcome.ROBOTS_UNAVAILABLE),
        (RobotsFetch(None, b"", NOW, Outcome.DNS_ERROR, "no such name"), Outcome.DNS_ERROR),
        (RobotsFetch(None, b"", NOW, Outcome.ADDRESS_REFUSED, "private"), Outcome.ADDRESS_REFUSED),
    ],
)
def test_an_unreachable_file_forbids_everything_for_now(fetch: RobotsFetch, outcome: Outcome) -> None:
    robots = gate()
    row = robots.accept(KEY, fetch, "r")
    assert row["robots_outcome"] == "unreachable"
    assert robots.judge_url(KEY, "https://a.test/", NOW).outcome is outcome
    assert robots.is_known(KEY, NOW + timedelta(minutes=59))
    assert not robots.is_known(KEY, NOW + timedelta(minutes=61))


@pytest.mark.parametrize(("days", "usable"), [(29, True), (31, False)])
def test_a_stale_file_stands_in_for_thirty_days(days: int, usable: bool) -> None:
    robots = gate({KEY: stored(timedelta(days=days), timedelta(seconds=-1))})
    assert not robots.is_known(KEY, NOW)
    robots.accept(KEY, RobotsFetch(500, b"", NOW), "r")
    verdict = robots.judge_url(KEY, "https://a.test/x", NOW)
    assert verdict.outcome is (None if usable else Outcome.ROBOTS_UNAVAILABLE)
    assert robots.judge_url(KEY, "https://a.test/private", NOW).outcome is (
        Outcome.ROBOTS_DENIED if usable else Outcome.ROBOTS_UNAVAILABLE
    )


def test_stored_files_are_used_until_they_expire() -> None:
    robots = gate(
        {
            KEY: stored(timedelta(hours=1), timedelta(hours=23)),
            ("http", "b.test"): stored(timedelta(hours=1), timedelta(hours=1), RobotsOutcome.ALLOW_ALL),
            ("http", "c.test"): stored(timedelta(hours=1), timedelta(minutes=1), RobotsOutcome.UNREACHABLE),
        }
    )
    assert robots.judge_url(KEY, "https://a.test/private", NOW).outcome is Outcome.ROBOTS_DENIED
    assert robots.judge_url(("http", "b.test"), "http://b.test/private", NOW).outcome is None
    # The last try failed, but its rules are young enough.
    assert robots.judge_url(("http", "c.test"), "http://c.test/private", NOW).outcome is Outcome.ROBOTS_DENIED
    assert not robots.is_known(("http", "a.test"), NOW)  # per scheme


def test_a_row_restores_what_it_was_made_from() -> None:
    first, second = gate(), gate()
    long_rules = RULES + b"Disallow: /" + b"x" * 10_000 + b"\n"
    second.restore(first.accept(KEY, RobotsFetch(200, long_rules, NOW), "r"))
    for url in ("https://a.test/private", "https://a.test/x"):
        assert second.judge_url(KEY, url, NOW) == first.judge_url(KEY, url, NOW)
    second.restore(first.accept(KEY, RobotsFetch(500, b"", NOW), "r"))
    assert second.judge_url(KEY, "https://a.test/private", NOW).outcome is Outcome.ROBOTS_DENIED


def test_a_zero_lifetime_does_not_ask_without_end() -> None:
    configuration = Configuration.model_validate({"fetch": {"robots_ttl_seconds": 0, "robots_error_ttl_seconds": 0}})
    robots = gate(configuration=configuration)
    robots.accept(KEY, RobotsFetch(200, RULES, NOW), "r")
    assert robots.is_known(KEY, NOW + timedelta(seconds=30))


def test_what_the_round_found_out_outweighs_what_was_known_before() -> None:
    old = stored(timedelta(days=2), timedelta(seconds=-1))
    fetched, failed = gate(), gate()
    fetched.restore(gate().accept(KEY, RobotsFetch(404, b"", NOW), "r"))
    fetched.learn(KEY, old)
    assert fetched.judge_url(KEY, "https://a.test/private", NOW).outcome is None
    failed.restore(gate().accept(KEY, RobotsFetch(503, b"", NOW), "r"))
    failed.learn(KEY, old)  # unreachable in this round, but its old rules stand in
    assert failed.is_known(KEY, NOW)
    assert failed.can_stand_in(KEY, NOW)
    assert failed.judge_url(KEY, "https://a.test/private", NOW).outcome is Outcome.ROBOTS_DENIED
    assert failed.judge_url(KEY, "https://a.test/", NOW).outcome is None


def test_parsed_rules_are_bounded_and_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.fetch.robots_gate._MAX_PARSED_BYTES", 1_000)
    robots = gate()
    keys = [("https", f"h{number}.test") for number in range(50)]
    for number, key in enumerate(keys):
        robots.accept(key, RobotsFetch(200, b"User-agent: *\nDisallow: /%d/\n" % number + b"#" * 90, NOW), "r")
    for _ in range(2):
        for number, key in enumerate(keys):
            verdict = robots.judge_url(key, f"https://{key[1]}/{number}/", NOW)
            assert (verdict.outcome, verdict.rule) == (Outcome.ROBOTS_DENIED, f"Disallow: /{number}/")
    assert len(robots._parsed) < 10
