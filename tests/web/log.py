"""What a web server can know of the requests that it got."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hit:
    """One request.

    Attributes:
        host: the Host header in lower case, without the port.
        address: the local address that was connected to.
        connection: a number for each connection.
        method: the request method.
        path: path and query as sent.
        headers: the request's headers, names in lower case, in their order.
        status: the status answered; 0 where the answer was no HTTP.
        started_seconds: when the head of the request had come, on `time.monotonic`.
        ended_seconds: when the last byte of the answer had gone, or the client had left.
        body_bytes: bytes of the answer given to the network, head included.
        left: the client left before the answer was whole.
    """

    host: str
    address: str
    connection: int
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    status: int
    started_seconds: float
    ended_seconds: float
    body_bytes: int
    left: bool

    def header(self, name: str) -> str | None:
        """The first value of the header `name`, or None."""
        return next((value for key, value in self.headers if key == name.lower()), None)
