"""A closed round whose WARC file, index, journal and rows agree; tests then break one of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recrawl.clock import ManualClock
from recrawl.config.model import Fetch
from recrawl.fetch.journal import CDXJ_SUFFIX, JOURNAL_SUFFIX, PartName, load_journal_rows, parse_time
from recrawl.fetch.parts import PartSpool
from recrawl.urls.keys import url_id
from recrawl.warc.records import Lookup, RevisitOf
from tests.unit.asking.small_crawl import FIRST, SmallCrawl
from tests.unit.warc.exchanges import an_exchange, payload_digest

MOMENT = datetime(2026, 11, 30, 3, 0, 1, tzinfo=UTC)


@dataclass
class PublishedRound:
    """The round: its crawl, the name of its WARC file, its rows as they were written."""

    crawl: SmallCrawl
    warc_file: str
    warc_row: dict[str, Any]
    fetches: list[dict[str, Any]]

    @property
    def warc(self) -> Path:
        return self.crawl.store.local_path(self.warc_file)

    @property
    def cdxj(self) -> Path:
        return self.warc.with_name(self.warc.name.removesuffix(".warc.gz") + CDXJ_SUFFIX)

    @property
    def journal(self) -> Path:
        return self.warc.with_name(self.warc.name.removesuffix(".warc.gz") + JOURNAL_SUFFIX)


def published_round(crawl: SmallCrawl, round_id: str = FIRST, number: int = 1, pages: int = 3) -> PublishedRound:
    """Publish `pages` pages, the last of them a revisit, and write the tables."""
    spool_dir = crawl.root / "spool" / round_id
    spool_dir.mkdir(parents=True)
    spool = PartSpool(
        crawl.store, spool_dir, PartName(round_id, 0, 1, 1), Fetch(), {"software": "recrawl"}, ManualClock(MOMENT),
        lambda: [], lambda: None,
    )  # fmt: skip
    fetches = []
    for page in range(pages):
        url, body, at = f"http://a.test/{page}", b"<p>page %d</p>" % page, MOMENT + timedelta(seconds=page)
        revisit = RevisitOf("identical-payload-digest", "<urn:uuid:0a>", url, MOMENT) if page == pages - 1 else None
        exchange = an_exchange(body, url=url, started_at=at, revisit=revisit, metadata={"fetchTimeMs": "1"})
        place = spool.write(exchange, Lookup("a.test", ("192.0.2.1", "2001:db8::1"), at))
        row = {
            "round_id": round_id, "planned_url_id": url_id(url), "url_id": url_id(url), "url": url, "host": "a.test",
            "final": True, "outcome": "ok", "status": 200, "payload_digest": payload_digest(body),
            "revisit": revisit is not None, "warc_file": spool.warc_file, "warc_offset": place.offset,
            "warc_length": place.length, "warc_record_id": place.record_id,
        }  # fmt: skip
        fetches.append(row)
        spool.add_row("fetches", row)
    spool.publish()
    (warc_row,) = load_journal_rows(crawl.store, round_id, "warc_files")
    warc_row |= {name: parse_time(warc_row[name]) for name in ("first_date", "last_date", "published_at")}
    crawl.write("fetches", *fetches)
    crawl.write("warc_files", warc_row)
    crawl.write("rounds", crawl.round(number, round_id, "closed", versions_at_close={}))
    return PublishedRound(crawl, warc_row["warc_file"], warc_row, fetches)
