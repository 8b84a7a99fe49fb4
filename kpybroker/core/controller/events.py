"""The events of a controller, as Kafka's ``ControllerEvent``s.

Events of the first part are from watches, responses and timers, and have no result; those of the second part are
requests, and the result of their procedure is the response.

Named tuples and an enum, here and in `effects`: a frozen dataclass takes eight times as long to define (0.6 ms), and
all of these are defined at every start of a broker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple

from kpybroker.core.features import Update
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_partition import AlterPartitionRequest
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrResponse


class ElectionType(IntEnum):
    """The election type of ElectLeaders (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class Signal(Enum):
    """Events without values."""

    STARTUP = "Startup"
    """Watch `/controller` and try to become the controller."""
    CONTROLLER_CHANGE = "ControllerChange"
    """`/controller` was created or rewritten."""
    REELECT = "Reelect"
    """`/controller` is gone."""
    EXPIRE = "Expire"
    """The session has ended: this broker is not the controller any more."""
    BROKER_CHANGE = "BrokerChange"
    TOPIC_CHANGE = "TopicChange"
    TOPIC_DELETION = "TopicDeletion"
    ISR_CHANGE_NOTIFICATION = "IsrChangeNotification"
    LOG_DIR_EVENT_NOTIFICATION = "LogDirEventNotification"
    ZK_PREFERRED_REPLICA_ELECTION = "ZkPreferredReplicaElection"
    """`/admin/preferred_replica_election` was written."""
    AUTO_PREFERRED_REPLICA_LEADER_ELECTION = "AutoPreferredReplicaLeaderElection"
    ZK_PARTITION_REASSIGNMENT = "ZkPartitionReassignment"
    """`/admin/reassign_partitions` was written."""


class BrokerModifications(NamedTuple):
    """The data of `/brokers/ids/<id>` changed: the broker rewrote its registration."""

    broker_id: int


class PartitionModifications(NamedTuple):
    """The data of `/brokers/topics/<topic>` changed: new partitions, or a reassignment."""

    topic: str


class PartitionReassignmentIsrChange(NamedTuple):
    """The ISR of a partition that is being reassigned has changed."""

    partition: TopicPartition


class UncleanLeaderElectionEnable(NamedTuple):
    """The configuration now allows unclean elections: for one topic, or (None) as the default."""

    topic: str | None = None


class LeaderAndIsrResponseReceived(NamedTuple):
    """A broker responded to LeaderAndIsr, perhaps with errors of single partitions."""

    response: LeaderAndIsrResponse
    broker_id: int


class UpdateMetadataResponseReceived(NamedTuple):
    """A broker responded to UpdateMetadata."""

    error_code: int
    broker_id: int


class TopicDeletionStopReplicaResponseReceived(NamedTuple):
    """`partition_errors`: only of partitions that were to be deleted."""

    broker_id: int
    error_code: int
    partition_errors: Mapping[TopicPartition, int]


# --- requests


class ReplicaLeaderElection(NamedTuple):
    """ElectLeaders -> `dict[TopicPartition, ApiError]`."""

    partitions: tuple[TopicPartition, ...]
    election_type: ElectionType


class DesignatedElection(NamedTuple):
    """Leaders that a test has chosen, by partition; NO_LEADER: none -> `dict[TopicPartition, ApiError]`."""

    leaders: Mapping[TopicPartition, int]


class ControlledShutdown(NamedTuple):
    """-> the partitions the broker still leads; raises `KafkaError`."""

    broker_id: int
    broker_epoch: int


class AlterPartitionReceived(NamedTuple):
    """-> `AlterPartitionResponse`."""

    request: AlterPartitionRequest
    version: int


class ApiPartitionReassignment(NamedTuple):
    """Target replicas by partition, None to cancel -> `dict[TopicPartition, ApiError]`; raises `KafkaError`."""

    reassignments: Mapping[TopicPartition, Sequence[int] | None]
    allows_replication_factor_change: bool = True


class ListPartitionReassignments(NamedTuple):
    """None: all -> `dict[TopicPartition, ReplicaAssignment]`; raises `KafkaError`."""

    partitions: Collection[TopicPartition] | None = None


class UpdateFeatures(NamedTuple):
    """-> `features.procedures.Updated`; raises `KafkaError` for the whole request.

    `all_or_nothing` chooses the rules of version 2, see `features.updates`.
    """

    updates: tuple[Update, ...]
    all_or_nothing: bool = False
    validate_only: bool = False


class AllocateProducerIds(NamedTuple):
    """-> `ProducerIdsBlock`; raises `KafkaError`."""

    broker_id: int
    broker_epoch: int


class ApiError(NamedTuple):
    """Kafka's ApiError: `message` None stands for the code's own message."""

    code: ErrorCode
    message: str | None = None

    @property
    def text(self) -> str | None:
        """The message for clients; None for a success."""
        return None if self.code is ErrorCode.NONE else self.message or self.code.message


Event = (
    Signal
    | BrokerModifications
    | PartitionModifications
    | PartitionReassignmentIsrChange
    | UncleanLeaderElectionEnable
    | LeaderAndIsrResponseReceived
    | UpdateMetadataResponseReceived
    | TopicDeletionStopReplicaResponseReceived
    | ReplicaLeaderElection
    | DesignatedElection
    | ControlledShutdown
    | AlterPartitionReceived
    | ApiPartitionReassignment
    | ListPartitionReassignments
    | UpdateFeatures
    | AllocateProducerIds
)
