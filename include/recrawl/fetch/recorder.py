"""Writes what happened: captures to WARC, rows to the journal, and keeps count."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.config.model import Configuration
from recrawl.fetch.capture import Digests, digests_of, exchange_of, lookup_of, sniffed_type, timings_of
from recrawl.fetch.engine import EngineAnswer
from recrawl.fetch.heads import ResponseHeaders
from recrawl.fetch.journal import Row, time_text
from recrawl.fetch.parts import PartSpool
from recrawl.fetch.robots_gate import Verdict
from recrawl.fetch.work import PageWork, PlannedUrl
from recrawl.tables.vocabulary import Outcome, SkipReason, TruncatedReason
from recrawl.warc.records import RecordPlace, RevisitOf

_MAX_HEADER_TEXT = 2_000


@dataclass
class Tally:
    """Counts of one attempt; `final` and `skipped` begin with what earlier attempts settled."""

    planned: int = 0
    final: int = 0
    skipped: int = 0
    requests: int = 0
    answered: int = 0
    errors: int = 0

    @property
    def settled(self) -> int:
        return self.final + self.skipped


@dataclass(slots=True)
class Capture:
    """An answer as it was stored.

    Attributes:
        headers: of the response; None without a head.
        digests: of the body; None without a head.
        place: of the WARC record; None when nothing was stored.
        revisit: the earlier capture that it repeats.
    """

    headers: ResponseHeaders | None = None
    digests: Digests | None = None
    place: RecordPlace | None = None
    warc_file: str | None = None
    revisit: RevisitOf | None = None


class Recorder:
    """The one writer of `fetches` and `skips` rows."""

    def __init__(self, round_id: str, configuration: Configuration, spool: PartSpool, tally: Tally) -> None:
        self._round_id = round_id
        self._fetch = configuration.fetch
        self._spool = spool
        self._tally = tally

    def capture(
        self, answer: EngineAnswer, headers: ResponseHeaders | None, max_bytes: int, planned: PlannedUrl | None,
        metadata: dict[str, str],
    ) -> Capture:  # fmt: skip
        """Store an answer that has a head (or came by FTP).

        Args:
            planned: for the URL's own planned request: what its last capture was, for revisits.
        """
        is_ftp_file = answer.request.url.startswith("ftp:") and answer.failure is None
        if headers is None and not is_ftp_file:
            return Capture()
        headers = headers or ResponseHeaders(b"")
        whole = answer.body.in_one_piece()
        digests = digests_of(answer, whole, headers, max_bytes)
        revisit = None if planned is None else _revisit_of(planned, answer, digests)
        payload = digests.payload
        if revisit is not None and revisit.profile == "server-not-modified":
            payload = (planned.last_payload_digest if planned else None) or ""
        # Behind a proxy, the address is the proxy's and the name is its to resolve.
        is_direct = not self._fetch.proxy
        content_type = (sniffed_type(None, digests.start) or "") if is_ftp_file else ""
        exchange = exchange_of(
            answer, whole, payload, answer.truncated, revisit, metadata | timings_of(answer),
            answer.ip if is_direct else None, content_type,
        )  # fmt: skip
        place = self._spool.write(exchange, lookup_of(answer) if is_direct else None)
        return Capture(headers, digests, place, self._spool.warc_file, revisit)

    def answered(
        self, work: PageWork, answer: EngineAnswer, capture: Capture, outcome: Outcome, *, final: bool,
        verdict: Verdict, delay_seconds: float, redirect_url: str | None = None, detail: str = "",
    ) -> None:  # fmt: skip
        """The row of a request that was made."""
        detail = detail or answer.detail
        if answer.tls_problem:
            detail = f"{detail} Certificate accepted though invalid: {answer.tls_problem}".strip()
        row = self._row(work, outcome, final, verdict, redirect_url, detail)
        headers, digests, place = capture.headers, capture.digests, capture.place
        row |= {
            "status": answer.status,
            "started_at": time_text(answer.started_at),
            "ended_at": time_text(answer.ended_at),
            "delay_ms_required": round(delay_seconds * 1000),
            "ip": answer.ip,
            "bytes_wire": answer.body.size_bytes,
            "truncated": answer.truncated.value if answer.truncated else None,
        }
        if headers is not None and digests is not None:
            content_type = _clipped(headers.first("content-type"))
            declared = (content_type or "").partition(";")[0].strip().lower()
            has_content = outcome is not Outcome.NOT_MODIFIED
            row |= {
                "bytes_body": digests.decoded_bytes,
                "mime_declared": declared or None,
                "mime_sniffed": sniffed_type(content_type, digests.start) if has_content else None,
                "content_type": content_type,
                "x_robots_tag": _clipped(headers.joined("x-robots-tag")),
                "payload_digest": digests.payload if has_content else work.planned.last_payload_digest,
                "content_checksum": digests.checksum if has_content else None,
                "etag": _clipped(headers.first("etag")),
                "last_modified": _clipped(headers.first("last-modified")),
                "revisit": capture.revisit is not None,
            }
            if digests.is_cut and row["truncated"] is None:
                row["truncated"] = TruncatedReason.LENGTH.value
        if place is not None:
            row |= {
                "warc_file": capture.warc_file,
                "warc_offset": place.offset,
                "warc_length": place.length,
                "warc_record_id": place.record_id,
            }
        self._add(row)

    def refused(self, work: PageWork, at: str, verdict: Verdict) -> None:
        """The final row of a URL that was not asked for: robots.txt, the guard, an impossible URL."""
        assert verdict.outcome is not None
        row = self._row(work, verdict.outcome, True, verdict, None, verdict.detail)
        row["started_at"] = row["ended_at"] = at
        self._add(row)

    def skipped(self, planned: PlannedUrl, reason: SkipReason) -> None:
        """A planned URL is given back."""
        self._tally.skipped += 1
        self._spool.add_row(
            "skips",
            {
                "round_id": self._round_id, "url_id": planned.url_id, "step": "fetch",
                "host": planned.host, "skip_reason": reason.value,
            },
        )  # fmt: skip

    def robots(self, row: Row) -> None:
        """A row of `robots`."""
        self._spool.add_row("robots", row)

    def _add(self, row: Row) -> None:
        self._tally.final += row["final"]
        self._spool.add_row("fetches", row)

    def _row(
        self, work: PageWork, outcome: Outcome, final: bool, verdict: Verdict, redirect_url: str | None, detail: str
    ) -> Row:
        return {
            "round_id": self._round_id,
            "planned_url_id": work.planned.url_id,
            "attempt": work.attempt,
            "hop": work.hop,
            "url_id": work.url_id,
            "url": work.url,
            "host": work.host,
            "final": final,
            "outcome": outcome.value,
            "status": None,
            "started_at": None,
            "ended_at": None,
            "delay_ms_required": 0,
            "ip": None,
            "bytes_wire": 0,
            "bytes_body": 0,
            "mime_declared": None,
            "mime_sniffed": None,
            "content_type": None,
            "x_robots_tag": None,
            "payload_digest": None,
            "content_checksum": None,
            "etag": None,
            "last_modified": None,
            "truncated": None,
            "redirect_url": redirect_url,
            "robots_digest": verdict.digest,
            "robots_rule": verdict.rule if verdict.digest is not None else None,
            "revisit": False,
            "warc_file": None,
            "warc_offset": None,
            "warc_length": None,
            "warc_record_id": None,
            "detail": detail or None,
        }


def _revisit_of(planned: PlannedUrl, answer: EngineAnswer, digests: Digests) -> RevisitOf | None:
    """The earlier capture of the same URL that an answer repeats; None for new content.

    Only the URL's own last capture: another URL's equal body is stored again, so that each
    first capture can be read back where its row says.
    """
    if answer.status == 304 and (planned.etag or planned.last_modified):
        profile = "server-not-modified"
    elif (
        answer.status == 200
        and answer.truncated is None
        and answer.body.size_bytes
        and planned.last_warc_record_id
        and digests.payload == planned.last_payload_digest
    ):
        profile = "identical-payload-digest"
    else:
        return None
    return RevisitOf(
        "server-not-modified" if profile == "server-not-modified" else "identical-payload-digest",
        planned.last_warc_record_id, planned.request_url, planned.last_warc_date,
    )  # fmt: skip


def _clipped(value: str | None) -> str | None:
    return value[:_MAX_HEADER_TEXT] if value else None
