"""parse's work inside a Spark task: from a capture's place to rows of `pages`, `links`, `rejects`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from recrawl.config.model import Configuration
from recrawl.errors import WarcError
from recrawl.parse.capture import Capture, FoundLink, ParsedPage
from recrawl.parse.handlers import parse_capture
from recrawl.parse.resolve import ResolvedLinks, resolve_links
from recrawl.parse.sitemap import MAX_SITEMAP_BYTES
from recrawl.robots.rules import RobotsRules
from recrawl.storage import Store
from recrawl.tables.catalog import TABLES
from recrawl.tables.ddl import arrow_schema
from recrawl.tables.vocabulary import FrontierMode, LinkKind, ParseOutcome
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.domains import registered_domain
from recrawl.urls.filters import UrlFilters
from recrawl.urls.scope import ScopeSet
from recrawl.warc.reader import read_capture

#: Outcomes of captures that brought no content of the site's.
_WITHOUT_CONTENT = (ParseOutcome.EMPTY, ParseOutcome.REFUSED, ParseOutcome.SOFT_404)
#: Parsed pages that are handed to the JVM together.
_BATCH_ROWS = 100


def _struct(table: str) -> pa.DataType:
    return pa.struct(list(arrow_schema(TABLES[table])))


PARSED_SCHEMA = pa.schema(
    [("page", _struct("pages")), ("links", pa.list_(_struct("links"))), ("rejects", pa.list_(_struct("rejects")))]
)


@dataclass(frozen=True)
class ParseSettings:
    """What a parse task needs besides its rows; sent to it once."""

    round_id: str
    configuration: Configuration
    canonicalizer: Canonicalizer
    filters: UrlFilters
    scope: ScopeSet
    parser_version: int


class WarcStreams:
    """WARC files opened once a task, in the order in which its rows name them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._name = ""
        self._stream: BinaryIO | None = None

    def get(self, name: str) -> BinaryIO:
        """The stream of a file; the one before is closed. Raises FileNotFoundError."""
        if self._stream is None or name != self._name:
            self.close()
            self._stream, self._name = self._store.open_read(name), name
        return self._stream

    def close(self) -> None:
        """Close what is open."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def parse_task(batches: Iterator[pa.RecordBatch], settings: ParseSettings) -> Iterator[pa.RecordBatch]:
    """One Spark task: parse what the batches name.

    It stands here and not in the job, because a worker imports the module of what it runs: this one
    needs no pyspark.
    """
    for batch in batches:
        yield from parse_batch(batch.to_pylist(), settings)


def parse_batch(rows: list[dict[str, Any]], settings: ParseSettings) -> Iterator[pa.RecordBatch]:
    """Parse what the rows name; `PARSED_SCHEMA`, one row a capture or redirect."""
    streams = WarcStreams(Store(settings.configuration.storage))
    try:
        for start in range(0, len(rows), _BATCH_ROWS):
            parsed = [parse_row(row, settings, streams) for row in rows[start : start + _BATCH_ROWS]]
            yield pa.RecordBatch.from_pylist(parsed, schema=PARSED_SCHEMA)
    finally:
        streams.close()


def parse_row(row: dict[str, Any], settings: ParseSettings, streams: WarcStreams) -> dict[str, Any]:
    """One capture, or the edges alone of a redirect or of a robots.txt (no WARC file)."""
    if row["warc_file"] is None:
        resolved = _resolve(row, _edges_without_page(row, settings), False, settings)
        return {
            "page": None,
            "links": _link_rows(row, resolved, settings),
            "rejects": _reject_rows(row, resolved, settings),
        }
    page = _parse(row, settings, streams)
    resolved = _resolve(row, page.links, page.nofollow, settings)
    return {
        "page": _page_row(row, page, resolved, settings),
        "links": _link_rows(row, resolved, settings),
        "rejects": _reject_rows(row, resolved, settings),
    }


def _edges_without_page(row: dict[str, Any], settings: ParseSettings) -> list[FoundLink]:
    if row["robots_body"] is None:
        return [FoundLink(row["redirect_url"], row["redirect_url"], LinkKind.REDIRECT, "", "")]
    rules = RobotsRules.parse(row["robots_body"], settings.configuration.agent.name)
    return [FoundLink(url, url, LinkKind.SITEMAP, "", "") for url in rules.sitemaps]


def _parse(row: dict[str, Any], settings: ParseSettings, streams: WarcStreams) -> ParsedPage:
    parse = settings.configuration.parse
    try:
        # A sitemap may be larger than a page; fetch has kept each to its limit.
        most_bytes = max(parse.max_parse_bytes, MAX_SITEMAP_BYTES)
        stored = read_capture(streams.get(row["warc_file"]), row["warc_offset"], most_bytes)
    except (WarcError, OSError) as error:
        return ParsedPage(handler="none", parse_outcome=ParseOutcome.UNREADABLE, detail=str(error))
    return parse_capture(
        Capture(
            url=row["url"],
            content_type=row["content_type"],
            body=stored.body,
            x_robots_tag=row["x_robots_tag"],
            depth=row["depth"],
            agent=settings.configuration.agent.name,
            want_text=row["want_text"],
            link_headers=tuple(value for name, value in stored.http_headers if name.lower() == "link"),
            header_lines=tuple(f"{name}: {value}" for name, value in stored.http_headers),
        ),
        parse,
    )


def _resolve(row: dict[str, Any], found: list[FoundLink], nofollow: bool, settings: ParseSettings) -> ResolvedLinks:
    # A redirect's target is the same page under another name, not one link further away.
    depth = row["depth"] - 1 if row["redirect_url"] is not None else row["depth"]
    return resolve_links(
        row["url"],
        depth,
        found,
        nofollow,
        settings.canonicalizer,
        settings.filters,
        settings.scope,
        settings.configuration.parse.max_links_per_page,
        settings.configuration.frontier.mode is FrontierMode.PATH_ASCENDING,
    )


def _page_row(
    row: dict[str, Any], page: ParsedPage, resolved: ResolvedLinks, settings: ParseSettings
) -> dict[str, Any]:
    canonical = settings.canonicalizer.canonical(page.canonical) if page.canonical else None
    return {
        "round_id": settings.round_id,
        "url_id": row["url_id"],
        "planned_url_id": row["planned_url_id"],
        "url": row["url"],
        "host": row["host"],
        "seed_tag": row["seed_tag"] or "",
        "fetched_at": row["ended_at"],
        "title": page.title,
        "author": page.author,
        "published_at_text": page.published_at_text,
        "text": page.text,
        "language": page.language,
        "charset": page.charset,
        "canonical": canonical,
        "noindex": page.noindex,
        "nofollow": page.nofollow,
        "quality": page.quality,
        "handler": page.handler or "none",
        "parse_outcome": str(page.parse_outcome),
        "content_checksum": None if page.parse_outcome in _WITHOUT_CONTENT else row["content_checksum"],
        "text_checksum": page.text_checksum,
        "change_verdict": row["change_verdict"],
        "content_round_id": row["content_round_id"],
        "previous_round_id": row["previous_round_id"],
        "parser_version": settings.parser_version,
        "outlink_count": resolved.outlink_count,
        "kept_outlink_count": resolved.kept_outlink_count,
        "depth": row["depth"],
        "noarchive": page.noarchive,
        "needs_rendering": page.needs_rendering,
        "metadata": list(page.metadata.items()) or None,
    }


def _link_rows(row: dict[str, Any], resolved: ResolvedLinks, settings: ParseSettings) -> list[dict[str, Any]]:
    source = {
        "round_id": settings.round_id,
        "src_url_id": row["url_id"],
        "src_url": row["url"],
        "src_host": row["host"],
        "src_domain": registered_domain(row["host"]),
    }
    return [
        {
            **source,
            "position": link.position,
            "dst_url_id": link.dst_url_id,
            "dst_url": link.dst_url,
            "dst_host": link.dst_host,
            "dst_domain": link.dst_domain,
            "link_kind": str(link.kind),
            "rel": link.rel or None,
            "followed": link.followed,
            "anchor_text": link.anchor_text or None,
            "request_url": link.request_url,
            "listed_lastmod_text": link.lastmod,
            "listed_priority": link.priority,
        }
        for link in resolved.kept
    ]


def _reject_rows(row: dict[str, Any], resolved: ResolvedLinks, settings: ParseSettings) -> list[dict[str, Any]]:
    return [
        {
            "round_id": settings.round_id,
            "src_url_id": row["url_id"],
            "dst_url": reject.dst_url,
            "step": "parse",
            "filter": str(reject.filter),
            "reject_reason": reject.reason,
        }
        for reject in resolved.rejects
    ]
