"""One fetch partition from plan to published parts: what a Spark task calls."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

from recrawl.clock import Clock
from recrawl.config.model import Configuration
from recrawl.errors import StorageError
from recrawl.fetch.answers import AnswerHandler
from recrawl.fetch.back_queues import QueueRoom
from recrawl.fetch.control import Control
from recrawl.fetch.delays import PolitenessSettings
from recrawl.fetch.dns import Resolver, host_name
from recrawl.fetch.engines import make_engine
from recrawl.fetch.guard import AddressPolicy
from recrawl.fetch.journal import JOURNAL_SUFFIX, WARC_SUFFIX, PartitionHistory, PartName
from recrawl.fetch.loop import FetchLoop, LoopParts, monotonic_at
from recrawl.fetch.ownership import Ownership, SpoolLock
from recrawl.fetch.parts import PartSpool, next_attempt, spool_folder
from recrawl.fetch.politeness import Politeness
from recrawl.fetch.progress import ProgressFile
from recrawl.fetch.recorder import Recorder, Tally
from recrawl.fetch.redirects import Redirects
from recrawl.fetch.renewal import Renewal
from recrawl.fetch.robots_gate import RobotsGate, RobotsKey, StoredRobots
from recrawl.fetch.salvage import salvage_spool
from recrawl.fetch.spill import SpillFile
from recrawl.fetch.visits import HostBook
from recrawl.fetch.work import (
    HostRecord,
    KnownHost,
    PageWork,
    PartitionSummary,
    PartitionTask,
    PlanItem,
    PlannedUrl,
    Work,
)
from recrawl.rounds import moment_of
from recrawl.storage import Store
from recrawl.tables.vocabulary import SkipReason
from recrawl.urls.canonical import Canonicalizer, host_of
from recrawl.urls.domains import registered_domain
from recrawl.urls.filters import UrlFilters
from recrawl.urls.keys import url_id

__all__ = [
    "HostRecord",
    "KnownHost",
    "PartitionSummary",
    "PartitionTask",
    "PlannedUrl",
    "StoredRobots",
    "run_partition",
]

#: URLs of a host that are handed to its back queue at once.
_MAX_PUSHED = 1_000


def run_partition(task: PartitionTask, plan: Iterable[PlanItem], clock: Clock, rng: Random) -> PartitionSummary:
    """Settle every URL of a partition's plan: one final row in `fetches`, or one row in `skips`.

    Goes on from what earlier attempts published or left in the spool of this machine.

    Args:
        task: the partition.
        plan: its URLs, those of a host in the order of `rank_in_host`, what is known of a host before
            them; read once, to its end. Best sorted by host.
        clock: the machine's clocks.
        rng: for jitter.

    Raises:
        PartitionLostError: a newer attempt took the partition over; nothing more was published.
        WarcError, StorageError: captures or journals can't be stored.
        ConfigurationError: the hosts file can't be used.
    """
    begin_seconds = clock.monotonic_seconds()
    store = Store(task.configuration.storage)
    ownership = Ownership(store, task.round_id, task.partition, task.attempt_token)
    ownership.take()
    folder = spool_folder(task.configuration, store, task.round_id, task.partition)
    lock = SpoolLock(folder)
    lock.acquire()
    try:
        ownership.check()
        salvaged = salvage_spool(store, folder, task.round_id, task.partition, clock)
        attempt = next_attempt(store, task.round_id, task.partition, folder)
        run = _Attempt(task, store, folder, attempt, ownership, clock, rng)
        tally, published = run.run(plan)
        lock.remove_folder()
    finally:
        lock.release()
    warcs = [name.removesuffix(JOURNAL_SUFFIX) + WARC_SUFFIX for name in salvaged]
    return PartitionSummary(
        planned=tally.planned,
        final=tally.final,
        skipped=tally.skipped,
        requests=tally.requests,
        errors=tally.errors,
        warc_files=tuple([name for name in warcs if store.exists(name)] + published),
        seconds=clock.monotonic_seconds() - begin_seconds,
    )


class _Attempt:
    """One attempt at a partition: builds the moving parts, queues the plan, runs the loop."""

    def __init__(
        self,
        task: PartitionTask,
        store: Store,
        folder: Path,
        attempt: int,
        ownership: Ownership,
        clock: Clock,
        rng: Random,
    ) -> None:
        configuration = task.configuration
        self._task = task
        self._store = store
        self._clock = clock
        self._ownership = ownership
        self._attempt = attempt
        self._spill = SpillFile(folder)
        self._gate = RobotsGate(configuration, self._spill)
        self._history = PartitionHistory.load(store, task.round_id, task.partition, self._gate.restore)
        self._hosts: dict[str, HostRecord] = {}
        self._tally = Tally()
        self._control = Control(store, task.round_id, task.blocked_hosts, task.excluded_prefixes)
        self._policy = AddressPolicy.of(configuration)
        self._resolver = Resolver(configuration.dns, clock)
        self._politeness: Politeness[Work] = Politeness(
            PolitenessSettings.of(configuration.fetch), rng, self._policy.is_allowed_private, QueueRoom(self._spill)
        )
        self._drain_at = monotonic_at(task.deadline, clock)
        self._book = HostBook(task.round_id, self._hosts, self._history.hosts)
        self._spool = PartSpool(
            store, folder, PartName(task.round_id, task.partition, attempt, 1), configuration.fetch,
            _warcinfo(configuration, task.round_id), clock,
            lambda: self._book.take_rows(self._politeness, self._gate, clock), ownership.check,
        )  # fmt: skip
        self._recorder = Recorder(task.round_id, configuration, self._spool, self._tally)
        self._enrolled: set[str] = set()
        self._planned: set[int] = set()
        self._claimed: set[int] = set(self._history.fetched)
        self._domains: set[str] = set()
        #: Whose robots.txt files the plan needs, in its order.
        self._robots_keys: dict[RobotsKey, None] = {}
        self._folder = folder

    def run(self, plan: Iterable[PlanItem]) -> tuple[Tally, list[str]]:
        """Run the attempt to its end."""
        try:
            self._control.refresh(self._clock.now())
            self._queue(plan)
            if self._politeness.queued:
                self._fetch()
            self._spool.publish()
        except OSError as error:
            self._spool.abandon()
            raise StorageError(
                f"The spool folder {self._folder} can't be written: {error.strerror or error}.",
                "Give it room, then run fetch again: it goes on from what was stored.",
            ) from error
        except BaseException:
            self._spool.abandon()
            raise
        finally:
            self._resolver.close()
            self._spill.close()
        return self._tally, self._spool.published

    def _fetch(self) -> None:
        task, clock = self._task, self._clock
        configuration = task.configuration
        redirects = Redirects(
            configuration.fetch.max_redirects, Canonicalizer.from_settings(configuration.urls),
            UrlFilters.from_settings(configuration.urls, moment_of(task.round_id).date()), task.scope,
            self._planned, self._claimed, self._domains,
            lambda host: self._control.is_blocked(host) or self._is_given_up(host), self._control.is_excluded,
        )  # fmt: skip
        answers = AnswerHandler(
            task.round_id, clock, self._policy, self._politeness, self._gate, self._book, self._recorder, redirects,
            self._tally, self._enrol, configuration.fetch.robots_tries, configuration.dns.tries,
        )  # fmt: skip
        engine = make_engine(configuration, clock, str(self._folder), self._resolver)
        renewal = Renewal(engine, self._resolver, self._politeness, self._gate, self._policy, clock)
        progress = ProgressFile(self._store, task.round_id, task.partition, clock)
        parts = LoopParts(
            configuration, clock, task.deadline, engine, self._policy, self._politeness, self._gate, self._book,
            self._spool, self._recorder, self._tally, self._control, self._ownership, progress, answers,
            self._resolver, renewal,
        )  # fmt: skip
        try:
            renewal.begin(self._robots_keys)
            FetchLoop(parts).run()
        finally:
            engine.close()

    def _is_given_up(self, host: str) -> bool:
        state = self._politeness.host(host)
        return state.is_given_up or state.next_at >= self._drain_at

    def _queue(self, plan: Iterable[PlanItem]) -> None:
        """Put the plan into the back queues, host by host; what is settled already is only counted."""
        host = ""
        waiting: list[tuple[float, Work]] = []
        for item in plan:
            if isinstance(item, KnownHost):
                self._take_in(item)
                continue
            if waiting and (item.host != host or len(waiting) >= _MAX_PUSHED):
                self._politeness.push(host, waiting)
                waiting = []
            host = item.host
            self._tally.planned += 1
            self._planned.add(item.url_id)
            self._domains.add(registered_domain(host))
            if item.url_id in self._history.settled:
                self._count_settled(item.url_id)
            elif self._task.drained:
                self._recorder.skipped(item, SkipReason.OPERATOR)
                self._book.note_deferred(host)
            elif self._is_blocked_for_good(host):
                self._recorder.skipped(item, SkipReason.BLOCKED)
                self._book.note_deferred(host)
            else:
                self._queue_one(item, waiting)
        if waiting:
            self._politeness.push(host, waiting)
        self._claimed -= self._planned

    def _take_in(self, known: KnownHost) -> None:
        if known.record is not None:
            self._hosts[known.host] = known.record
        for scheme, robots in known.robots:
            self._gate.learn((scheme, known.host), robots)

    def _is_blocked_for_good(self, host: str) -> bool:
        """Whether the host may not be asked before the deadline."""
        self._enrol(host)
        blocked_until = self._politeness.host(host).blocked_until
        return blocked_until is not None and blocked_until >= self._drain_at

    def _queue_one(self, planned: PlannedUrl, waiting: list[tuple[float, Work]]) -> None:
        not_before = 0.0 if planned.earliest_at is None else monotonic_at(planned.earliest_at, self._clock)
        hop_row = self._history.pending_hops.get(planned.url_id)
        if hop_row is None or not hop_row["redirect_url"]:
            attempt = 1 + self._history.tries.get(planned.url_id, 0)
            work = PageWork(planned, attempt, 0, planned.url_id, planned.url, planned.request_url, planned.host)
            self._robots_keys[work.robots_key] = None
            waiting.append((not_before, work))
            return
        # An earlier attempt published the redirect but not what it led to.
        target = hop_row["redirect_url"]
        target_id = url_id(target)
        self._claimed.add(target_id)
        work = PageWork(
            planned, hop_row["attempt"], hop_row["hop"] + 1, target_id, target, target, host_of(target),
            (planned.request_url,),
        )  # fmt: skip
        self._enrol(work.host)
        self._politeness.push(work.host, [(not_before, work)])

    def _count_settled(self, planned_id: int) -> None:
        if planned_id in self._history.skipped:
            self._tally.skipped += 1
        else:
            self._tally.final += 1

    def _enrol(self, host: str) -> None:
        """Start a host where the last round, or the attempt before, left it."""
        if host in self._enrolled:
            return
        self._enrolled.add(host)
        state = self._politeness.host(host)
        known = self._resolver.known(host_name(host)) if not self._policy.is_proxied else None
        if known is not None and known.addresses:
            state.ip = known.addresses[0]
        record = self._hosts.get(host)
        if record is not None:
            state.crawl_delay_seconds = record.crawl_delay_seconds
            state.adaptive_delay_seconds = record.adaptive_delay_seconds
            state.ip = state.ip or (record.ips[-1] if record.ips else None)
            if record.blocked_until is not None and record.blocked_until > self._clock.now():
                state.blocked_until = monotonic_at(record.blocked_until, self._clock)
                self._politeness.not_before(host, state.blocked_until)
        left = self._history.hosts.get(host)
        accesses = [record.last_access_at if record else None, left.last_access_at if left else None]
        if self._attempt > 1:
            # Requests of a killed attempt that were not journalled may have just ended.
            accesses.append(self._clock.now())
        last_access_at = max((at for at in accesses if at is not None), default=None)
        if last_access_at is not None:
            self._politeness.continue_from(host, monotonic_at(last_access_at, self._clock))


def _warcinfo(configuration: Configuration, round_id: str) -> dict[str, str]:
    agent = configuration.agent
    return {
        "software": f"{agent.name}/{agent.version}",
        "format": "WARC File Format 1.1",
        "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "robots": "obey (RFC 9309)",
        "http-header-user-agent": agent.user_agent,
        "isPartOf": round_id,
    } | ({"operator": agent.contact} if agent.contact else {})
