"""How the visit of each host went: the rows of `host_visits`, one a host and part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median

from recrawl.clock import Clock
from recrawl.fetch.engine import EngineAnswer
from recrawl.fetch.journal import HostLeft, Row, time_text
from recrawl.fetch.politeness import HostState, Politeness
from recrawl.fetch.robots_gate import RobotsGate, RobotsKey
from recrawl.fetch.work import HostRecord, Work

#: Times kept of each kind for the median, so that a host of 10,000 pages costs no more memory.
_MAX_SAMPLES = 16


@dataclass(slots=True)
class _Visit:
    """One host's figures since the last part."""

    requests: int = 0
    min_gap_ms: int | None = None
    errors: int = 0
    deferred: int = 0
    retry_after_seconds: float | None = None
    dns: list[float] = field(default_factory=list)
    connect: list[float] = field(default_factory=list)
    first_byte: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Lasting:
    """What is carried on from part to part (and, through `hosts`, from round to round)."""

    error_streak: int = 0
    last_access_at: datetime | None = None
    ips: list[str] = field(default_factory=list)
    robots_key: RobotsKey | None = None


class HostBook:
    """Figures of all hosts of a task."""

    def __init__(self, round_id: str, known: Mapping[str, HostRecord], left: Mapping[str, HostLeft]) -> None:
        self._round_id = round_id
        self._known = known
        self._left = left
        self._visits: dict[str, _Visit] = {}
        self._lasting: dict[str, _Lasting] = {}

    def note_start(self, state: HostState[Work], now: float) -> None:
        """A request to the host starts."""
        visit = self._visit(state.name)
        visit.requests += 1
        if state.last_end_at is not None:
            gap_ms = int((now - state.last_end_at) * 1000)
            visit.min_gap_ms = gap_ms if visit.min_gap_ms is None else min(visit.min_gap_ms, gap_ms)

    def note_answer(self, host: str, answer: EngineAnswer, is_fault: bool, retry_after_seconds: float | None) -> None:
        """A request to the host ended."""
        visit, lasting = self._visit(host), self._of(host)
        lasting.last_access_at = answer.ended_at
        lasting.error_streak = lasting.error_streak + 1 if is_fault else 0
        visit.errors += is_fault
        if retry_after_seconds is not None:
            visit.retry_after_seconds = max(visit.retry_after_seconds or 0.0, retry_after_seconds)
        if answer.ip and answer.ip not in lasting.ips:
            lasting.ips.append(answer.ip)
        samples = (
            (visit.dns, answer.dns_seconds),
            (visit.connect, answer.connect_seconds),
            (visit.first_byte, answer.first_byte_seconds),
        )
        for kept, seconds in samples:
            if seconds is not None and len(kept) < _MAX_SAMPLES:
                kept.append(seconds)

    def note_deferred(self, host: str) -> None:
        """A planned URL of the host was given back."""
        self._visit(host).deferred += 1

    def note_robots(self, key: RobotsKey) -> None:
        """The robots.txt under `key` is in force for its host."""
        self._of(key[1]).robots_key = key

    def take_rows(self, politeness: Politeness[Work], gate: RobotsGate, clock: Clock) -> list[tuple[str, Row]]:
        """The rows since the last call."""
        visits, self._visits = self._visits, {}
        now, wall = clock.monotonic_seconds(), clock.now()
        return [
            ("host_visits", self._row(host, visit, politeness.host(host), gate, wall - timedelta(seconds=now)))
            for host, visit in visits.items()
        ]

    def _row(self, host: str, visit: _Visit, state: HostState[Work], gate: RobotsGate, zero: datetime) -> Row:
        lasting = self._of(host)
        robots = gate.digest_and_expiry(lasting.robots_key) if lasting.robots_key else None
        blocked_until = None if state.blocked_until is None else zero + timedelta(seconds=state.blocked_until)
        return {
            "round_id": self._round_id,
            "host": host,
            "requests": visit.requests,
            "min_gap_ms": visit.min_gap_ms,
            "errors": visit.errors,
            "deferred": visit.deferred,
            "retry_after_seconds": visit.retry_after_seconds,
            "dns_ms": _median_ms(visit.dns),
            "connect_ms": _median_ms(visit.connect),
            "first_byte_ms": _median_ms(visit.first_byte),
            "ips": list(lasting.ips),
            "crawl_delay_seconds": state.crawl_delay_seconds,
            "adaptive_delay_seconds": state.adaptive_delay_seconds,
            "last_access_at": _text(lasting.last_access_at),
            "blocked_until": _text(blocked_until),
            "error_streak": lasting.error_streak,
            "robots_digest": robots[0] if robots else None,
            "robots_expires_at": _text(robots[1]) if robots else None,
        }

    def _visit(self, host: str) -> _Visit:
        visit = self._visits.get(host)
        if visit is None:
            visit = self._visits[host] = _Visit()
        return visit

    def _of(self, host: str) -> _Lasting:
        lasting = self._lasting.get(host)
        if lasting is None:
            lasting = self._lasting[host] = _Lasting()
            if (record := self._known.get(host)) is not None:
                lasting.error_streak = record.error_streak
                lasting.last_access_at = record.last_access_at
            if (left := self._left.get(host)) is not None:
                lasting.error_streak = left.error_streak
                lasting.last_access_at = left.last_access_at or lasting.last_access_at
        return lasting


def _median_ms(seconds: list[float]) -> float | None:
    return round(1000 * median(seconds), 3) if seconds else None


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else time_text(moment.astimezone(UTC))
