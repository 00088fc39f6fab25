"""A fast web of generated pages on one loopback port, for benchmarks where simweb is not at hand.

Every page is a pure function of its host and number: 20 to 38 KB of HTML with navigation, a main
text, scripts and links. It answers requests for a host by the Host header or, as a proxy would,
by an absolute URL.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from functools import lru_cache

HOSTS = 1_000
_WORDS = 4_000
_PARAGRAPHS = 400
_PAGES_A_HOST = 1_000
_SCRIPT = "<script>var q=[];for(var i=0;i<9;i++){q.push(i*i)}</script>\n" * 40


def host_names(count: int = HOSTS) -> list[str]:
    """The names of the hosts."""
    return [f"site-{number:05d}.test" for number in range(count)]


@lru_cache(maxsize=1)
def _paragraphs() -> list[str]:
    rng = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(rng.choices(letters, range(len(letters), 0, -1), k=rng.randint(2, 10))) for _ in range(_WORDS)]
    return [
        "<p>" + " ".join(rng.choices(words, k=rng.randint(40, 120))).capitalize() + ".</p>\n"
        for _ in range(_PARAGRAPHS)
    ]


def page_body(host: str, number: int, port: int) -> bytes:
    """The HTML of a page."""
    rng = random.Random(f"{host}/{number}")
    texts = _paragraphs()
    first = rng.randrange(_PARAGRAPHS)
    main = "".join(texts[(first + step) % _PARAGRAPHS] for step in range(rng.randint(24, 52)))
    inside = "".join(
        f'<li><a href="/p/{target}">Page {target} of this site</a></li>\n'
        for target in rng.sample(range(_PAGES_A_HOST), 20)
    )
    outside = "".join(
        f'<li><a href="http://site-{rng.randrange(HOSTS):05d}.test:{port}/p/{rng.randrange(40)}">A neighbour</a></li>\n'
        for _ in range(5)
    )
    return (
        f"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>Page {number} of {host}</title>{_SCRIPT}"
        f"</head><body><nav><ul>{inside}</ul></nav><main><h1>Page {number}</h1>{main}</main>"
        f"<footer><ul>{outside}</ul></footer></body></html>"
    ).encode()


class _Connection(asyncio.Protocol):
    """One kept-alive connection; requests have no body."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head, self._data = self._data[:end], self._data[end + 4 :]
            self._transport.write(self._answer(head.decode("latin-1")))

    def _answer(self, head: str) -> bytes:
        first, *lines = head.split("\r\n")
        target = first.split(" ")[1]
        host = next((line[5:].strip() for line in lines if line[:5].lower() == "host:"), "")
        if target.startswith("http://"):
            host, _, path = target[7:].partition("/")
            target = f"/{path}"
        status, content_type, body = "404 Not Found", "text/plain", b"Not found."
        if target == "/robots.txt":
            status, body = "200 OK", b"User-agent: *\nAllow: /\n"
        elif target.startswith("/p/") and target[3:].isdigit():
            status, content_type = "200 OK", "text/html; charset=utf-8"
            body = page_body(host.partition(":")[0], int(target[3:]), self._port)
        return (
            f"HTTP/1.1 {status}\r\nServer: generated\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(port), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


def main() -> None:
    """Serve on the port given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
