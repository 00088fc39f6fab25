"""How long a host is left alone: the gap after each answer, as pure code.

delay = max(Crawl-delay, clamp(factor x latency, least, most)); doubled with jitter after faults that
ask for it, Retry-After honoured, forgiven after quiet. Times are seconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Self

from recrawl.config.model import Fetch

#: The first gap after a fault that asks for back-off.
FIRST_BACKOFF_SECONDS = 60.0
#: Without a fault for this long a host's back-off is forgotten; each answer before takes one step back.
FORGIVEN_AFTER_SECONDS = 600.0
#: The least gap to a host that is not in an allowed private range, whatever configuration says.
MIN_PUBLIC_DELAY_SECONDS = 1.0
_JITTER = (0.75, 1.25)


@dataclass(frozen=True)
class PolitenessSettings:
    """The numbers of politeness; see the fields of the same name in `recrawl.config.model.Fetch`."""

    min_delay_seconds: float
    max_delay_seconds: float
    latency_factor: float
    ip_gap_seconds: float
    max_backoff_seconds: float
    max_errors_in_a_row: int

    @classmethod
    def of(cls, fetch: Fetch) -> Self:
        """The settings that a configuration asks for."""
        return cls(
            fetch.min_delay_seconds, fetch.max_delay_seconds, fetch.latency_factor, fetch.ip_gap_seconds,
            fetch.max_backoff_seconds, fetch.max_errors_in_a_row,
        )  # fmt: skip


class Answered(NamedTuple):
    """What politeness needs to know of a finished request.

    Attributes:
        latency_seconds: how long it took; None when nothing was answered.
        is_fault: counts for the errors in a row.
        backs_off: asks for back-off: 429, 503 and failures of the connection.
        retry_after_seconds: what Retry-After asked for.
        ip: the address asked.
    """

    latency_seconds: float | None
    is_fault: bool = False
    backs_off: bool = False
    retry_after_seconds: float | None = None
    ip: str | None = None


@dataclass(slots=True)
class Standing:
    """How a host stands with us. Times are monotonic seconds.

    Attributes:
        next_at: when it may be asked again.
        ip: the address asked last.
        required_gap_seconds: between its last answer and `next_at`.
        backoff_level: how often the gap was doubled.
        is_given_up: it failed too often in a row; its rest is given back.
        blocked_until: when it may be asked after that, in a later round.
        last_end_at: when its last answer ended.
    """

    name: str
    next_at: float = 0.0
    ip: str | None = None
    crawl_delay_seconds: float | None = None
    adaptive_delay_seconds: float | None = None
    required_gap_seconds: float = 0.0
    backoff_level: int = 0
    last_fault_at: float | None = None
    faults_in_a_row: int = 0
    is_given_up: bool = False
    blocked_until: float | None = None
    last_end_at: float | None = None


class Delays:
    """Computes gaps.

    Args:
        settings: gaps, factors, limits.
        rng: for the jitter of back-off.
        may_go_unclamped: whether an address is one for which gaps below
            `MIN_PUBLIC_DELAY_SECONDS` are accepted (an allowed private range).
    """

    def __init__(
        self, settings: PolitenessSettings, rng: Random, may_go_unclamped: Callable[[str | None], bool]
    ) -> None:
        self._settings = settings
        self._rng = rng
        self._may_go_unclamped = may_go_unclamped
        self.ip_gap_seconds = settings.ip_gap_seconds

    def has_ip_gap(self, ip: str | None) -> bool:
        """Whether requests to an address keep a gap of their own."""
        return ip is not None and self.ip_gap_seconds > 0 and self._least(ip) > 0

    def delay_seconds(self, standing: Standing) -> float:
        """The gap of a host in good standing: max(Crawl-delay, what its latency asks for)."""
        least = self._least(standing.ip)
        if standing.adaptive_delay_seconds is None:
            adaptive = least
        else:
            adaptive = min(max(standing.adaptive_delay_seconds, least), max(self._settings.max_delay_seconds, least))
        return max(standing.crawl_delay_seconds or 0.0, adaptive)

    def note_answer(self, standing: Standing, now: float, answer: Answered) -> None:
        """A request to the host ended `now`: when it may be asked again, and whether it is given up."""
        standing.last_end_at = now
        if answer.ip:
            standing.ip = answer.ip
        self._note_fault(standing, now, answer)
        standing.required_gap_seconds = self._gap(standing, answer)
        standing.next_at = max(standing.next_at, now + standing.required_gap_seconds)
        if standing.faults_in_a_row >= self._settings.max_errors_in_a_row and not standing.is_given_up:
            standing.is_given_up = True
            # The host has had its chances in this round; the next may come after a further step.
            standing.blocked_until = max(standing.next_at, now + self._backoff(max(1, standing.backoff_level)))

    def _least(self, ip: str | None) -> float:
        least = self._settings.min_delay_seconds
        return least if least >= MIN_PUBLIC_DELAY_SECONDS or self._may_go_unclamped(ip) else MIN_PUBLIC_DELAY_SECONDS

    def _note_fault(self, standing: Standing, now: float, answer: Answered) -> None:
        if standing.last_fault_at is not None and now - standing.last_fault_at > FORGIVEN_AFTER_SECONDS:
            standing.backoff_level = 0
        if answer.is_fault or answer.backs_off:
            standing.last_fault_at = now
        if answer.backs_off:
            standing.backoff_level += 1
        elif not answer.is_fault:
            standing.backoff_level = max(0, standing.backoff_level - 1)
        standing.faults_in_a_row = standing.faults_in_a_row + 1 if answer.is_fault else 0

    def _gap(self, standing: Standing, answer: Answered) -> float:
        least = self._least(standing.ip)
        if answer.latency_seconds is not None:
            wanted = self._settings.latency_factor * answer.latency_seconds if least > 0 else 0.0
            standing.adaptive_delay_seconds = min(max(wanted, least), max(self._settings.max_delay_seconds, least))
        gap = self.delay_seconds(standing)
        if answer.backs_off:
            gap = max(gap, self._backoff(standing.backoff_level))
        if answer.retry_after_seconds is not None:
            gap = max(gap, min(answer.retry_after_seconds, self._settings.max_backoff_seconds))
        return gap

    def _backoff(self, level: int) -> float:
        doubled = FIRST_BACKOFF_SECONDS * 2.0 ** min(level - 1, 40)
        most = self._settings.max_backoff_seconds
        return min(most, min(doubled, most) * self._rng.uniform(*_JITTER))
