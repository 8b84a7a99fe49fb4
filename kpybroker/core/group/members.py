"""A member of a classic group, one that is expected, and the timer of a rebalance."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.group.sizes import member_bytes, protocols_bytes
from kpybroker.core.group.values import Protocols


@dataclass(slots=True, eq=False, kw_only=True)
class Member:
    """A member of a group. `heartbeat_at` is when its session ends; `timer_at` is the deadline of its timer entry."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    heartbeat_at: float | None = None
    timer_at: float | None = None
    owner: Owner = UNOWNED
    size: int = 0  # bytes in memory, as last charged
    protocols_size: int = -1  # of them, those of `protocols`; -1 where no one has counted

    def metadata(self, protocol_name: str) -> bytes:
        """The member's metadata for a protocol that it supports."""
        return next(metadata for name, metadata in self.protocols if name == protocol_name)

    def measure(self) -> int:
        """Bytes in memory, about."""
        names = (self.member_id, self.group_instance_id, self.client_id, self.client_host)
        if self.protocols_size < 0:
            self.protocols_size = protocols_bytes(self.protocols)
        return member_bytes(names, self.protocols_size)

    def vote(self, candidates: Collection[str]) -> str:
        """The first protocol of the member's list that is among `candidates`."""
        return next(name for name, _ in self.protocols if name in candidates)


class PendingMember(NamedTuple):
    """A member id that was given out (KIP-394), until when, and who is charged for it."""

    deadline: float
    owner: Owner
    size: int


@dataclass(frozen=True, slots=True)
class RebalanceTimer:
    """What ends PreparingRebalance at the latest. While `is_initial` (KIP-134) nothing ends it earlier."""

    deadline: float
    is_initial: bool = False
    delay_ms: int = 0
    remaining_ms: int = 0
