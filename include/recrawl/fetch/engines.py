"""Makes the engine that a configuration asks for."""

from __future__ import annotations

import base64

from recrawl.clock import Clock
from recrawl.config.model import Configuration
from recrawl.fetch.curl_engine import CurlEngine
from recrawl.fetch.dns import Resolver, ResolvingEngine
from recrawl.fetch.engine import Engine, EngineAnswer, EngineRequest, EngineSettings
from recrawl.fetch.requests_engine import RequestsEngine

#: How long one engine is waited for while the other has requests in flight too.
_TURN_SECONDS = 0.02


class SchemeRouter:
    """ftp by libcurl, http and https by another engine; see `Engine`."""

    def __init__(self, http: Engine, ftp: Engine) -> None:
        self._http = http
        self._ftp = ftp

    @property
    def in_flight(self) -> int:
        return self._http.in_flight + self._ftp.in_flight

    @property
    def capacity(self) -> int:
        return self._http.capacity

    def submit(self, request: EngineRequest) -> None:
        (self._ftp if request.url.startswith("ftp:") else self._http).submit(request)

    def poll(self, timeout_seconds: float) -> list[EngineAnswer]:
        if not self._ftp.in_flight:
            return self._http.poll(timeout_seconds)
        return self._ftp.poll(min(timeout_seconds, _TURN_SECONDS)) + self._http.poll(0.0)

    def close(self) -> None:
        self._http.close()
        self._ftp.close()


def make_engine(
    configuration: Configuration, clock: Clock, spool_dir: str | None, resolver: Resolver
) -> ResolvingEngine:
    """The engine of `fetch.engine`, behind the resolver. Raises ConfigurationError for a bad hosts file."""
    settings = EngineSettings.of(configuration, spool_dir)
    engine: Engine = CurlEngine(settings, clock)
    if configuration.fetch.engine == "requests":
        engine = SchemeRouter(RequestsEngine(settings, clock), engine)
    return ResolvingEngine(engine, resolver, clock)


def host_secrets(configuration: Configuration, host: str) -> tuple[tuple[tuple[str, str], ...], str, str]:
    """(headers, user name, password) that `fetch.host_settings` has for a host.

    Credentials for HTTP become a Basic Authorization header (RFC 7617), so that every engine
    sends them without a round trip; FTP takes them as they are.
    """
    settings = configuration.fetch.host_settings.get(host)
    if settings is None:
        return (), "", ""
    headers = [(name, secret.get_secret_value()) for name, secret in settings.headers.items()]
    password = settings.password.get_secret_value()
    if settings.username and not any(name.lower() == "authorization" for name, _ in headers):
        token = base64.b64encode(f"{settings.username}:{password}".encode()).decode("ascii")
        headers.append(("Authorization", f"Basic {token}"))
    return tuple(headers), settings.username, password
