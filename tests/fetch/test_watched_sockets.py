"""Which sockets are ready."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pycurl
import pytest

from recrawl.fetch.watched_sockets import MAX_READY, WatchedSockets


@pytest.fixture(params=["epoll", "poll"])
def sockets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[WatchedSockets]:
    """By either way of the system."""
    if request.param == "poll":
        monkeypatch.delattr(select, "epoll", raising=False)
    elif not hasattr(select, "epoll"):
        pytest.skip("this system has no epoll")
    watched = WatchedSockets()
    yield watched
    watched.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of one connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_what_is_waited_for_is_told(sockets: WatchedSockets, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    sockets.watch(ours.fileno(), pycurl.POLL_IN)
    assert sockets.ready(0) == []
    theirs.send(b"x")
    assert sockets.ready(1) == [(ours.fileno(), pycurl.CSELECT_IN)]
    sockets.watch(ours.fileno(), pycurl.POLL_OUT)
    assert sockets.ready(1) == [(ours.fileno(), pycurl.CSELECT_OUT)]
    sockets.watch(ours.fileno(), pycurl.POLL_INOUT)
    assert sockets.ready(1) == [(ours.fileno(), pycurl.CSELECT_IN | pycurl.CSELECT_OUT)]
    sockets.watch(ours.fileno(), 0)
    sockets.watch(ours.fileno(), 0)
    assert sockets.ready(0) == []


def test_a_closed_connection_wakes_whatever_was_waited_for(
    sockets: WatchedSockets, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    sockets.watch(ours.fileno(), pycurl.POLL_IN)
    theirs.close()
    ((descriptor, bits),) = sockets.ready(1)
    assert descriptor == ours.fileno()
    assert bits & pycurl.CSELECT_IN


def test_no_more_than_a_batch_is_told_at_once_and_all_in_turn() -> None:
    if not hasattr(select, "epoll"):
        pytest.skip("this system has no epoll")
    watched = WatchedSockets()
    pairs = [socket.socketpair() for _ in range(MAX_READY + 10)]
    for ours, theirs in pairs:
        watched.watch(ours.fileno(), pycurl.POLL_IN)
        theirs.send(b"x")
    first, second = watched.ready(1), watched.ready(1)
    assert len(first) == len(second) == MAX_READY
    assert {descriptor for descriptor, _ in first + second} == {ours.fileno() for ours, _ in pairs}
    watched.close()
    for both in pairs:
        for end in both:
            end.close()
