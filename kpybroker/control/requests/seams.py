"""What an interceptor uses of its broker."""

from __future__ import annotations

from typing import Protocol

from kpybroker.broker.loop.clock import Clock
from kpybroker.broker.requests.dispatch import Dispatcher
from kpybroker.control.rules.entities import Topics
from kpybroker.core.replication.fetch_session import FetchSession


class Sessions(Protocol):
    """The fetch sessions of a broker."""

    def peek(self, session_id: int) -> FetchSession | None:
        """A kept session, without using it."""


class FetchService(Protocol):
    """Where the fetch sessions are."""

    @property
    def sessions(self) -> Sessions:
        """Those of this broker."""


class Intercepted(Protocol):
    """A broker; `app.Broker` is one."""

    node_id: int
    clock: Clock
    dispatcher: Dispatcher

    @property
    def metadata(self) -> Topics:
        """The names and ids of topics."""

    @property
    def fetch_service(self) -> FetchService:
        """For fetches that name their partitions by a session."""
