"""Pairs of connected sockets, and the poller of a test."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from kpybroker.broker.loop.poller import Poller

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pairs() -> Iterator[Callable[[], Pair]]:
    made: list[socket.socket] = []

    def make() -> Pair:
        pair = socket.socketpair()
        for sock in pair:
            sock.setblocking(False)
        made.extend(pair)
        return pair

    yield make
    for sock in made:
        sock.close()


def new_poller() -> Poller:
    poller = Poller.of_this_run()
    assert poller is not None
    return poller
