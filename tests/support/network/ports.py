"""Ports for servers that read theirs from a file, such as ZooKeeper: still free when the server starts."""

from __future__ import annotations

import random
import socket

# below the ephemeral range, so that an outgoing connection never sits on a port that a start, or a restart, needs
PORTS = range(20_000, 32_000)
_given: set[int] = set()
"""Handed out by this process: a server may not have bound its port yet."""


def free_port() -> int:
    if len(_given) > len(PORTS) // 2:
        _given.clear()
    while True:
        port = random.choice(PORTS)
        if port in _given or not _is_free(port):
            continue
        _given.add(port)
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports_in_a_row(count: int) -> int:
    """The first of so many, for servers that count up from the one that they are given."""
    while True:
        first = free_port()
        following = range(first + 1, first + count)
        if not _given.isdisjoint(following) or not all(map(_is_free, following)):
            continue
        _given.update(following)
        return first
