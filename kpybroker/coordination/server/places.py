"""Who has a connection: strangers in a small pool of their own, and clients that are known in places of the server's.

A connection is a stranger's until it has a session and, where that is required, has proven who it is. Strangers give
way to each other (`core.doors.crowd`), so they take no place of a client that is known, and none of them, however many
connections it opens, keeps out one that can prove who it is. How long they have for it is the server's affair.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from kpybroker.coordination.server.client import Client
from kpybroker.coordination.server.sessions import Limits
from kpybroker.core.doors.crowd import Crowd, Seat
from kpybroker.core.line_limit import Seldom

logger = logging.getLogger("kafka.zookeeper.ZooKeeperServer")

STRANGERS_MAX: Final = 64


class Places:
    """`now` is a monotonic clock in seconds."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._crowd = Crowd(STRANGERS_MAX)
        self._seats: dict[Client, Seat] = {}
        self._settled: set[Client] = set()
        self._of_address: Counter[str] = Counter()
        self._refusals = Seldom()
        self._failures = Seldom()

    def enter(self, client: Client) -> None:
        """A new connection, which may end that of another stranger."""
        seat = self._crowd.enter(client.address[0], client.abort, self._now())
        assert seat is not None, "strangers always wait"
        self._seats[client] = seat

    def settle(self, client: Client) -> bool:
        """The client is known; False if there is no place for it."""
        address, limits = client.address[0], self._limits
        if self._of_address[address] >= limits.connections_per_address_max:
            self._refuse("%s has %d connections: one more is closed", address, self._of_address[address])
            return False
        if len(self._settled) >= limits.connections_max:
            self._refuse("There are %d connections: one more is closed", len(self._settled))
            return False
        self._crowd.leave(self._seats.pop(client))
        self._settled.add(client)
        self._of_address[address] += 1
        client.is_stranger = False
        return True

    def leave(self, client: Client) -> None:
        """The connection has ended."""
        seat = self._seats.pop(client, None)
        if seat is not None:
            self._crowd.leave(seat)
        if client in self._settled:
            self._settled.remove(client)
            self._of_address[client.address[0]] -= 1
            self._of_address += Counter()  # forget those of no one

    def log_failure(self, client: Client, cause: Exception) -> None:
        """Why a connection was closed. Strangers cause a line now and then, not one each."""
        unsaid = self._failures.may_say(self._now()) if client.is_stranger else 0
        if unsaid is not None:
            host, port = client.address
            others = f" (and {unsaid} others of strangers since the last line)" if unsaid else ""
            logger.warning("Connection of %s:%d is closed: %s%s", host, port, cause, others)

    def _refuse(self, text: str, *values: object) -> None:
        unsaid = self._refusals.may_say(self._now())
        if unsaid is not None:
            logger.warning(text, *values)
