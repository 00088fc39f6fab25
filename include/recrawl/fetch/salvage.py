"""What an attempt that was killed left in the spool: saved as far as it is whole, and published.

Safe to be killed in the middle itself: every step can be repeated.
"""

from __future__ import annotations

import os
from pathlib import Path

from recrawl.clock import Clock
from recrawl.fetch.journal import (
    CDXJ_SUFFIX,
    JOURNAL_SUFFIX,
    WARC_SUFFIX,
    PartName,
    Row,
    decode_lines,
    encode_line,
)
from recrawl.fetch.parts import MARKS_SUFFIX, last_mark, publish_part, warc_file_row
from recrawl.storage import Store
from recrawl.tables.vocabulary import HOST_FAULTS
from recrawl.warc.cdxj import read_entries, write_cdxj
from recrawl.warc.salvage import cut_to_whole_members, summary_of


def salvage_spool(store: Store, folder: Path, round_id: str, partition: int, clock: Clock) -> list[str]:
    """Finish and publish every part that earlier attempts left in `folder`.

    Returns:
        The names of the published journals, relative to the storage root.
    """
    parts = {PartName.parse(path.name) for path in folder.glob("recrawl-*")}
    names = []
    for part in sorted(part for part in parts if part is not None):
        if (part.round_id, part.partition) == (round_id, partition) and _salvage_part(store, folder, part, clock):
            names.append(part.stored(JOURNAL_SUFFIX))
    return names


def _salvage_part(store: Store, folder: Path, part: PartName, clock: Clock) -> bool:
    warc, cdxj, journal, marks = (
        folder / (part.stem + suffix) for suffix in (WARC_SUFFIX, CDXJ_SUFFIX, JOURNAL_SUFFIX, MARKS_SUFFIX)
    )
    warc_bytes, journal_bytes = last_mark(marks)
    lines = list(decode_lines(journal.read_bytes()[:journal_bytes])) if journal.exists() else []
    if warc.exists():
        # Records behind the mark have no rows: they are fetched again, and must not be kept twice.
        os.truncate(warc, min(warc_bytes, warc.stat().st_size))
        whole_bytes = cut_to_whole_members(warc)
        lines = [(table, row) for table, row in lines if _is_whole(row, whole_bytes)]
        if not whole_bytes:
            warc.unlink()
            cdxj.unlink(missing_ok=True)
    if not any(table in ("fetches", "robots", "skips") for table, _ in lines):
        for path in (warc, cdxj, journal, marks):
            path.unlink(missing_ok=True)
        return False
    if not any(table == "host_visits" for table, _ in lines):
        lines += [("host_visits", row) for row in host_visits_of(lines)]
    if warc.exists():
        lines = [(table, row) for table, row in lines if table != "warc_files"]
        write_cdxj(read_entries(warc), cdxj, part.stem + WARC_SUFFIX)
        lines.append(("warc_files", warc_file_row(part, summary_of(warc), clock.now())))
    _rewrite(journal, marks, lines, warc_bytes)
    publish_part(store, folder, part)
    return True


def _is_whole(row: Row, whole_bytes: int) -> bool:
    offset = row.get("warc_offset")
    return offset is None or offset + row["warc_length"] <= whole_bytes


def _rewrite(journal: Path, marks: Path, lines: list[tuple[str, Row]], warc_bytes: int) -> None:
    """Replace the journal; the mark goes first, because a mark past the journal's end is harmless."""
    data = b"".join(encode_line(table, row) for table, row in lines)
    with marks.open("ab") as file:
        file.write(b"%d %d\n" % (warc_bytes, max(len(data), journal.stat().st_size)))
    temporary = journal.with_name(f".{journal.name}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(journal)


def host_visits_of(lines: list[tuple[str, Row]]) -> list[Row]:
    """The rows of `host_visits` that a killed attempt could not write, from its other rows.

    Gaps and times of name look-up and connection died with it; they are NULL.
    """
    visits: dict[str, Row] = {}
    for table, row in lines:
        if table not in ("fetches", "robots"):
            continue
        ended_at = row["ended_at"] if table == "fetches" else row["fetched_at"]
        visit = visits.setdefault(row["host"], _empty_visit(row["round_id"], row["host"]))
        if table == "fetches" and row["warc_file"] is None and row["ip"] is None and row["outcome"] not in HOST_FAULTS:
            continue  # decided without a request: robots, an invalid target
        is_fault = table == "fetches" and row["outcome"] in HOST_FAULTS
        visit["requests"] += 1
        visit["errors"] += is_fault
        visit["error_streak"] = visit["error_streak"] + 1 if is_fault else 0
        visit["last_access_at"] = max(visit["last_access_at"] or "", ended_at)
        if row.get("ip") and row["ip"] not in visit["ips"]:
            visit["ips"].append(row["ip"])
    return list(visits.values())


def _empty_visit(round_id: str, host: str) -> Row:
    empty: Row = dict.fromkeys(
        (
            "min_gap_ms", "retry_after_seconds", "dns_ms", "connect_ms", "first_byte_ms", "crawl_delay_seconds",
            "adaptive_delay_seconds", "last_access_at", "blocked_until", "robots_digest", "robots_expires_at",
        )
    )  # fmt: skip
    counts: Row = {"requests": 0, "errors": 0, "deferred": 0, "ips": [], "error_streak": 0}
    return empty | counts | {"round_id": round_id, "host": host}
