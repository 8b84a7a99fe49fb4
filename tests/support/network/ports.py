"""Ports for servers that read theirs from a file, such as ZooKeeper: still free when the server starts.

A server binds its port seconds after it was given, on a loaded machine later, and a server that a test has killed gives
its port back until it is started again. No other process of tests may take the port in between, of whichever run: for
each port that is given, a byte of one file is locked. The locks are this process's, and end with it.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket

# below the ephemeral range, so that an outgoing connection never sits on a port that a start, or a restart, needs
PORTS = range(20_000, 32_000)
GIVEN_MAX = 1_000
"""More are not kept: the server that had the first of them has ended."""
LOCKS = f"/tmp/kpybroker-test-ports-{os.getuid()}"
"""Not in TMPDIR, which is another one in each run."""

_given: dict[int, None] = {}
"""This process's, the oldest first. A process does not exclude itself by a lock."""
_file: int | None = None
"""Open until the end of the process: closing any descriptor of the file would unlock everything."""


def free_port() -> int:
    """A port that is this process's until its end."""
    while True:
        port = random.choice(PORTS)
        if _take(port):
            return port


def free_ports_in_a_row(count: int) -> int:
    """The first of so many, for servers that count up from the one that they are given."""
    while True:
        first = free_port()
        if all(map(_take, range(first + 1, first + count))):
            return first


def _take(port: int) -> bool:
    if port in _given or not _lock(port):
        return False
    _given[port] = None
    if len(_given) > GIVEN_MAX:
        _give_back(next(iter(_given)))
    if _is_free(port):
        return True
    _give_back(port)
    return False


def _lock(port: int) -> bool:
    global _file
    if _file is None:
        _file = os.open(LOCKS, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def _give_back(port: int) -> None:
    assert _file is not None
    del _given[port]
    fcntl.lockf(_file, fcntl.LOCK_UN, 1, port)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
