"""Where names are resolved: a hosts file, own name servers, or (by the engine) the system.

`ResolvingEngine` stands before an HTTP engine and fills in `EngineRequest.addresses`; guarding
the addresses stays with the engine, at connect time.
"""

from __future__ import annotations

import ipaddress
import queue
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pycares

from recrawl.clock import Clock
from recrawl.config.model import Dns
from recrawl.errors import ConfigurationError
from recrawl.fetch.body import Body
from recrawl.fetch.engine import Engine, EngineAnswer, EngineRequest
from recrawl.tables.vocabulary import Outcome

_QUERY_TIMEOUT_SECONDS = 5.0
_QUERY_TRIES = 2
#: How often look-ups in progress are looked at; c-ares answers from a thread of its own.
_LOOK_SECONDS = 0.01
_MAX_CACHED_NAMES = 200_000
#: Names that a task asks its name servers for at the same time, ahead of requests.
_MAX_LOOKUPS_AHEAD = 64


def host_name(authority: str) -> str:
    """The name of an authority, without port and brackets."""
    if authority.startswith("["):
        return authority[1 : authority.index("]")]
    return authority.partition(":")[0]


def is_literal(name: str) -> bool:
    """Whether `name` is an IP address."""
    if ":" not in name and not name[-1:].isdigit():  # most names: spared the parser's exception
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def read_hosts_file(path: str) -> dict[str, tuple[str, ...]]:
    """Name → addresses of a file in the form of /etc/hosts; several lines of a name add up.

    Raises:
        ConfigurationError: the file can't be read or a line does not begin with an address.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"dns.hosts_file {path} can't be read: {error.strerror}.") from None
    names: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        address, *aliases = line.partition("#")[0].split() or [""]
        if not address:
            continue
        if not is_literal(address):
            raise ConfigurationError(f"dns.hosts_file {path}, line {number}: {address!r} is no IP address.")
        for alias in aliases:
            key = alias.lower().rstrip(".")
            if address not in names.get(key, ()):
                names[key] = (*names.get(key, ()), address)
    return names


class Resolved(NamedTuple):
    """What a name resolved to.

    Attributes:
        problem: why it has no addresses. Neither addresses nor a problem: the system's resolver is to be asked.
        may_pass: the servers failed or did not answer; asked again, they may.
    """

    addresses: tuple[str, ...]
    problem: str = ""
    may_pass: bool = False


#: Failures of name servers, not of names: a name that does not exist (NXDOMAIN) is no such.
_MAY_PASS = frozenset(
    {
        pycares.errno.ARES_ESERVFAIL, pycares.errno.ARES_EREFUSED, pycares.errno.ARES_EBADRESP,
        pycares.errno.ARES_ECONNREFUSED, pycares.errno.ARES_ETIMEOUT,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Cached:
    resolved: Resolved
    expires_seconds: float


class Resolver:
    """Names to addresses by `dns.hosts_file`, then `dns.servers`; answers are cached."""

    def __init__(self, settings: Dns, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._hosts: Mapping[str, tuple[str, ...]] = read_hosts_file(settings.hosts_file) if settings.hosts_file else {}
        self._cache: dict[str, _Cached] = {}
        self._answers: queue.SimpleQueue[tuple[str, Any, int | None]] = queue.SimpleQueue()
        self._channel: pycares.Channel | None = None
        if settings.servers:
            self._channel = pycares.Channel(
                servers=list(settings.servers), timeout=_QUERY_TIMEOUT_SECONDS, tries=_QUERY_TRIES, lookups="b"
            )

    def known(self, name: str) -> Resolved | None:
        """The answer where it is at hand; None: `look_up` has to be called."""
        if is_literal(name):
            return Resolved((name,))
        if addresses := self._hosts.get(name):
            return Resolved(addresses)
        if self._channel is None:
            return Resolved(())
        cached = self._cache.get(name)
        if cached is None or cached.expires_seconds <= self._clock.monotonic_seconds():
            return None
        return cached.resolved

    def look_up(self, name: str) -> None:
        """Ask the name servers; `answered` tells when `known` has the answer."""
        assert self._channel is not None

        def on_answer(result: Any, error: int | None) -> None:
            self._answers.put((name, result, error))

        self._channel.getaddrinfo(name, None, callback=on_answer)

    def answered(self) -> list[tuple[str, Resolved]]:
        """The look-ups that ended since the last call, by name."""
        found: list[tuple[str, Resolved]] = []
        while True:
            try:
                name, result, error = self._answers.get_nowait()
            except queue.Empty:
                return found
            found.append((name, self._remember(name, result, error)))

    def forget_failures(self) -> None:
        """Drop what did not resolve, so that it is asked for again."""
        self._cache = {name: cached for name, cached in self._cache.items() if cached.resolved.addresses}

    def close(self) -> None:
        """End the channel's thread; look-ups in progress are dropped."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _remember(self, name: str, result: Any, error: int | None) -> Resolved:
        addresses: tuple[str, ...] = ()
        if error is None and result is not None:
            raw = dict.fromkeys(node.addr[0] for node in result.nodes)
            addresses = tuple(address.decode() if isinstance(address, bytes) else address for address in raw)
        if addresses:
            resolved, seconds = Resolved(addresses), self._settings.ttl_seconds
        else:
            reason = str(pycares.errno.strerror(error)) if error else "no addresses"
            resolved = Resolved((), f"{name} does not resolve: {reason}.", error in _MAY_PASS)
            # What may pass is asked again each time.
            seconds = 0.0 if resolved.may_pass else self._settings.negative_ttl_seconds
        if len(self._cache) >= _MAX_CACHED_NAMES:
            self._cache.clear()
        self._cache[name] = _Cached(resolved, self._clock.monotonic_seconds() + seconds)
        return resolved


class ResolvingEngine:
    """An engine that resolves names before it hands requests to another; see `Engine`."""

    def __init__(self, inner: Engine, resolver: Resolver, clock: Clock) -> None:
        self._inner = inner
        self._resolver = resolver
        self._clock = clock
        self._waiting: dict[str, list[tuple[EngineRequest, float]]] = {}
        self._failed: list[EngineAnswer] = []
        self._lookup_seconds: dict[int, float] = {}
        #: Names to be looked up ahead of requests, and those that are.
        self._ahead: deque[str] = deque()
        self._asked_ahead: set[str] = set()
        self._on_name: Callable[[str], None] = lambda name: None

    @property
    def in_flight(self) -> int:
        requests = self._inner.in_flight + len(self._failed) + sum(map(len, self._waiting.values()))
        return requests + len(self._asked_ahead) + bool(self._ahead)

    @property
    def capacity(self) -> int:
        return self._inner.capacity

    def submit(self, request: EngineRequest) -> None:
        name = host_name(request.host)
        known = self._resolver.known(name)
        if known is not None:
            self._go_on(request, known)
            return
        waiting = self._waiting.setdefault(name, [])
        waiting.append((request, self._clock.monotonic_seconds()))
        if len(waiting) == 1 and name not in self._asked_ahead:
            self._resolver.look_up(name)

    def look_up_ahead(self, names: Iterable[str], on_name: Callable[[str], None]) -> None:
        """Resolve names before anything is asked of their hosts, some at a time.

        Args:
            on_name: called by `poll` when one is resolved, or could not be.
        """
        self._ahead.extend(names)
        self._on_name = on_name

    def forget_ahead(self) -> None:
        """Look nothing more up ahead."""
        self._ahead.clear()
        self._asked_ahead.clear()

    def poll(self, timeout_seconds: float) -> list[EngineAnswer]:
        deadline = self._clock.monotonic_seconds() + timeout_seconds
        while True:
            self._start_ahead()
            has_news = self._take_answers()
            if self._failed:
                answers, self._failed = self._failed, []
                return answers
            left_seconds = deadline - self._clock.monotonic_seconds()
            is_looking_up = bool(self._waiting or self._asked_ahead)
            patience_seconds = min(left_seconds, _LOOK_SECONDS) if is_looking_up else max(0.0, left_seconds)
            answers = self._inner.poll(0.0 if has_news else patience_seconds)
            for answer in answers:
                answer.dns_seconds = self._lookup_seconds.pop(id(answer.request), answer.dns_seconds)
            if answers or has_news or left_seconds <= 0 or not is_looking_up:
                return answers

    def close(self) -> None:
        self._waiting.clear()
        self.forget_ahead()
        self._resolver.close()
        self._inner.close()

    def _start_ahead(self) -> None:
        most = max(1, min(_MAX_LOOKUPS_AHEAD, self.capacity // 2))
        while self._ahead and len(self._asked_ahead) < most:
            name = self._ahead.popleft()
            self._asked_ahead.add(name)
            if name not in self._waiting:
                self._resolver.look_up(name)

    def _take_answers(self) -> bool:
        """Go on with what waited for a name; whether a name that was looked up ahead is known now."""
        has_news = False
        # What was just answered is used, even where it may not be kept for a moment (a lifetime of 0).
        for name, resolved in self._resolver.answered():
            if name in self._asked_ahead:
                self._asked_ahead.discard(name)
                self._on_name(name)
                has_news = True
            for request, since_seconds in self._waiting.pop(name, []):
                seconds = self._clock.monotonic_seconds() - since_seconds
                if resolved.addresses:
                    self._lookup_seconds[id(request)] = seconds
                self._go_on(request, resolved, waited_seconds=seconds)
        return has_news

    def _go_on(self, request: EngineRequest, resolved: Resolved, waited_seconds: float = 0.0) -> None:
        if resolved.problem:
            now = self._clock.now()
            self._failed.append(
                EngineAnswer(
                    request=request, started_at=now - timedelta(seconds=waited_seconds), ended_at=now,
                    body=Body(0), failure=Outcome.DNS_ERROR, detail=resolved.problem, may_pass=resolved.may_pass,
                    total_seconds=waited_seconds,
                )
            )  # fmt: skip
            return
        request.addresses = resolved.addresses
        self._inner.submit(request)
