"""What people decide, as append-only events: one small JSON file each (rule R7).

The step `seed` folds them into `overrides` and `seeds`; running fetch tasks look every 10 s;
undo does not undo them. A file that can't be read is reported and never stops a reader.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from recrawl.errors import UsageError
from recrawl.rounds import INBOX_FOLDER
from recrawl.storage import Store
from recrawl.tables.vocabulary import OverrideKind

_SEED_KIND = "seed"


@dataclass(frozen=True)
class InboxEvent:
    """One decision.

    Attributes:
        event_id: the file's name without its ending; sorts by time.
        at: when it was decided.
        who: who decided.
        kind: the decision; `lift` ends the decision that `value` names.
        subject: host, domain, URL prefix or URL.
        value: number or text of the decision, None where it has none.
        reason: why, in a person's words.
        until: when it ends; None: until it is lifted.
    """

    event_id: str
    at: datetime
    who: str
    kind: OverrideKind
    subject: str
    value: str | None = None
    reason: str = ""
    until: datetime | None = None


@dataclass(frozen=True)
class SeedLine:
    """One line that was added to the root set, in the form of a seed file."""

    event_id: str
    at: datetime
    who: str
    line: str


@dataclass(frozen=True)
class StopRequest:
    """Somebody wants a round's fetch drained."""

    at: datetime
    who: str
    reason: str


@dataclass(frozen=True)
class Inbox:
    """All that lies in the inbox.

    Attributes:
        events: decisions by (at, event_id).
        seed_lines: added seeds by (at, event_id), lines in their order.
        problems: a sentence for each file that can't be used.
    """

    events: tuple[InboxEvent, ...] = ()
    seed_lines: tuple[SeedLine, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass
class InboxReader:
    """Reads the inbox again and again; each file once, because files never change."""

    store: Store
    _files: dict[str, InboxEvent | list[SeedLine] | str] = field(default_factory=dict)

    def read(self) -> Inbox:
        """The inbox as it is now: one listing, and one small read for each file not seen before."""
        names = [name for name in self.store.names(INBOX_FOLDER) if name.endswith(".json")]
        for name in names:
            if name not in self._files:
                data = self.store.read_bytes(name)
                if data is not None:
                    self._files[name] = _parsed(name, data)
        contents = [self._files[name] for name in names if name in self._files]
        events = [item for item in contents if isinstance(item, InboxEvent)]
        lines = [line for item in contents if isinstance(item, list) for line in item]
        return Inbox(
            events=tuple(sorted(events, key=lambda event: (event.at, event.event_id))),
            seed_lines=tuple(sorted(lines, key=lambda line: (line.at, line.event_id))),
            problems=tuple(item for item in contents if isinstance(item, str)),
        )


def read_events(store: Store) -> list[InboxEvent]:
    """All decisions, by (at, event_id); unreadable files are left out (`InboxReader` names them)."""
    return list(InboxReader(store).read().events)


def read_seed_lines(store: Store) -> list[SeedLine]:
    """All added seed lines, by (at, event_id)."""
    return list(InboxReader(store).read().seed_lines)


def new_event(
    at: datetime,
    who: str,
    kind: OverrideKind,
    subject: str,
    reason: str,
    value: str | None = None,
    until: datetime | None = None,
) -> InboxEvent:
    """A decision with an id of its own."""
    return InboxEvent(_event_id(at, kind.value), at.astimezone(UTC), who, kind, subject, value, reason, until)


def add_event(store: Store, event: InboxEvent) -> None:
    """Put a decision into the inbox, whole or not at all.

    Raises:
        UsageError: an event of that id is there already.
        StorageError: the root can't be written.
    """
    _add(
        store,
        event.event_id,
        {
            "at": event.at.isoformat(),
            "who": event.who,
            "kind": event.kind.value,
            "subject": event.subject,
            "value": event.value,
            "reason": event.reason,
            "until": event.until.isoformat() if event.until else None,
        },
    )


def add_seed_lines(store: Store, lines: Sequence[str], who: str, at: datetime) -> str:
    """Put lines in the form of a seed file into the inbox; gives the event's id."""
    event_id = _event_id(at, _SEED_KIND)
    _add(store, event_id, {"at": at.isoformat(), "who": who, "kind": _SEED_KIND, "lines": list(lines)})
    return event_id


def request_stop(store: Store, round_id: str, who: str, reason: str, at: datetime) -> bool:
    """Ask a round's running fetch to drain; whether this is the round's first request."""
    values = {"at": at.isoformat(), "who": who, "reason": reason}
    return store.create(_stop_name(round_id), json.dumps(values).encode())


def read_stop(store: Store, round_id: str) -> StopRequest | None:
    """The round's stop request, if there is one; a file that can't be read still stops."""
    data = store.read_bytes(_stop_name(round_id))
    if data is None:
        return None
    try:
        values = json.loads(data)
        return StopRequest(_moment(values["at"]), str(values["who"]), str(values["reason"]))
    except (ValueError, KeyError, TypeError):
        return StopRequest(datetime.fromtimestamp(0, UTC), "unknown", "the request can't be read")


def _stop_name(round_id: str) -> str:
    return f"control/rounds/{round_id}/stop"


def _event_id(at: datetime, kind: str) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{kind}-{secrets.token_hex(4)}"


def _add(store: Store, event_id: str, values: dict[str, object]) -> None:
    if not store.create(f"{INBOX_FOLDER}/{event_id}.json", json.dumps(values, ensure_ascii=False).encode()):
        raise UsageError(f"The inbox holds an event {event_id} already.")


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _parsed(name: str, data: bytes) -> InboxEvent | list[SeedLine] | str:
    event_id = name.rpartition("/")[2].removesuffix(".json")
    try:
        values = json.loads(data)
        at, who, kind = _moment(values["at"]), str(values["who"]), values["kind"]
        if kind == _SEED_KIND:
            return [SeedLine(event_id, at, who, str(line)) for line in values["lines"]]
        until, value = values.get("until"), values.get("value")
        return InboxEvent(
            event_id=event_id,
            at=at,
            who=who,
            kind=OverrideKind(kind),
            subject=str(values["subject"]),
            value=None if value is None else str(value),
            reason=str(values["reason"]),
            until=_moment(until) if until else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{name} is no inbox event and is left aside ({type(error).__name__}: {error})."
