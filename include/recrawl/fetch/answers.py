"""What follows from an answer: rows, captures, redirect hops, rules in force, and politeness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recrawl.clock import Clock
from recrawl.fetch.capture import decoded_body, outcome_of
from recrawl.fetch.delays import Answered
from recrawl.fetch.engine import EngineAnswer
from recrawl.fetch.guard import AddressPolicy
from recrawl.fetch.heads import ResponseHeaders, retry_after_seconds
from recrawl.fetch.politeness import HostState, Politeness
from recrawl.fetch.recorder import Recorder, Tally
from recrawl.fetch.redirects import Redirects, shown
from recrawl.fetch.robots_gate import (
    MAX_ROBOTS_BYTES,
    MAX_ROBOTS_REDIRECTS,
    RobotsFetch,
    RobotsGate,
    RobotsKey,
    Verdict,
)
from recrawl.fetch.visits import HostBook
from recrawl.fetch.work import PageWork, RobotsWork, Work
from recrawl.robots.policy import outcome_of as robots_outcome
from recrawl.tables.vocabulary import HOST_FAULTS, Outcome, RobotsOutcome, TruncatedReason
from recrawl.urls.canonical import host_of

_BACKS_OFF = HOST_FAULTS - {Outcome.SERVER_ERROR}


class AnswerHandler:
    """Takes answers from the loop.

    Args:
        enrol: prepares a host before its first request.
        robots_tries: how often an unreachable robots.txt is asked for.
        dns_tries: how often a page is tried whose name the name servers fail to resolve.

    Attributes:
        is_closing: the task ends; hosts that wait for a robots.txt are not released any more.
    """

    def __init__(
        self, round_id: str, clock: Clock, policy: AddressPolicy, politeness: Politeness[Work], gate: RobotsGate,
        book: HostBook, recorder: Recorder, redirects: Redirects, tally: Tally, enrol: Callable[[str], None],
        robots_tries: int, dns_tries: int,
    ) -> None:  # fmt: skip
        self._enrol = enrol
        self._robots_tries = robots_tries
        self._dns_tries = dns_tries
        self._round_id = round_id
        self._clock = clock
        self._policy = policy
        self._politeness = politeness
        self._gate = gate
        self._book = book
        self._recorder = recorder
        self._redirects = redirects
        self._tally = tally
        self._expected: dict[int, tuple[Verdict, float]] = {}
        self.is_closing = False

    def expect(self, work: PageWork, verdict: Verdict | None, delay_seconds: float) -> None:
        """A page is asked for: what robots.txt said and the gap that was required."""
        assert verdict is not None
        self._expected[id(work)] = verdict, delay_seconds

    def forget(self, work: PageWork) -> None:
        """The page asked for is asked for again later, as if this request had not been."""
        self._expected.pop(id(work), None)

    def handle(self, work: Work, answer: EngineAnswer, state: HostState[Work]) -> None:
        """One answer."""
        has_head = bool(answer.response_head)
        headers = ResponseHeaders(answer.response_head) if has_head else None
        is_redirect = answer.status is not None and 300 <= answer.status < 400 and answer.status != 304
        location = _text(headers.first("location")) if headers is not None and is_redirect else None
        outcome = outcome_of(answer, location is not None)
        self._be_polite(state, answer, headers, outcome, isinstance(work, RobotsWork))
        if isinstance(work, RobotsWork):
            self._handle_robots(work, answer, headers, location)
        else:
            self._tally.answered += 1
            self._handle_page(work, answer, headers, location, outcome)

    def _be_polite(
        self,
        state: HostState[Work],
        answer: EngineAnswer,
        headers: ResponseHeaders | None,
        outcome: Outcome,
        is_robots: bool,
    ) -> None:
        is_cut = answer.truncated in (TruncatedReason.DISCONNECT, TruncatedReason.TIME)
        is_fault = outcome in HOST_FAULTS or is_cut
        asks_for_less = outcome is Outcome.RATE_LIMITED or answer.status == 503
        retry_after = None
        if asks_for_less and headers is not None:
            retry_after = retry_after_seconds(headers.first("retry-after"), answer.ended_at)
        self._politeness.finished(
            state,
            self._clock.monotonic_seconds(),
            Answered(
                latency_seconds=None if answer.failure is not None else answer.total_seconds,
                is_fault=is_fault,
                # A robots.txt is asked for again: not sooner than a host that fails should be.
                backs_off=asks_for_less or outcome in _BACKS_OFF or (is_fault and (is_cut or is_robots)),
                retry_after_seconds=retry_after,
                ip=answer.ip,
            ),
        )
        self._tally.errors += is_fault
        self._book.note_answer(state.name, answer, is_fault, retry_after)

    # -- pages -------------------------------------------------------------------------

    def _handle_page(
        self,
        work: PageWork,
        answer: EngineAnswer,
        headers: ResponseHeaders | None,
        location: str | None,
        outcome: Outcome,
    ) -> None:
        verdict, delay_seconds = self._expected.pop(id(work))
        metadata = {"via": work.chain[-1]} if work.chain else {}
        metadata["robots"] = "allowed"
        if verdict.rule:
            metadata["robotsRule"] = verdict.rule
        if verdict.digest:
            metadata["robotsDigest"] = f"sha256:{verdict.digest}"
        planned = work.planned if work.hop == 0 else None
        capture = self._recorder.capture(answer, headers, work.planned.max_bytes, planned, metadata)
        detail = ""
        if outcome is Outcome.NOT_MODIFIED and capture.revisit is None:
            outcome, detail = Outcome.PROTOCOL_ERROR, "304 to a request without conditions."
        redirect_url = follow = None
        if outcome is Outcome.REDIRECT:
            assert location is not None
            outcome, redirect_url, follow, detail = self._redirects.next_hop(work, location)
        elif outcome is Outcome.INVALID_URL and answer.status is not None:
            detail = "A redirect without Location."
        elif answer.may_pass and work.attempt < self._dns_tries and not self.is_closing:
            follow = replace(work, attempt=work.attempt + 1)
        self._recorder.answered(
            work, answer, capture, outcome, final=follow is None, verdict=verdict, delay_seconds=delay_seconds,
            redirect_url=redirect_url, detail=detail,
        )  # fmt: skip
        if follow is not None:
            self._enrol(follow.host)
            self._politeness.push_front(follow.host, follow)

    # -- robots.txt --------------------------------------------------------------------

    def _handle_robots(
        self, work: RobotsWork, answer: EngineAnswer, headers: ResponseHeaders | None, location: str | None
    ) -> None:
        self._recorder.capture(answer, headers, MAX_ROBOTS_BYTES, None, {"robotsOf": f"{work.key[0]}://{work.key[1]}/"})
        if location is not None and work.hop < MAX_ROBOTS_REDIRECTS:
            problem = self._follow_robots(work, location)
            if problem:
                self.robots_failed(work, problem)
            return
        is_whole = answer.failure is None and answer.truncated in (None, TruncatedReason.LENGTH)
        has_body = headers is not None and answer.status is not None and 200 <= answer.status < 300 and is_whole
        # Where a redirect led, the failure says nothing about the host that was asked first.
        failure, status = answer.failure if work.hop == 0 else None, answer.status if is_whole else None
        detail = answer.detail if work.hop == 0 else f"{answer.request.url}: {answer.detail}".removesuffix(": ")
        if answer.request.url.startswith("ftp:"):  # RFC 9309 speaks of HTTP; the sense is the same
            status = {None: 200, Outcome.NOT_FOUND: 404, Outcome.FORBIDDEN: 403}.get(answer.failure)
            has_body = answer.failure is None
        body = decoded_body(answer, headers or ResponseHeaders(b""), MAX_ROBOTS_BYTES) if has_body else b""
        target = answer.request.url if work.hop else None
        detail = detail if status is None else ""
        fetch = RobotsFetch(status, body, answer.ended_at, failure, detail, target, answer.may_pass)
        if not self._asks_again(work, fetch):
            self._accept(work.key, fetch)

    def _follow_robots(self, work: RobotsWork, location: str) -> str:
        """Look for a robots.txt where a redirect points, also at another host (RFC 9309, section 2.3.1.2)."""
        resolved = self._redirects.resolve(location, work.url)
        if resolved is None:
            return f"redirected to {shown(location)}, which can't be requested"
        target, request_url = resolved
        host = host_of(target)
        if problem := self._policy.host_refusal(host) or self._redirects.closed_reason(host):
            return problem
        if host != work.key[1]:
            self._politeness.hold(work.key[1])
        self._enrol(host)
        self._politeness.push_urgent(host, RobotsWork(work.key, request_url, host, work.hop + 1, work.attempt))
        return ""

    def _asks_again(self, work: RobotsWork, fetch: RobotsFetch) -> bool:
        """Ask for an unreachable file once more, after the back-off; the host stays held till then."""
        host = work.key[1]
        if (
            self.is_closing
            or work.attempt >= self._robots_tries
            or robots_outcome(fetch.status) is not RobotsOutcome.UNREACHABLE
            or (fetch.failure in (Outcome.DNS_ERROR, Outcome.ADDRESS_REFUSED) and not fetch.may_pass)
            or self._gate.can_stand_in(work.key, fetch.fetched_at)
            or self._redirects.closed_reason(host)
        ):
            return False
        self._politeness.not_before(host, self._politeness.host(work.host).next_at)
        self._politeness.push_urgent(host, RobotsWork.first(work.key, work.attempt + 1))
        return True

    def robots_failed(self, work: RobotsWork, detail: str) -> None:
        """A robots.txt can't be had, for a reason that no answer gave."""
        self._accept(work.key, RobotsFetch(None, b"", self._clock.now(), None, detail))

    def _accept(self, key: RobotsKey, fetch: RobotsFetch) -> None:
        if self.is_closing:
            return
        self._recorder.robots(self._gate.accept(key, fetch, self._round_id))
        self.put_in_force(key)
        self._politeness.release(key[1])

    def put_in_force(self, key: RobotsKey) -> None:
        """Let the Crawl-delay of the host's files count from now on."""
        host = key[1]
        delays = (self._gate.crawl_delay_seconds((scheme, host)) for scheme in ("http", "https", "ftp"))
        self._politeness.set_crawl_delay(host, max((delay for delay in delays if delay is not None), default=None))
        self._book.note_robots(key)


def _text(value: str | None) -> str | None:
    """A header's value as text: UTF-8 where it is that, else as it came, byte by byte."""
    if value is None or value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return value
