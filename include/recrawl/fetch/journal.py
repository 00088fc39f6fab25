"""The journal: what a fetch task did, one JSON line a table row, beside each WARC part (rule R4).

A journal's presence in the round's WARC folder means that its part is published. `fetches`,
`host_visits`, `robots`, `skips` and `warc_files` are built from the journals and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recrawl.rounds import warc_folder
from recrawl.storage import Store

Row = dict[str, Any]

#: One encoder for all lines: to make it costs as much as a short line.
_encoded = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

WARC_SUFFIX = ".warc.gz"
CDXJ_SUFFIX = ".cdxj"
JOURNAL_SUFFIX = ".journal.jsonl"

_STEM = re.compile(r"recrawl-(?P<round>[0-9TZ.]+)-p(?P<partition>\d{5})-a(?P<attempt>\d{2,})-(?P<serial>\d{5,})")


class PartName(NamedTuple):
    """The name that WARC, CDXJ and journal of a part share."""

    round_id: str
    partition: int
    attempt: int
    serial: int

    @property
    def stem(self) -> str:
        """The file name without its ending."""
        return f"recrawl-{self.round_id}-p{self.partition:05d}-a{self.attempt:02d}-{self.serial:05d}"

    def stored(self, suffix: str) -> str:
        """The published name, relative to the storage root."""
        return f"{warc_folder(self.round_id)}/{self.stem}{suffix}"

    @classmethod
    def parse(cls, file_name: str) -> PartName | None:
        """The part of a file name with or without folder and ending; None for a foreign file."""
        found = _STEM.match(file_name.rpartition("/")[2])
        if found is None:
            return None
        return cls(found["round"], int(found["partition"]), int(found["attempt"]), int(found["serial"]))


def time_text(moment: datetime) -> str:
    """A time as journals hold it: ISO 8601, UTC, microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """The time of `time_text`."""
    return datetime.fromisoformat(text)


def encode_line(table: str, row: Mapping[str, Any]) -> bytes:
    """One journal line."""
    return _encoded({"table": table, "row": row}).encode("ascii") + b"\n"


def decode_lines(data: bytes) -> Iterator[tuple[str, Row]]:
    """(table, row) of each whole line; a torn last line is left out."""
    for line in data.splitlines(keepends=True):
        if line.endswith(b"\n"):
            entry = json.loads(line)
            yield entry["table"], entry["row"]


def journal_names(store: Store, round_id: str, partition: int | None = None) -> list[str]:
    """The published journals of a round, or of one of its partitions, in order of attempt and serial."""
    found = []
    for name in store.names(warc_folder(round_id)):
        part = PartName.parse(name) if name.endswith(JOURNAL_SUFFIX) else None
        if part is not None and part.round_id == round_id and partition in (None, part.partition):
            found.append((part, name))
    return [name for _, name in sorted(found)]


def read_journal(store: Store, name: str) -> Iterator[tuple[str, Row]]:
    """(table, row) of a published journal."""
    yield from decode_lines(store.read_bytes(name) or b"")


def load_journal_rows(store: Store, round_id: str, table: str) -> Iterator[Row]:
    """All rows of one table in the published journals of a round."""
    for name in journal_names(store, round_id):
        for row_table, row in read_journal(store, name):
            if row_table == table:
                yield row


class HostLeft(NamedTuple):
    """How an earlier attempt left a host: UTC times, streak of faults."""

    last_access_at: datetime | None
    error_streak: int


class PartitionHistory:
    """What earlier attempts of a partition published: rebuilt from its journals.

    Attributes:
        settled: ids of planned URLs with a final row or a skip.
        skipped: of them, those with a skip.
        fetched: ids of URLs that were asked for, planned or reached by a redirect.
        pending_hops: planned id → its last row, where that row is not final.
        tries: planned id → greatest attempt in its rows.
        hosts: host → how it was left.
    """

    def __init__(self) -> None:
        self.settled: set[int] = set()
        self.skipped: set[int] = set()
        self.fetched: set[int] = set()
        self.pending_hops: dict[int, Row] = {}
        self.tries: dict[int, int] = {}
        self.hosts: dict[str, HostLeft] = {}

    @classmethod
    def load(cls, store: Store, round_id: str, partition: int, on_robots: Callable[[Row], None]) -> PartitionHistory:
        """Read the published journals of a partition; the rows of `robots`, oldest first, go to `on_robots`."""
        history = cls()
        for name in journal_names(store, round_id, partition):
            history.add(read_journal(store, name), on_robots)
        return history

    def add(self, lines: Iterable[tuple[str, Row]], on_robots: Callable[[Row], None]) -> None:
        """Take in the rows of one journal."""
        for table, row in lines:
            if table == "fetches":
                self._add_fetch(row)
            elif table == "skips":
                self.settled.add(row["url_id"])
                self.skipped.add(row["url_id"])
                self.pending_hops.pop(row["url_id"], None)
            elif table == "robots":
                on_robots(row)
            elif table == "host_visits":
                at = row["last_access_at"]
                self.hosts[row["host"]] = HostLeft(parse_time(at) if at else None, row["error_streak"])

    def _add_fetch(self, row: Row) -> None:
        planned_id = row["planned_url_id"]
        self.fetched.add(row["url_id"])
        self.tries[planned_id] = max(self.tries.get(planned_id, 0), row["attempt"])
        if row["final"]:
            self.settled.add(planned_id)
            self.pending_hops.pop(planned_id, None)
        else:
            self.pending_hops[planned_id] = row
