"""What is known of a consumer group in a storm: the words of its members, their heartbeats, what coordinators reported.

Plain values, as those of `faults/history.py`; `check.py` judges them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from compat_tests.faults.history import CommitLook, Partition
from compat_tests.support.groups.ownership import Event

SESSION_MS = 6_000
"""Of every member."""


class GroupProtocol(Enum):
    """What the members of a group use. ROLLED: they are restarted one by one, from one to the other and back."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    ROLLED = "rolled"


class BeatKind(Enum):
    CONSUMER = "ConsumerGroupHeartbeat"
    CLASSIC = "Heartbeat"
    SYNC = "SyncGroup"


class Beat(NamedTuple):
    """A request that keeps a member in its group, as `broker` handled it between the two times.

    `asked_epoch` is the member's epoch or generation in the request, `epoch` that of the response. `member` is the
    client id, which is the name in the member's log. In the new protocol `owned` is what the member said that it has,
    and `given` its assignment in the response; None: nothing was said.

    Without a response `error` is None, and `reported_ns` the time when the connection ended.
    """

    kind: BeatKind
    member: str
    broker: int
    sent_ns: int
    reported_ns: int
    asked_epoch: int
    epoch: int
    error: int | None
    owned: frozenset[Partition] | None = None
    given: frozenset[Partition] | None = None


class EpochLook(NamedTuple):
    """The epochs of a group of the new protocol, as a coordinator elected in `leader_epoch` reported them."""

    time_ns: int
    broker: int
    leader_epoch: int
    group_epoch: int
    assignment_epoch: int
    member_epochs: Mapping[str, int]


def _looks() -> dict[Partition, list[CommitLook]]:
    return defaultdict(list)


@dataclass(slots=True)
class GroupHistory:
    """`coordinated_at` is the partition whose leader coordinates the group. `commits_found` is from the end."""

    name: str
    protocol: GroupProtocol
    coordinated_at: Partition
    events: list[Event] = field(default_factory=list)
    beats: Sequence[Beat] = ()
    commit_looks: dict[Partition, list[CommitLook]] = field(default_factory=_looks)
    commits_found: dict[Partition, int] = field(default_factory=dict)
    epoch_looks: list[EpochLook] = field(default_factory=list)
