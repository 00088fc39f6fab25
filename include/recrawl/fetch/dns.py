"""Where names are resolved: a hosts file, own name servers, or (by the engine) the system.

`ResolvingEngine` stands before an HTTP engine and fills in `EngineRequest.addresses`; guarding
the addresses stays with the engine, at connect time.
"""

from __future__ import annotations

import ipaddress
import queue
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, slots=True)
class _Cached:
    addresses: tuple[str, ...]
    problem: str
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

    def known(self, name: str) -> tuple[tuple[str, ...], str] | None:
        """(addresses, problem) where the answer is at hand.

        Neither addresses nor a problem means that the system's resolver is to be asked; None that
        `look_up` has to be.
        """
        if is_literal(name):
            return (name,), ""
        if addresses := self._hosts.get(name):
            return addresses, ""
        if self._channel is None:
            return (), ""
        cached = self._cache.get(name)
        if cached is None or cached.expires_seconds <= self._clock.monotonic_seconds():
            return None
        return cached.addresses, cached.problem

    def look_up(self, name: str) -> None:
        """Ask the name servers; `answered` tells when `known` has the answer."""
        assert self._channel is not None

        def on_answer(result: Any, error: int | None) -> None:
            self._answers.put((name, result, error))

        self._channel.getaddrinfo(name, None, callback=on_answer)

    def answered(self) -> list[tuple[str, tuple[str, ...], str]]:
        """(name, addresses, problem) of the look-ups that ended since the last call."""
        found: list[tuple[str, tuple[str, ...], str]] = []
        while True:
            try:
                name, result, error = self._answers.get_nowait()
            except queue.Empty:
                return found
            found.append((name, *self._remember(name, result, error)))

    def forget_failures(self) -> None:
        """Drop what did not resolve, so that it is asked for again."""
        self._cache = {name: cached for name, cached in self._cache.items() if cached.addresses}

    def close(self) -> None:
        """End the channel's thread; look-ups in progress are dropped."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _remember(self, name: str, result: Any, error: int | None) -> tuple[tuple[str, ...], str]:
        addresses: tuple[str, ...] = ()
        problem = ""
        seconds = self._settings.ttl_seconds
        if error is None and result is not None:
            raw = dict.fromkeys(node.addr[0] for node in result.nodes)
            addresses = tuple(address.decode() if isinstance(address, bytes) else address for address in raw)
        if not addresses:
            reason = str(pycares.errno.strerror(error)) if error else "no addresses"
            problem = f"{name} does not resolve: {reason}."
            seconds = self._settings.negative_ttl_seconds
        if len(self._cache) >= _MAX_CACHED_NAMES:
            self._cache.clear()
        self._cache[name] = _Cached(addresses, problem, self._clock.monotonic_seconds() + seconds)
        return addresses, problem


class ResolvingEngine:
    """An engine that resolves names before it hands requests to another; see `Engine`."""

    def __init__(self, inner: Engine, resolver: Resolver, clock: Clock) -> None:
        self._inner = inner
        self._resolver = resolver
        self._clock = clock
        self._waiting: dict[str, list[tuple[EngineRequest, float]]] = {}
        self._failed: list[EngineAnswer] = []
        self._lookup_seconds: dict[int, float] = {}

    @property
    def in_flight(self) -> int:
        return self._inner.in_flight + len(self._failed) + sum(map(len, self._waiting.values()))

    @property
    def capacity(self) -> int:
        return self._inner.capacity

    def submit(self, request: EngineRequest) -> None:
        name = host_name(request.host)
        known = self._resolver.known(name)
        if known is not None:
            self._go_on(request, *known)
            return
        waiting = self._waiting.setdefault(name, [])
        waiting.append((request, self._clock.monotonic_seconds()))
        if len(waiting) == 1:
            self._resolver.look_up(name)

    def poll(self, timeout_seconds: float) -> list[EngineAnswer]:
        deadline = self._clock.monotonic_seconds() + timeout_seconds
        while True:
            self._take_answers()
            if self._failed:
                answers, self._failed = self._failed, []
                return answers
            left_seconds = deadline - self._clock.monotonic_seconds()
            answers = self._inner.poll(min(left_seconds, _LOOK_SECONDS) if self._waiting else max(0.0, left_seconds))
            for answer in answers:
                answer.dns_seconds = self._lookup_seconds.pop(id(answer.request), answer.dns_seconds)
            if answers or left_seconds <= 0 or not self._waiting:
                return answers

    def close(self) -> None:
        self._waiting.clear()
        self._resolver.close()
        self._inner.close()

    def _take_answers(self) -> None:
        # What was just answered is used, even where it may not be kept for a moment (a lifetime of 0).
        for name, addresses, problem in self._resolver.answered():
            for request, since_seconds in self._waiting.pop(name, []):
                seconds = self._clock.monotonic_seconds() - since_seconds
                if addresses:
                    self._lookup_seconds[id(request)] = seconds
                self._go_on(request, addresses, problem, waited_seconds=seconds)

    def _go_on(
        self, request: EngineRequest, addresses: tuple[str, ...], problem: str, waited_seconds: float = 0.0
    ) -> None:
        if problem:
            now = self._clock.now()
            self._failed.append(
                EngineAnswer(
                    request=request, started_at=now - timedelta(seconds=waited_seconds), ended_at=now,
                    body=Body(0), failure=Outcome.DNS_ERROR, detail=problem, total_seconds=waited_seconds,
                )
            )  # fmt: skip
            return
        request.addresses = addresses
        self._inner.submit(request)
