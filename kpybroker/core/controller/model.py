"""The controller's values, with Kafka's names.

`LeaderAndIsr` and its epochs are what `/brokers/topics/<t>/partitions/<p>/state` holds; `partition_epoch` is that
znode's version. States and their legal predecessors are tables: `PartitionState` and `ReplicaState` of Kafka's
`PartitionStateMachine` and `ReplicaStateMachine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from kpybroker.core.leader_and_isr import LeaderAndIsr
from kpybroker.core.topic_partition import TopicPartition

S = TypeVar("S")

LEADER_DURING_DELETE = -2
NO_EPOCH = -1
EPOCH_DURING_DELETE = -2


class PartitionAndReplica(NamedTuple):
    """One replica: a partition and the id of the broker that hosts it."""

    topic_partition: TopicPartition
    replica: int

    def __str__(self) -> str:
        topic, partition = self.topic_partition
        return f"[Topic={topic},Partition={partition},Replica={self.replica}]"


def during_delete(isr: tuple[int, ...]) -> LeaderAndIsr:
    """The state in UpdateMetadata of a partition that is being deleted: brokers forget it."""
    return LeaderAndIsr(LEADER_DURING_DELETE, isr)


class LeaderIsrAndControllerEpoch(NamedTuple):
    """A partition's state, and the epoch of the controller that wrote it."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int

    def __str__(self) -> str:
        return (
            f"(Leader:{self.leader_and_isr.leader},ISR:{','.join(map(str, self.leader_and_isr.isr))},"
            f"LeaderRecoveryState:{self.leader_and_isr.recovery_text},"
            f"LeaderEpoch:{self.leader_and_isr.leader_epoch},"
            f"ZkVersion:{self.leader_and_isr.partition_epoch},ControllerEpoch:{self.controller_epoch})"
        )


class ReplicaAssignment(NamedTuple):
    """Replicas of one partition; a reassignment in progress lists those added and removed (KIP-455)."""

    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        """The replicas before the reassignment in progress."""
        return tuple(replica for replica in self.replicas if replica not in self.adding_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas after the reassignment in progress."""
        return tuple(replica for replica in self.replicas if replica not in self.removing_replicas)

    @property
    def is_being_reassigned(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding_replicas or self.removing_replicas)

    def reassign_to(self, target: tuple[int, ...]) -> ReplicaAssignment:
        """A reassignment from the origin to `target`; it replaces the one in progress."""
        full = tuple(dict.fromkeys(target + self.origin_replicas))
        origin, wanted = set(self.origin_replicas), set(target)
        return ReplicaAssignment(
            full,
            tuple(replica for replica in full if replica not in origin),
            tuple(replica for replica in full if replica not in wanted),
        )

    def without(self, replica: int) -> ReplicaAssignment:
        """The assignment after one broker's replica is removed from every list."""
        return ReplicaAssignment(
            tuple(other for other in self.replicas if other != replica),
            tuple(other for other in self.adding_replicas if other != replica),
            tuple(other for other in self.removing_replicas if other != replica),
        )

    def __str__(self) -> str:
        return (
            f"ReplicaAssignment(replicas={','.join(map(str, self.replicas))}, "
            f"addingReplicas={','.join(map(str, self.adding_replicas))}, "
            f"removingReplicas={','.join(map(str, self.removing_replicas))})"
        )


NO_ASSIGNMENT = ReplicaAssignment()


class Transitions(NamedTuple, Generic[S]):
    """The states that may precede each state, and the state of what has just been found."""

    first: S
    previous: Mapping[S, frozenset[S]]

    def allowed(self, target: S) -> str:
        """The states that may precede `target`, for log lines."""
        return ",".join(sorted(map(str, self.previous[target])))


class PartitionState(Enum):
    """New: replicas but no leader yet. Offline: its leader died. NonExistent: never created, or deleted."""

    __hash__ = object.__hash__  # by identity, in C: a topic may have 10 000 of them

    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"
    NON_EXISTENT = "NonExistentPartition"

    def __str__(self) -> str:
        return self.value


_LIVING_PARTITION = frozenset((PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE))
PARTITION_TRANSITIONS = Transitions(
    PartitionState.NON_EXISTENT,
    {
        PartitionState.NEW: frozenset((PartitionState.NON_EXISTENT,)),
        PartitionState.ONLINE: _LIVING_PARTITION,
        PartitionState.OFFLINE: _LIVING_PARTITION,
        PartitionState.NON_EXISTENT: frozenset((PartitionState.OFFLINE,)),
    },
)


class ReplicaState(Enum):
    """A replica's life; the three deletion states belong to topics that are being deleted."""

    __hash__ = object.__hash__  # by identity, in C: a topic may have 10 000 of them

    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    NON_EXISTENT = "NonExistentReplica"

    def __str__(self) -> str:
        return self.value


_STARTABLE_REPLICA = frozenset(
    (ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE)
)
REPLICA_TRANSITIONS = Transitions(
    ReplicaState.NON_EXISTENT,
    {
        ReplicaState.NEW: frozenset((ReplicaState.NON_EXISTENT,)),
        ReplicaState.ONLINE: _STARTABLE_REPLICA,
        ReplicaState.OFFLINE: _STARTABLE_REPLICA,
        ReplicaState.DELETION_STARTED: frozenset((ReplicaState.OFFLINE,)),
        ReplicaState.DELETION_SUCCESSFUL: frozenset((ReplicaState.DELETION_STARTED,)),
        ReplicaState.DELETION_INELIGIBLE: frozenset((ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED)),
        ReplicaState.NON_EXISTENT: frozenset((ReplicaState.DELETION_SUCCESSFUL,)),
    },
)
