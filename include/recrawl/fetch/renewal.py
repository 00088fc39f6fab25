"""What a task renews before it asks for content: the names of its hosts, then their robots.txt files.

A host waits for its own name and files alone; hosts that have both are asked meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

from recrawl.clock import Clock
from recrawl.fetch.dns import Resolver, ResolvingEngine, host_name
from recrawl.fetch.guard import AddressPolicy
from recrawl.fetch.politeness import Politeness
from recrawl.fetch.robots_gate import RobotsGate, RobotsKey
from recrawl.fetch.work import RobotsWork, Work


class Renewal:
    """Renews what expired, and gets what was never had.

    Args:
        policy: hosts that it refuses by name are left to be refused.
    """

    def __init__(
        self,
        engine: ResolvingEngine,
        resolver: Resolver,
        politeness: Politeness[Work],
        gate: RobotsGate,
        policy: AddressPolicy,
        clock: Clock,
    ) -> None:
        self._engine = engine
        self._resolver = resolver
        self._politeness = politeness
        self._gate = gate
        self._policy = policy
        self._clock = clock
        self._keys: dict[str, list[RobotsKey]] = {}
        self._hosts_of: dict[str, list[str]] = {}

    def begin(self, keys: Iterable[RobotsKey]) -> None:
        """Queue it, for the schemes and hosts of a plan; names that are at hand need no look-up."""
        for key in keys:
            host = key[1]
            if self._politeness.host(host).remaining and self._policy.host_refusal(host) is None:
                self._keys.setdefault(host, []).append(key)
        for host in list(self._keys):
            name = host_name(host)
            # A proxy resolves for itself.
            if self._policy.is_proxied or self._resolver.known(name) is not None:
                self._renew_files(host)
            else:
                self._politeness.hold(host)
                self._hosts_of.setdefault(name, []).append(host)
        self._engine.look_up_ahead(self._hosts_of, self._on_name)

    def stop(self) -> None:
        """Look no more names up; files that are queued are the loop's."""
        self._engine.forget_ahead()
        self._hosts_of.clear()

    def _on_name(self, name: str) -> None:
        resolved = self._resolver.known(name)
        for host in self._hosts_of.pop(name, ()):
            state = self._politeness.host(host)
            # Known before the first request, so that hosts of one address keep its gap from the start.
            if resolved is not None and resolved.addresses and not state.in_flight:
                state.ip = resolved.addresses[0]
            self._renew_files(host)

    def _renew_files(self, host: str) -> None:
        now = self._clock.now()
        missing = [key for key in self._keys.pop(host) if not self._gate.is_known(key, now)]
        if not self._politeness.host(host).remaining:
            return  # given back meanwhile
        if not missing:
            self._politeness.release(host)
            return
        self._politeness.hold(host)
        for key in missing:
            self._politeness.push_urgent(host, RobotsWork.first(key))
