"""Published WARC files against what the tables say of them: bytes, records, index, rows; no JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from recrawl.asking.named_rounds import ENDED_STATES
from recrawl.asking.reader import Reader
from recrawl.errors import WarcError
from recrawl.fetch.journal import CDXJ_SUFFIX, JOURNAL_SUFFIX, WARC_SUFFIX
from recrawl.rounds import warc_folder
from recrawl.storage import Store
from recrawl.warc.cdxj import INDEXED_TYPES
from recrawl.warc.check import InspectedRecord, Inspection, inspect_warc
from recrawl.warc.records import parse_warc_date
from recrawl.warc.second_reader import second_opinion

Row = Mapping[str, Any]

#: Sentences about one file; a file that is wrong throughout must not bury the others.
MAX_FINDINGS_A_FILE = 20


@dataclass(frozen=True)
class Finding:
    """Something that is not as it was published.

    Attributes:
        warc_file: relative to the storage root.
        sentence: what is wrong, with the file's name.
    """

    round_id: str
    warc_file: str
    sentence: str


@dataclass(frozen=True)
class Verification:
    """What a verification looked at and found.

    Attributes:
        files_known: rows of `warc_files` in question; `files` of them were read.
        records, bytes: of the files read.
    """

    files_known: int
    files: int
    records: int
    bytes: int
    findings: tuple[Finding, ...]


def verify(
    reader: Reader,
    store: Store,
    round_id: str | None,
    sample: int | None,
    rng: Random,
    on_file: Callable[[str], None] = lambda name: None,
) -> Verification:
    """Read published WARC files again and compare.

    A file must be there with its length, SHA-256 and number of records; be WARC by the letter, digests
    included, for our check and for warcio; have a sorted CDXJ index that lists exactly its captures, a
    journal, and a record where each row of `fetches` says so. Of one round, or when all files are read,
    the folders must hold no WARC file that no row names.

    Args:
        round_id: only this round's files; None: those of all rounds.
        sample: how many files are read, taken at random; None: all.
        rng: takes the sample.
        on_file: told the name of each file before it is read.

    Raises:
        StorageError: the root can't be read.
        TableError: a table can't be read.
    """
    known = _known_files(reader, round_id)
    chosen = known if sample is None or sample >= len(known) else rng.sample(known, sample)
    records = total_bytes = 0
    findings: list[Finding] = []
    for row in sorted(chosen, key=lambda row: str(row["warc_file"])):
        name = str(row["warc_file"])
        on_file(name)
        check = _FileCheck(reader, store, row)
        said = check.run()
        findings += [Finding(str(row["round_id"]), name, f"{name}: {text}") for text in said[:MAX_FINDINGS_A_FILE]]
        if len(said) > MAX_FINDINGS_A_FILE:
            more = f"{name}: and {len(said) - MAX_FINDINGS_A_FILE:,} findings more."
            findings.append(Finding(str(row["round_id"]), name, more))
        records += len(check.inspection.records)
        total_bytes += check.inspection.bytes
    if round_id is not None or sample is None:
        findings += _unnamed_files(reader, store, round_id, {str(row["warc_file"]) for row in known})
    return Verification(len(known), len(chosen), records, total_bytes, tuple(findings))


def _known_files(reader: Reader, round_id: str | None) -> list[Row]:
    if reader.version("warc_files") is None:
        return []
    where = "" if round_id is None else f" WHERE round_id = '{round_id}'"
    rows: list[Row] = reader.query(f"SELECT * FROM warc_files{where} ORDER BY warc_file").to_pylist()
    return rows


def _unnamed_files(reader: Reader, store: Store, round_id: str | None, known: set[str]) -> Iterator[Finding]:
    """WARC files in the folders of ended rounds that no row names; a running round's rows come later."""
    for row in reader.rounds():
        this = str(row["round_id"])
        if row["round_state"] in ENDED_STATES and round_id in (None, this):
            for name in store.names(warc_folder(this)):
                if name.endswith(WARC_SUFFIX) and name not in known:
                    yield Finding(
                        this, name, f"{name}: it lies in the round's folder, but no row of warc_files names it."
                    )


class _FileCheck:
    """One file and all that should agree with it."""

    def __init__(self, reader: Reader, store: Store, row: Row) -> None:
        self._reader = reader
        self._store = store
        self._row = row
        self._name = str(row["warc_file"])
        self._stem = self._name.removesuffix(WARC_SUFFIX)
        self.inspection = Inspection((), (), 0, "")

    def run(self) -> list[str]:
        """What is wrong, in sentences; [] is a pass."""
        if not self._store.exists(self._name):
            return ["it is missing."]
        try:
            with self._store.open_read(self._name) as stream:
                self.inspection = inspect_warc(stream)
        except (OSError, WarcError) as error:
            return [f"it can't be read: {error}."]
        found = [f"{problem}." for problem in self.inspection.problems] or self._against_second_reader()
        found += self._against_row()
        found += self._against_index()
        found += self._against_fetches()
        if not self._store.exists(self._stem + JOURNAL_SUFFIX):
            found.append("its journal is missing.")
        return found

    def _against_second_reader(self) -> list[str]:
        """Another program must read the same records of a file that passes our check."""
        with self._store.open_read(self._name) as stream:
            opinion = second_opinion(stream)
        found = [f"{problem}." for problem in opinion.problems]
        offsets = tuple(record.offset for record in self.inspection.records)
        if not found and opinion.offsets != offsets:
            found.append(f"warcio reads {len(opinion.offsets):,} records, or at other places, of {len(offsets):,}.")
        return found

    def _against_row(self) -> list[str]:
        inspection, row = self.inspection, self._row
        pairs = (
            ("bytes", inspection.bytes, row["bytes"]),
            ("records", len(inspection.records), row["records"]),
            ("SHA-256", inspection.sha256, row["sha256"]),
        )
        found = [
            f"{what}: {_shown(there)}, but {_shown(said)} in warc_files."
            for what, there, said in pairs
            if there != said
        ]
        dates = sorted(moment for moment in map(_moment, map(_date_of, inspection.records)) if moment is not None)
        for name, there in (("first_date", dates[:1]), ("last_date", dates[-1:])):
            said = _utc(row[name])
            # The row's dates are those of captures, which lie within those of all records.
            if there and said is not None and (said < there[0] if name == "first_date" else said > there[0]):
                found.append(f"{name} is {said.isoformat()} in warc_files, outside of the dates of its records.")
        return found

    def _against_index(self) -> list[str]:
        data = self._store.read_bytes(self._stem + CDXJ_SUFFIX)
        if data is None:
            return ["its CDXJ index is missing."]
        lines = data.splitlines()
        found = [] if lines == sorted(lines) else ["its CDXJ index is not sorted."]
        listed: dict[int, tuple[Any, ...]] = {}
        for number, line in enumerate(lines, 1):
            entry = _index_entry(line)
            if entry is None:
                found.append(f"line {number:,} of its CDXJ index can't be understood.")
            elif entry[-1] != self._name.rpartition("/")[2]:
                found.append(f"line {number:,} of its CDXJ index names the file {entry[-1]!r}.")
            else:
                listed[entry[0]] = entry[1:-1]
        there = {
            record.offset: (record.length, _timestamp(record.date), record.url, record.payload_digest or "-")
            for record in self.inspection.records
            if record.record_type in INDEXED_TYPES
        }
        for offset in sorted(there.keys() | listed.keys()):
            if offset not in listed:
                found.append(f"byte {offset:,}: its CDXJ index does not list this capture.")
            elif offset not in there:
                found.append(f"byte {offset:,}: its CDXJ index lists a capture, but none begins here.")
            elif listed[offset] != there[offset]:
                said, is_there = _first_difference(listed[offset], there[offset])
                found.append(f"byte {offset:,}: its CDXJ index says {said}, the record {is_there}.")
        return found

    def _against_fetches(self) -> list[str]:
        """Each row of `fetches` that names the file must lead to its record."""
        if self._reader.version("fetches") is None:
            return ["there is no table crawl.fetches."]
        rows: Sequence[Row] = self._reader.query(
            "SELECT url, warc_offset, warc_length, warc_record_id, payload_digest, revisit FROM fetches "
            f"WHERE round_id = '{self._row['round_id']}' AND warc_file = '{self._name}' ORDER BY warc_offset"
        ).to_pylist()
        records = {record.offset: record for record in self.inspection.records}
        found = []
        for row in rows:
            record = records.get(row["warc_offset"])
            problem = "no record begins there" if record is None else _difference(row, record)
            if problem:
                found.append(f"byte {row['warc_offset']:,}, where fetches has {row['url']}: {problem}.")
        return found


def _difference(row: Row, record: InspectedRecord) -> str:
    if record.record_type not in INDEXED_TYPES:
        return f"a {record.record_type} record is there"
    if (record.record_type == "revisit") != bool(row["revisit"]):
        return f"a {record.record_type} record is there, but the row says revisit = {str(row['revisit']).lower()}"
    if row["warc_length"] != record.length:
        return f"the record has {record.length:,} bytes, not {row['warc_length']:,}"
    if row["warc_record_id"] != record.record_id:
        return f"the record is {record.record_id}, not {row['warc_record_id']}"
    # A revisit may leave out a digest that is not known.
    if record.payload_digest and row["payload_digest"] != record.payload_digest:
        return f"the record's payload digest is {record.payload_digest}, not {row['payload_digest']}"
    return ""


def _index_entry(line: bytes) -> tuple[int, int, str, str, str, str] | None:
    """Offset, length, timestamp, URL, digest and file name of a CDXJ line; None for what is none."""
    try:
        _, timestamp, text = line.decode("utf-8").split(" ", 2)
        fields = json.loads(text)
        return (
            int(fields["offset"]), int(fields["length"]), timestamp, fields["url"], fields["digest"],
            fields["filename"],
        )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        return None


def _first_difference(said: tuple[Any, ...], there: tuple[Any, ...]) -> tuple[str, str]:
    names = ("length", "time", "url", "digest")
    name, one, other = next((n, a, b) for n, a, b in zip(names, said, there, strict=True) if a != b)
    return f"{name} {one}", str(other)


def _date_of(record: InspectedRecord) -> str:
    return record.date


def _moment(text: str) -> datetime | None:
    try:
        return parse_warc_date(text)
    except ValueError:
        return None


def _timestamp(text: str) -> str:
    moment = _moment(text)
    return "" if moment is None else f"{moment:%Y%m%d%H%M%S}"


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
