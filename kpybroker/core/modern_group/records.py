"""Values that records of every kind of group have, as the classes of a kind that all kinds have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """The epoch of a group, and the hash of all topics that it subscribes to."""

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class TargetEpoch:
    """The group epoch that the target assignment is for, and when it was computed; 0 where that is unknown."""

    epoch: int
    timestamp_ms: int = 0

    def may_follow(self, interval_ms: int, now_ms: int) -> bool:
        """Whether a new target may take this one's place: the time between assignments has passed (KIP-1263)."""
        return self.timestamp_ms == 0 or interval_ms == 0 or now_ms >= self.timestamp_ms + interval_ms


FIRST_EPOCH: Final = 1
NO_TARGET: Final = TargetEpoch(-1, 0)
"""In place of a target epoch that has a tombstone."""


@dataclass(frozen=True, slots=True)
class RecordClasses:
    """The classes of a kind's records: of a member what it said and what it has, its target, and the target's epoch."""

    member: Callable[[str, str, Any], Any]
    current: Callable[[str, str, Any], Any]
    target: Callable[[str, str, Any], Any]
    target_epoch: Callable[[str, Any], Any]
