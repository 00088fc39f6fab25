"""The event loop of one fetch task: who may be asked next, and what follows from each answer."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from recrawl.clock import Clock
from recrawl.config.model import Configuration
from recrawl.fetch.answers import AnswerHandler
from recrawl.fetch.bandwidth import Bandwidth
from recrawl.fetch.control import Control
from recrawl.fetch.dns import Resolver
from recrawl.fetch.engine import Engine, EngineAnswer, EngineRequest
from recrawl.fetch.engines import host_secrets
from recrawl.fetch.guard import AddressPolicy
from recrawl.fetch.journal import time_text
from recrawl.fetch.ownership import Ownership
from recrawl.fetch.parts import PartSpool
from recrawl.fetch.politeness import HostState, Politeness
from recrawl.fetch.progress import ProgressFile
from recrawl.fetch.recorder import Recorder, Tally
from recrawl.fetch.renewal import Renewal
from recrawl.fetch.robots_gate import MAX_ROBOTS_BYTES, RobotsGate, Verdict
from recrawl.fetch.uplink import Fault, Uplink, is_network_failure
from recrawl.fetch.visits import HostBook
from recrawl.fetch.work import PageWork, RobotsWork, Work
from recrawl.tables.vocabulary import Outcome, SkipReason

#: How often ownership, the stop file and the inbox are looked at and the progress file is written: an
#: attempt that lost its partition has to end within 10 s.
CHECK_SECONDS = 8.0
#: How long requests in flight may take to end once no new ones start.
DRAIN_SECONDS = 10.0
#: Starts between two looks at the network, so that a queue of refusals does not starve it.
_STARTS_A_TURN = 200
_LONGEST_WAIT_SECONDS = 1.0
#: How often a doubt about the uplink is looked at.
_DOUBT_SECONDS = 0.25

_NOT_IN_URLS = re.compile(r"[\x00-\x20]")

_log = logging.getLogger(__name__)


@dataclass
class LoopParts:
    """The moving parts that the loop connects."""

    configuration: Configuration
    clock: Clock
    deadline: datetime
    engine: Engine
    policy: AddressPolicy
    politeness: Politeness[Work]
    gate: RobotsGate
    book: HostBook
    spool: PartSpool
    recorder: Recorder
    tally: Tally
    control: Control
    ownership: Ownership
    progress: ProgressFile
    answers: AnswerHandler
    resolver: Resolver
    renewal: Renewal


class FetchLoop:
    """Runs until every planned URL is settled."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._politeness = parts.politeness
        self._engine = parts.engine
        self._checked_at = self._clock.monotonic_seconds()
        self._drain_at = self._checked_at + (parts.deadline - self._clock.now()).total_seconds()
        self._stop_reason: SkipReason | None = None
        self._asking: dict[int, PageWork] = {}
        fetch = parts.configuration.fetch
        self._bandwidth = Bandwidth(fetch.max_bytes_per_second, self._checked_at)
        self._uplink = Uplink(fetch.control_address)
        #: Failures of the network that may be our own.
        self._doubted: list[EngineAnswer] = []
        self._paused_at: float | None = None
        self._patience_seconds = fetch.outage_patience_seconds
        #: (scheme, host) pairs whose Crawl-delay was looked up.
        self._prepared: set[tuple[str, str]] = set()

    def run(self) -> None:
        """Fetch until nothing is left, the deadline passes or somebody stops the round.

        Raises:
            PartitionLostError: a newer attempt took the partition over.
            WarcError, StorageError, OSError: captures can't be stored.
        """
        try:
            if self._parts.control.is_stopped():
                self._stop_reason = SkipReason.OPERATOR
            self._give_back_blocked()
            self._give_back_late()
            self._write_progress()
            while self._stop_reason is None and (self._politeness.queued or self._engine.in_flight or self._doubted):
                self._turn()
            if self._stop_reason is not None:
                self._drain(self._stop_reason)
            self._write_progress()
        finally:
            self._uplink.close()

    def _turn(self) -> None:
        now = self._clock.monotonic_seconds()
        if now >= self._drain_at:
            self._stop_reason = SkipReason.DEADLINE
            return
        if self._paused_at is None:
            self._start_what_may(now)
            wake_at = self._politeness.wake_at()
            if not self._engine.in_flight and (wake_at is None or wake_at >= self._drain_at):
                self._give_back_late()
        self._handle(self._engine.poll(self._wait_seconds()))
        self._watch_uplink()
        self._parts.spool.tend()
        if self._clock.monotonic_seconds() - self._checked_at >= CHECK_SECONDS:
            self._check()

    # -- starting ----------------------------------------------------------------------

    def _start_what_may(self, now: float) -> None:
        for _ in range(_STARTS_A_TURN):
            if self._engine.in_flight >= self._engine.capacity:
                return
            if self._bandwidth.wait_seconds(now, self._engine.in_flight) > 0:
                return
            popped = self._politeness.pop(now)
            if popped is None:
                return
            state, work = popped
            if isinstance(work, RobotsWork):
                self._request(state, work, work.url, MAX_ROBOTS_BYTES)
            else:
                self._start_page(state, work)

    def _start_page(self, state: HostState[Work], work: PageWork) -> None:
        parts = self._parts
        if parts.control.is_excluded(work.url):
            self._politeness.put_back(state)
            self._skip(work, SkipReason.EXCLUDED)
            return
        refusal = self._refusal(work)
        if refusal is None:
            key = work.robots_key
            now = self._clock.now()
            if not parts.gate.is_known(key, now):
                self._politeness.push_front(state.name, work)
                self._politeness.hold(state.name)
                robots = RobotsWork.first(key)
                self._request(state, robots, robots.url, MAX_ROBOTS_BYTES)
                return
            if key not in self._prepared:
                self._prepared.add(key)
                parts.answers.put_in_force(key)
                if state.next_at > self._clock.monotonic_seconds():
                    # A stored file asks for a longer gap since the host's last access.
                    self._politeness.push_front(state.name, work)
                    self._politeness.put_back(state)
                    return
            verdict = parts.gate.judge_url(key, work.request_url, now)
            if verdict.outcome is None:
                self._asking[id(work)] = work
                self._request(state, work, work.request_url, work.planned.max_bytes, verdict)
                return
            refusal = verdict
        parts.recorder.refused(work, time_text(self._clock.now()), refusal)
        self._politeness.put_back(state)

    def _refusal(self, work: PageWork) -> Verdict | None:
        """What is wrong with a URL before any request is made for it."""
        url = work.request_url
        if "://" not in url or _NOT_IN_URLS.search(url):
            return Verdict(Outcome.INVALID_URL, None, "", "The URL can't be requested.")
        problem = self._parts.policy.host_refusal(work.host)
        return None if problem is None else Verdict(Outcome.ADDRESS_REFUSED, None, "", problem)

    def _request(
        self, state: HostState[Work], work: Work, url: str, max_bytes: int, verdict: Verdict | None = None
    ) -> None:
        secret_headers, username, password = host_secrets(self._parts.configuration, work.host)
        headers: tuple[tuple[str, str], ...] = ()
        if isinstance(work, PageWork):
            headers = _conditions(work)
            self._parts.answers.expect(work, verdict, state.required_gap_seconds)
        self._parts.book.note_start(state, self._clock.monotonic_seconds())
        self._parts.tally.requests += 1
        self._engine.submit(
            EngineRequest(url, work.host, max_bytes, headers, secret_headers, username, password, work=work)
        )

    def _wait_seconds(self) -> float:
        now = self._clock.monotonic_seconds()
        until = min(now + _LONGEST_WAIT_SECONDS, self._drain_at, self._checked_at + CHECK_SECONDS)
        if self._paused_at is not None or self._doubted:
            until = min(until, now + _DOUBT_SECONDS)
        wake_at = self._politeness.wake_at()
        if wake_at is not None and self._paused_at is None and self._engine.in_flight < self._engine.capacity:
            paid_at = now + self._bandwidth.wait_seconds(now, self._engine.in_flight)
            until = min(until, max(wake_at, paid_at))
        if self._engine.in_flight:
            return max(0.0, until - now)
        # An engine without work returns at once: wait here, not in circles.
        if until > now:
            self._clock.sleep(until - now)
        return 0.0

    # -- answers -----------------------------------------------------------------------

    def _handle(self, answers: list[EngineAnswer]) -> None:
        try:
            self._settle_or_doubt(answers)
        except BaseException:
            for answer in answers:
                answer.body.close()
            raise

    def _settle_or_doubt(self, answers: list[EngineAnswer]) -> None:
        if not self._uplink.is_watched:
            for answer in answers:
                self._settle(answer)
            return
        now = self._clock.monotonic_seconds()
        for answer in answers:
            failed = is_network_failure(answer)
            self._uplink.note(answer.request.host, now, failed)
            if failed:
                self._doubted.append(answer)
            else:
                self._settle(answer)
        if not all(map(is_network_failure, answers)) and not self._uplink.most_fail():
            self._believe()

    def _settle(self, answer: EngineAnswer) -> None:
        """An answer that counts."""
        if answer.body.fault is not None:
            raise answer.body.fault
        work = answer.request.work
        assert isinstance(work, PageWork | RobotsWork)
        self._asking.pop(id(work), None)
        self._bandwidth.received(answer.body.size_bytes)
        state = self._politeness.host(work.host)
        self._parts.answers.handle(work, answer, state)
        answer.body.close()
        if state.is_given_up and state.remaining:
            self._give_back(state.name, SkipReason.HOST_ERRORS)

    # -- the uplink --------------------------------------------------------------------

    def _watch_uplink(self) -> None:
        """Find out whose fault doubted failures are; pause while it is ours."""
        if not self._doubted and self._paused_at is None:
            return
        now = self._clock.monotonic_seconds()
        fault = self._uplink.judge(now)
        if self._paused_at is not None:
            self._take_back()
        if fault is Fault.HOSTS:
            self._believe()
            if self._paused_at is not None:
                _log.warning("The uplink is back after %.0f s.", now - self._paused_at)
                self._paused_at = None
        elif fault is Fault.OURS:
            self._take_back()
            if self._paused_at is None:
                _log.warning("Hosts and the control address fail: our uplink is down; fetching pauses.")
                self._paused_at = now
                self._uplink.forget()
                self._parts.resolver.forget_failures()
        if self._paused_at is not None and now - self._paused_at >= self._patience_seconds:
            self._stop_reason = SkipReason.NETWORK_DOWN

    def _believe(self) -> None:
        """The doubted failures are the hosts' own."""
        doubted, self._doubted = self._doubted, []
        for answer in doubted:
            self._settle(answer)

    def _take_back(self) -> None:
        """The doubted failures were ours: what failed is asked for again, and counts against nobody."""
        doubted, self._doubted = self._doubted, []
        for answer in doubted:
            work = answer.request.work
            assert isinstance(work, PageWork | RobotsWork)
            self._asking.pop(id(work), None)
            answer.body.close()
            state = self._politeness.host(work.host)
            self._politeness.undone(state, self._clock.monotonic_seconds())
            if isinstance(work, PageWork):
                self._parts.answers.forget(work)
                self._politeness.push_front(state.name, work)
            else:
                self._politeness.push_urgent(state.name, work)

    # -- giving back -------------------------------------------------------------------

    def _skip(self, work: PageWork, reason: SkipReason) -> None:
        self._parts.recorder.skipped(work.planned, reason)
        self._parts.book.note_deferred(work.planned.host)

    def _give_back(self, host: str, reason: SkipReason) -> None:
        """Turn what is left of a host into skips; robots.txt files looked for there are unreachable."""
        for work in self._politeness.drop(host):
            if isinstance(work, PageWork):
                self._skip(work, reason)
            elif work.hop or work.attempt > 1:  # of a file that was never asked for, nothing is known
                self._parts.answers.robots_failed(work, f"the host {host} is not asked any more ({reason.value})")

    def _give_back_late(self) -> None:
        """Give back hosts that can't be asked before the deadline: to wait for them would be idle."""
        for state in list(self._politeness.hosts()):
            ready_at = state.ready_at()
            if ready_at is None or ready_at < self._drain_at:
                continue
            if state.backoff_level and state.next_at >= self._drain_at:
                state.blocked_until = max(state.next_at, state.blocked_until or 0.0)
                self._give_back(state.name, SkipReason.BLOCKED)
            else:
                self._give_back(state.name, SkipReason.DEADLINE)

    def _give_back_blocked(self) -> None:
        for state in list(self._politeness.hosts()):
            if state.remaining and self._parts.control.is_blocked(state.name):
                self._give_back(state.name, SkipReason.BLOCKED)

    def _drain(self, reason: SkipReason) -> None:
        """Start nothing more, wait a little for what is in flight, give back the rest."""
        self._parts.renewal.stop()
        if reason is not SkipReason.NETWORK_DOWN:
            self._believe()
        until = self._clock.monotonic_seconds() + DRAIN_SECONDS
        while self._engine.in_flight and (left_seconds := until - self._clock.monotonic_seconds()) > 0:
            self._handle(self._engine.poll(min(left_seconds, _LONGEST_WAIT_SECONDS)))
        if reason is SkipReason.NETWORK_DOWN:
            self._take_back()
        else:
            self._believe()
        self._parts.answers.is_closing = True
        for state in list(self._politeness.hosts()):
            self._give_back(state.name, reason)
        for work in self._asking.values():
            self._skip(work, reason)
        self._asking.clear()

    # -- every ten seconds -------------------------------------------------------------

    def _check(self) -> None:
        self._checked_at = self._clock.monotonic_seconds()
        self._parts.ownership.check()
        if self._parts.control.is_stopped():
            self._stop_reason = SkipReason.OPERATOR
        elif self._parts.control.refresh(self._clock.now()):
            self._give_back_blocked()
        self._give_back_late()
        self._write_progress()

    def _write_progress(self) -> None:
        tally = self._parts.tally
        self._parts.progress.write(
            self._politeness, tally.planned, tally.settled, tally.answered, tally.errors, self._parts.deadline
        )


def _conditions(work: PageWork) -> tuple[tuple[str, str], ...]:
    """The conditional headers of a recrawl (RFC 9110, section 13.1); only for the planned URL itself."""
    if work.hop or work.scheme == "ftp":
        return ()
    pairs = (("If-None-Match", work.planned.etag), ("If-Modified-Since", work.planned.last_modified))
    return tuple((name, value) for name, value in pairs if value and value.isprintable())


def monotonic_at(moment: datetime, clock: Clock) -> float:
    """The monotonic seconds at which the wall clock shows `moment`."""
    seconds = (moment - clock.now()) / timedelta(seconds=1)
    return clock.monotonic_seconds() + seconds
