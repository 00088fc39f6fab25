"""WARC files of the misbehaving web: a first visit of all its paths, and a second that finds some unchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator

from recrawl.config.model import Configuration
from recrawl.fetch.journal import load_journal_rows, parse_time
from recrawl.rounds import warc_folder
from recrawl.storage import Store
from tests.fetch.crawl import ROUND_ID, configuration, fetch, plan_of, planned, task_of
from tests.web import MisbehavingWeb

SECOND_ROUND_ID = "20261207T030000.000000Z"

#: A host for each, so that those that answer late wait beside each other.
ODD_PATHS = (
    "/odd/slow?seconds=0.5", "/odd/drip?bytes=50&pause=0.1", "/odd/stall", "/odd/hang", "/odd/drop", "/odd/reset",
    "/odd/drop-in-head", "/odd/partial", "/odd/no-length", "/odd/chunked", "/odd/broken-chunks", "/odd/cut-chunks",
    "/odd/two-lengths", "/odd/negative-length", "/odd/http09", "/odd/http10", "/odd/nonsense", "/odd/bare-lf",
    "/odd/interim", "/odd/odd-headers", "/odd/large-headers?kb=100", "/odd/endless-headers?mb=2", "/odd/empty",
    "/odd/no-content", "/odd/huge?mb=3", "/odd/endless?mb=20", "/odd/type?mime=", "/odd/png?mime=text/html",
    "/odd/charset?declare=none&name=koi8-r", "/odd/bomb?as=gzip&mb=20", "/odd/bomb?as=br&mb=20",
    *(f"/odd/encoded?as={name}" for name in (
        "gzip", "deflate", "raw-deflate", "br", "zstd", "double", "plain", "unknown", "cut", "broken",
    )),
    *(f"/odd/status?code={code}" for code in (204, 206, 400, 404, 410, 418, 500, 503, 599)),
    "/odd/redirect?code=308&to=/page/2.html", "/odd/chain?n=3", "/odd/loop", "/odd/endless-redirects",
    "/odd/redirect-crlf", "/odd/redirect-bytes", "/odd/cookie-wall", "/odd/etag?tag=one", "/odd/last-modified",
    "/odd/always-304", "/odd/always-new", "/odd/directives?header=none&meta=noindex", "/page/4.html",
    "/sitemap.xml.gz",
)  # fmt: skip

#: What the second visit looks at again.
AGAIN = ("/odd/etag?tag=one", "/odd/last-modified", "/odd/always-new", "/page/4.html", "/odd/encoded?as=gzip",
         "/odd/chunked", "/odd/empty")  # fmt: skip


@dataclass(frozen=True)
class Record:
    """A record as warcio reads it: its headers by lower-case name, and its block as stored."""

    headers: dict[str, str]
    block: bytes

    @property
    def type(self) -> str:
        return self.headers["warc-type"]

    @property
    def url(self) -> str:
        return self.headers["warc-target-uri"]

    @property
    def http_head(self) -> bytes:
        return self.block.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        return self.block.partition(b"\r\n\r\n")[2]

    @property
    def fields(self) -> dict[str, str]:
        """Of a block of warc-fields."""
        lines = self.block.decode().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@dataclass(frozen=True)
class Archive:
    """What one visit published."""

    settings: Configuration
    round_id: str = ROUND_ID

    @property
    def folder(self) -> Path:
        """Where WARC files and indexes are."""
        return Path(self.settings.storage.root) / warc_folder(self.round_id)

    @property
    def files(self) -> list[Path]:
        return [Path(self.settings.storage.root) / row["warc_file"] for row in self.rows("warc_files")]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The published rows of a table."""
        return list(load_journal_rows(Store(self.settings.storage), self.round_id, table))

    def index_lines(self) -> list[str]:
        """The lines of all CDXJ files."""
        return [line for path in sorted(self.folder.glob("*.cdxj")) for line in path.read_text().splitlines()]

    def records(self) -> list[Record]:
        """All records of all files, in their order."""
        return [record for path in self.files for record in records_of(path)]

    def captures(self) -> dict[str, Record]:
        """By path and query: the record of a path that was asked for."""
        return {path_of(record.url): record for record in self.records() if record.type in ("response", "revisit")}

    def fetches(self) -> dict[str, dict[str, Any]]:
        """By path and query: the row of a path that was asked for."""
        return {path_of(row["url"]): row for row in self.rows("fetches")}


def records_of(path: Path) -> list[Record]:
    """The records of a WARC file."""
    with path.open("rb") as file:
        return [
            Record({name.lower(): value for name, value in record.rec_headers.headers}, record.raw_stream.read())
            for record in ArchiveIterator(file, no_record_parse=True)
        ]


def path_of(url: str) -> str:
    """Path and query of a URL."""
    return "/" + url.split("/", 3)[3] if url.count("/") > 2 else url


def host_of_path(number: int) -> str:
    """The host on which path `number` of `ODD_PATHS` is asked for."""
    return f"h{number}.test"


def a_web() -> MisbehavingWeb:
    """The web that `visit` visits, not yet running."""
    return MisbehavingWeb([host_of_path(number) for number in range(len(ODD_PATHS))], pages=5)


def visit(web: MisbehavingWeb, folder: Path, before: Archive | None = None, **fetch_settings: Any) -> Archive:
    """Ask for every path, or after an earlier visit for those of `AGAIN`, as the steps of a round would."""
    folder.mkdir(parents=True)
    settings = configuration(folder / "root", web.hosts_file(folder / "hosts"), **fetch_settings)
    urls = {path: web.url(host_of_path(number), path) for number, path in enumerate(ODD_PATHS)}
    if before is None:
        plan = plan_of(urls.values(), max_bytes=1 << 20)
    else:
        known = before.fetches()
        plan = [planned(urls[path], **_last_capture(known[path])) for path in AGAIN]
    archive = Archive(settings, ROUND_ID if before is None else SECOND_ROUND_ID)
    summary = fetch(replace(task_of(settings), round_id=archive.round_id), plan)
    assert (summary.final, summary.skipped) == (len(plan), 0)
    return archive


def _last_capture(row: dict[str, Any]) -> dict[str, Any]:
    started_at: datetime = parse_time(row["started_at"])
    return {
        "etag": row["etag"], "last_modified": row["last_modified"], "last_payload_digest": row["payload_digest"],
        "last_warc_file": row["warc_file"], "last_warc_record_id": row["warc_record_id"],
        "last_warc_date": started_at,
    }  # fmt: skip
