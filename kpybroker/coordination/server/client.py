"""One client, as the others see it: who it is, and the queue of what it receives.

The queue is in the order in which the tree changed, and each of its frames waits for the commit of what it shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kpybroker.coordination.server.access import ClientAccess
from kpybroker.coordination.server.sessions import Limits, Session
from kpybroker.coordination.server.statistics import Statistics

EVENTS_UNSENT_FACTOR = 16


class Shared(Protocol):
    """What a client asks of the service."""

    limits: Limits
    statistics: Statistics
    committed_zxid: int

    def commit_soon(self) -> None:
        """Have the store settled soon."""

    def now(self) -> float:
        """Seconds, monotonic."""


class Client:
    """`wake` is called when something may be sent; `on_abort` when the connection is to be closed at once."""

    def __init__(
        self, shared: Shared, address: tuple[str, int], wake: Callable[[], None], on_abort: Callable[[], None]
    ) -> None:
        self.address = address
        self.access = ClientAccess(address[0])
        self.session: Session | None = None
        self.is_stranger = True
        """Until it has a session and has proven who it is (`places`)."""
        self.received = self.sent = 0
        self.unsent_bytes = 0
        """Queued, or taken and not yet sent."""
        self.is_ending = False
        """Whether the connection is to be closed once everything is sent."""
        self.wake = wake
        self._on_abort = on_abort
        self._shared = shared
        self._queue: deque[tuple[int, bytes, float | None]] = deque()  # zxid, frame, when its request arrived

    def queue(self, zxid: int, frame: bytes, arrived: float | None = None) -> None:
        """Send `frame` after all others, once `zxid` is committed."""
        if self.is_ending:
            return
        self._queue.append((zxid, frame, arrived))
        self.unsent_bytes += len(frame)
        if self.unsent_bytes > EVENTS_UNSENT_FACTOR * self._shared.limits.unsent_bytes_max and len(self._queue) > 1:
            self.abort()  # it does not read its events
        elif zxid > self._shared.committed_zxid:
            self._shared.commit_soon()
        else:
            self.wake()

    def abort(self) -> None:
        """End the connection at once: nothing more is performed for it or sent to it."""
        self.is_ending = True
        self._queue.clear()
        self._on_abort()

    def take(self) -> bytes:
        """Everything that may be sent now. `note_sent` is to be called when it is."""
        taken, shared = [], self._shared
        while self._queue and self._queue[0][0] <= shared.committed_zxid:
            _, frame, arrived = self._queue.popleft()
            taken.append(frame)
            self.sent += 1
            shared.statistics.sent += 1
            if arrived is not None:
                shared.statistics.note((shared.now() - arrived) * 1000)
        return b"".join(taken)

    def note_sent(self, count: int) -> None:
        """So many bytes of what was taken are sent."""
        self.unsent_bytes -= count

    def note_received(self) -> None:
        """One message has arrived."""
        self.received += 1
        self._shared.statistics.received += 1

    @property
    def is_waiting(self) -> bool:
        """Whether something waits for a commit."""
        return bool(self._queue) and self._queue[-1][0] > self._shared.committed_zxid

    @property
    def is_over(self) -> bool:
        """Whether everything is sent and nothing more will be."""
        return self.is_ending and not self._queue

    @property
    def has_room(self) -> bool:
        """Whether more requests may be read."""
        return self.unsent_bytes <= self._shared.limits.unsent_bytes_max
