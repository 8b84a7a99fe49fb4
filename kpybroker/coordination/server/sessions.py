"""Sessions: id, password, timeout, and when they end (SessionTrackerImpl).

A session outlives its connection: a client that connects again within the timeout, with the password, has it back. It
ends by `close`, or `timeout_ms` after its client was heard last. Time is an argument, in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server grants. `tick_ms` is ZooKeeper's tickTime: sessions last from 2 to 20 of them."""

    tick_ms: int = 2_000
    frame_bytes_max: int = 0xFFFFF
    """jute.maxbuffer."""
    strangers_frame_bytes_max: int = 64 << 10
    connections_max: int = 1_000
    connections_per_address_max: int = 60
    """maxClientCnxns."""
    sessions_max: int = 10_000
    watches_max: int = 200_000
    """Of one connection."""
    unsent_bytes_max: int = 1 << 20
    """Above this no more requests of a connection are read; above sixteen times as much it is closed."""
    first_request_seconds_max: float = 10.0

    @property
    def timeout_ms_min(self) -> int:
        """minSessionTimeout."""
        return 2 * self.tick_ms

    @property
    def timeout_ms_max(self) -> int:
        """maxSessionTimeout."""
        return 20 * self.tick_ms


@dataclass(slots=True, eq=False)
class Session:
    """One client's session. `deadline` is when it ends unless its client is heard before."""

    id: int
    password: bytes = field(repr=False)
    timeout_ms: int
    deadline: float
    is_known: bool = False
    """Whether a client that is no stranger has had it: else it ends with its connection."""

    def touch(self, now: float) -> None:
        """Note that the client was heard."""
        self.deadline = now + self.timeout_ms / 1000


class Sessions:
    """All sessions by id. `next_id` and `next_password` make those of a new one."""

    def __init__(self, limits: Limits, next_id: Callable[[], int], next_password: Callable[[], bytes]) -> None:
        self._limits = limits
        self._next_id = next_id
        self._next_password = next_password
        self._by_id: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def open(self, timeout_ms: int, now: float) -> Session | None:
        """A new session, with a timeout within the limits; None if there are too many."""
        if len(self._by_id) >= self._limits.sessions_max:
            return None
        session = Session(self._next_id(), self._next_password(), self._granted(timeout_ms), now)
        session.touch(now)
        self._by_id[session.id] = session
        return session

    def resume(self, session_id: int, password: bytes, timeout_ms: int, now: float) -> Session | None:
        """The session of a client that connects again; None if there is none with this id and password."""
        session = self._by_id.get(session_id)
        if session is None or not compare_digest(session.password, password) or session.deadline <= now:
            return None
        session.timeout_ms = self._granted(timeout_ms)
        session.touch(now)
        return session

    def get(self, session_id: int) -> Session | None:
        """The session with this id, if there is one."""
        return self._by_id.get(session_id)

    def end(self, session: Session) -> bool:
        """Forget it; False if it has ended before."""
        return self._by_id.pop(session.id, None) is not None

    def due(self, now: float) -> list[Session]:
        """Those whose time is over."""
        return [session for session in self._by_id.values() if session.deadline <= now]

    def next_deadline(self) -> float | None:
        """When the first one ends, if no client is heard before."""
        return min((session.deadline for session in self._by_id.values()), default=None)

    def prolong(self, seconds: float) -> None:
        """Give all sessions more time: the server itself did not run for so long, and heard no one."""
        for session in self._by_id.values():
            session.deadline += seconds

    def _granted(self, timeout_ms: int) -> int:
        return min(max(timeout_ms, self._limits.timeout_ms_min), self._limits.timeout_ms_max)
