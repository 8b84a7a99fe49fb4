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
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
