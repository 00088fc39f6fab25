"""WARC parts in the local spool: written, flushed, published whole; and their salvage.

Three files share a name: WARC, CDXJ, journal. They are published in this order, so that a
journal in the round's folder means a whole part. A row reaches the journal only after its WARC
record was flushed, so that a journal line never points at bytes that a kill took away. A fourth
file, in the spool only, tells how far both files belong together: its last line is a mark.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO

from recrawl.clock import Clock
from recrawl.config.model import Configuration, Fetch
from recrawl.errors import WarcError
from recrawl.fetch.journal import (
    CDXJ_SUFFIX,
    JOURNAL_SUFFIX,
    WARC_SUFFIX,
    PartName,
    Row,
    encode_line,
    journal_names,
    time_text,
)
from recrawl.storage import Store
from recrawl.warc.cdxj import write_cdxj
from recrawl.warc.records import Exchange, Lookup, PartSummary, RecordPlace
from recrawl.warc.writer import PartWriter

#: Lines of "WARC bytes, journal bytes", one a flush.
MARKS_SUFFIX = ".marks"

#: What the records of a capture take besides URL, heads, body and metadata, at most.
_RECORD_OVERHEAD_BYTES = 8_192
#: How often its records name its URL, at most.
_URL_MENTIONS = 4

#: Rows held back at most until WARC and journal are flushed.
MAX_BUFFERED_ROWS = 2_000


def spool_folder(configuration: Configuration, store: Store, round_id: str, partition: int) -> Path:
    """The local folder of a partition's unpublished parts; the same for every attempt on a machine."""
    if configuration.fetch.spool_dir:
        base = Path(configuration.fetch.spool_dir)
    elif store.is_local:
        base = store.local_path("spool")
    else:
        key = hashlib.sha256(store.root.encode()).hexdigest()[:16]
        base = Path(tempfile.gettempdir()) / f"recrawl-spool-{key}"
    return base / round_id / f"p{partition:05d}"


def next_attempt(store: Store, round_id: str, partition: int, folder: Path) -> int:
    """1 + the greatest attempt found among published journals and spooled parts."""
    names = [*journal_names(store, round_id, partition), *(path.name for path in folder.glob("recrawl-*"))]
    parts = (PartName.parse(name) for name in names)
    return 1 + max((part.attempt for part in parts if part is not None), default=0)


def warc_file_row(part: PartName, summary: PartSummary, published_at: datetime) -> Row:
    """The row of `warc_files` of a finished part."""
    return {
        "round_id": part.round_id,
        "warc_file": part.stored(WARC_SUFFIX),
        "bytes": summary.bytes,
        "records": summary.records,
        "sha256": summary.sha256,
        "first_date": time_text(summary.first_date),
        "last_date": time_text(summary.last_date),
        "published_at": time_text(published_at),
    }


def publish_part(store: Store, folder: Path, part: PartName) -> None:
    """Publish the files of a part that are still in the spool: WARC, CDXJ, journal last."""
    for suffix in (WARC_SUFFIX, CDXJ_SUFFIX, JOURNAL_SUFFIX):
        path = folder / (part.stem + suffix)
        if path.exists():
            store.publish(path, part.stored(suffix))
    (folder / (part.stem + MARKS_SUFFIX)).unlink(missing_ok=True)


def last_mark(path: Path) -> tuple[int, int]:
    """(WARC bytes, journal bytes) of the last flush; zeros when there was none."""
    if not path.exists():
        return 0, 0
    *_, last = [(0, 0), *(line.split() for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))]
    return int(last[0]), int(last[1])


class PartSpool:
    """The parts that one attempt writes, one open at a time.

    Args:
        name: round, partition and attempt; its serial is the first part's.
        warcinfo: fields of each warcinfo record.
        closing_rows: gives the rows that end a part (`host_visits`).
        before_publish: called before anything is published; raises when it must not be.
    """

    def __init__(
        self, store: Store, folder: Path, name: PartName, settings: Fetch, warcinfo: Mapping[str, str], clock: Clock,
        closing_rows: Callable[[], list[tuple[str, Row]]], before_publish: Callable[[], None],
    ) -> None:  # fmt: skip
        self._store = store
        self._folder = folder
        self._part = name
        self._settings = settings
        self._warcinfo = warcinfo
        self._clock = clock
        self._closing_rows = closing_rows
        self._before_publish = before_publish
        self._writer: PartWriter | None = None
        self._journal: IO[bytes] | None = None
        self._looked_up: set[str] = set()
        self._lines: list[bytes] = []
        self._closed_warc_bytes = 0
        self._flushed_at = self._opened_at = clock.monotonic_seconds()
        self.published: list[str] = []

    @property
    def warc_file(self) -> str:
        """The published name of the open part's WARC file."""
        return self._part.stored(WARC_SUFFIX)

    def write(self, exchange: Exchange, lookup: Lookup | None = None) -> RecordPlace:
        """Write a capture into the open part, or into the next one where that would grow too long.

        Args:
            lookup: what the host's name resolved to; written once a part.

        Raises:
            WarcError: the capture can't be stored.
        """
        if self._writer is not None and self._writer.entries and self._would_pass_limit(exchange):
            self.publish()
        if self._writer is None:
            self._writer = PartWriter(self._path(WARC_SUFFIX), self._warcinfo, self._clock.now())
            self._looked_up.clear()
        if lookup is not None and lookup.name not in self._looked_up:
            self._looked_up.add(lookup.name)
            self._writer.write_lookup(lookup)
        return self._writer.write(exchange)

    def _would_pass_limit(self, exchange: Exchange) -> bool:
        assert self._writer is not None
        body_bytes = 0 if exchange.revisit else exchange.body_bytes
        record_bytes = body_bytes + len(exchange.response_head) + len(exchange.request_head) + _RECORD_OVERHEAD_BYTES
        record_bytes += _URL_MENTIONS * len(exchange.url) + sum(map(len, exchange.metadata.values()))
        return self._writer.bytes_written + record_bytes > self._settings.warc_file_bytes

    def add_row(self, table: str, row: Row) -> None:
        """A row for the journal; it is on disk after the next flush."""
        self._lines.append(encode_line(table, row))
        if len(self._lines) >= MAX_BUFFERED_ROWS:
            self.flush()

    def tend(self) -> None:
        """Flush or publish if it is time to."""
        now = self._clock.monotonic_seconds()
        is_full = self._writer is not None and self._writer.bytes_written >= self._settings.publish_bytes
        if is_full or now - self._opened_at >= self._settings.publish_seconds:
            self.publish()
        elif now - self._flushed_at >= self._settings.flush_seconds:
            self.flush()

    def flush(self) -> None:
        """Hand WARC records, then the rows about them, to the operating system."""
        self._flushed_at = self._clock.monotonic_seconds()
        if self._writer is not None:
            self._writer.flush()
        if not self._lines:
            return
        if self._journal is None:
            self._journal = self._path(JOURNAL_SUFFIX).open("ab")
        self._journal.write(b"".join(self._lines))
        self._journal.flush()
        self._lines.clear()
        warc_bytes = self._writer.bytes_written if self._writer is not None else self._closed_warc_bytes
        with self._path(MARKS_SUFFIX).open("ab") as marks:
            marks.write(b"%d %d\n" % (warc_bytes, self._journal.tell()))

    def publish(self) -> None:
        """Close and publish the open part if there is anything in it, and begin the next."""
        self._opened_at = self._clock.monotonic_seconds()
        if self._writer is None and self._journal is None and not self._lines:
            return
        self._before_publish()
        for table, row in self._closing_rows():
            self.add_row(table, row)
        if self._writer is not None:
            summary = self._writer.close()
            write_cdxj(self._writer.entries, self._path(CDXJ_SUFFIX), self._part.stem + WARC_SUFFIX)
            self.add_row("warc_files", warc_file_row(self._part, summary, self._clock.now()))
            self.published.append(self.warc_file)
            self._closed_warc_bytes = summary.bytes
            self._writer = None
        self.flush()
        assert self._journal is not None
        os.fsync(self._journal.fileno())
        self._journal.close()
        self._journal = None
        self._closed_warc_bytes = 0
        publish_part(self._store, self._folder, self._part)
        self._part = self._part._replace(serial=self._part.serial + 1)

    def abandon(self) -> None:
        """Close files without publishing; the next attempt salvages what was flushed."""
        # A disk that is full refuses the last bytes once more; the fault is told already.
        if self._writer is not None:
            with contextlib.suppress(WarcError):
                self._writer.abandon()
            self._writer = None
        if self._journal is not None:
            with contextlib.suppress(OSError):
                self._journal.close()
            self._journal = None

    def _path(self, suffix: str) -> Path:
        return self._folder / (self._part.stem + suffix)
