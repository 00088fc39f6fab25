"""The inbox (rule R7): what people decide comes through whole, in order, whatever else lies there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.config.model import Storage
from recrawl.errors import UsageError
from recrawl.inbox import (
    InboxReader,
    add_event,
    add_seed_lines,
    new_event,
    read_events,
    read_seed_lines,
    read_stop,
    request_stop,
)
from recrawl.rounds import INBOX_FOLDER
from recrawl.storage import Store
from recrawl.tables.vocabulary import OverrideKind

AT = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
ROUND = "20261130T030000.000000Z"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Storage(root=str(tmp_path)))


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(moments, texts, st.sampled_from(OverrideKind), texts, texts, st.none() | texts, st.none() | moments),
        max_size=5,
    )
)
def test_events_come_back_as_they_were_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[datetime, str, OverrideKind, str, str, str | None, datetime | None]],
) -> None:
    store = Store(Storage(root=str(tmp_path_factory.mktemp("inbox"))))
    made = [new_event(*event) for event in events]
    for event in made:
        add_event(store, event)
    assert read_events(store) == sorted(made, key=lambda event: (event.at, event.event_id))


def test_no_inbox_is_an_empty_inbox(store: Store) -> None:
    assert read_events(store) == []
    assert read_seed_lines(store) == []


def test_file_names_tell_when_and_what(store: Store) -> None:
    add_event(store, new_event(AT, "ann", OverrideKind.BLOCK, "example.org", "spam"))
    (name,) = store.names(INBOX_FOLDER)
    assert name.startswith(f"{INBOX_FOLDER}/20261130T030000.000000Z-block-")
    assert name.endswith(".json")


def test_an_event_is_never_overwritten(store: Store) -> None:
    event = new_event(AT, "ann", OverrideKind.BLOCK, "example.org", "spam")
    add_event(store, event)
    with pytest.raises(UsageError):
        add_event(store, event)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"at": 3}', b'{"at": "x", "who": "a", "kind": "block"}', b"\xff\xfe",
     b'{"at": "2026-11-30T03:00:00", "who": "a", "kind": "shout", "subject": "x", "reason": ""}',
     b'{"at": "2026-11-30T03:00:00", "who": "a", "kind": "seed", "lines": 3}'],
)  # fmt: skip
def test_a_file_that_is_no_event_is_reported_and_stops_nothing(store: Store, content: bytes) -> None:
    good = new_event(AT, "ann", OverrideKind.BLOCK, "example.org", "spam")
    add_event(store, good)
    store.write_bytes(f"{INBOX_FOLDER}/20261130T020000.000000Z-block-bad.json", content)
    inbox = InboxReader(store).read()
    assert inbox.events == (good,)
    assert len(inbox.problems) == 1
    assert "20261130T020000.000000Z-block-bad.json" in inbox.problems[0]


def test_a_reader_reads_each_file_once(store: Store) -> None:
    reader = InboxReader(store)
    first = new_event(AT, "ann", OverrideKind.BLOCK, "example.org", "spam")
    add_event(store, first)
    assert reader.read().events == (first,)
    # Files never change; were this one read again, it would no longer be an event.
    (name,) = store.names(INBOX_FOLDER)
    store.write_bytes(name, b"changed")
    second = new_event(AT + timedelta(seconds=1), "bob", OverrideKind.QUOTA, "example.com", "small", "5")
    add_event(store, second)
    assert reader.read().events == (first, second)


def test_seed_lines_keep_their_order(store: Store) -> None:
    add_seed_lines(store, ["https://b.example/ scope=host", "https://a.example/"], "ann", AT)
    add_seed_lines(store, ["https://c.example/"], "bob", AT - timedelta(hours=1))
    lines = read_seed_lines(store)
    assert [(line.who, line.line) for line in lines] == [
        ("bob", "https://c.example/"),
        ("ann", "https://b.example/ scope=host"),
        ("ann", "https://a.example/"),
    ]
    assert read_events(store) == []


def test_the_first_stop_request_counts(store: Store) -> None:
    assert read_stop(store, ROUND) is None
    assert request_stop(store, ROUND, "ann", "the site complains", AT)
    assert not request_stop(store, ROUND, "bob", "", AT + timedelta(seconds=5))
    request = read_stop(store, ROUND)
    assert request is not None
    assert (request.who, request.reason, request.at) == ("ann", "the site complains", AT)


def test_a_damaged_stop_request_still_stops(store: Store) -> None:
    store.write_bytes(f"control/rounds/{ROUND}/stop", b"")
    assert read_stop(store, ROUND) is not None
