"""What can happen to a controller: one value an event, as Kafka's `ControllerEvent`s.

Events of the first part come from watches, responses and timers and have no answer; those of the second part
are requests, and their story's result is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from kpybroker.core.controller.model import TopicPartition
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_partition import AlterPartitionRequest
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrResponse


class ElectionType(IntEnum):
    """As ElectLeaders carries it."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Startup:
    """Watch `/controller` and try to be it."""


@dataclass(frozen=True, slots=True)
class ControllerChange:
    """`/controller` was created or rewritten."""


@dataclass(frozen=True, slots=True)
class Reelect:
    """`/controller` is gone."""


@dataclass(frozen=True, slots=True)
class Expire:
    """The session has ended: whatever this broker was, it is not the controller now."""


@dataclass(frozen=True, slots=True)
class BrokerChange:
    pass


@dataclass(frozen=True, slots=True)
class BrokerModifications:
    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicChange:
    pass


@dataclass(frozen=True, slots=True)
class PartitionModifications:
    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    pass


@dataclass(frozen=True, slots=True)
class IsrChangeNotification:
    pass


@dataclass(frozen=True, slots=True)
class LogDirEventNotification:
    pass


@dataclass(frozen=True, slots=True)
class ZkPreferredReplicaElection:
    """`/admin/preferred_replica_election` was written."""


@dataclass(frozen=True, slots=True)
class AutoPreferredReplicaLeaderElection:
    pass


@dataclass(frozen=True, slots=True)
class UncleanLeaderElectionEnable:
    """The configuration now allows unclean elections: for one topic, or (None) as the default."""

    topic: str | None = None


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponseReceived:
    response: LeaderAndIsrResponse
    broker_id: int


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponseReceived:
    error_code: int
    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicDeletionStopReplicaResponseReceived:
    """`partition_errors`: only of partitions that were to be deleted."""

    broker_id: int
    error_code: int
    partition_errors: Mapping[TopicPartition, int]


# --- requests -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplicaLeaderElection:
    """ElectLeaders -> `dict[TopicPartition, ApiError]`."""

    partitions: tuple[TopicPartition, ...]
    election_type: ElectionType


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    """-> the partitions the broker still leads; raises `KafkaError`."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class AlterPartitionReceived:
    """-> `AlterPartitionResponse`."""

    request: AlterPartitionRequest
    version: int


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """-> `ProducerIdsBlock`; raises `KafkaError`."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ApiError:
    """Kafka's: `message` None where the code says it all."""

    code: ErrorCode
    message: str | None = None


Event = (
    Startup
    | ControllerChange
    | Reelect
    | Expire
    | BrokerChange
    | BrokerModifications
    | TopicChange
    | PartitionModifications
    | TopicDeletion
    | IsrChangeNotification
    | LogDirEventNotification
    | ZkPreferredReplicaElection
    | AutoPreferredReplicaLeaderElection
    | UncleanLeaderElectionEnable
    | LeaderAndIsrResponseReceived
    | UpdateMetadataResponseReceived
    | TopicDeletionStopReplicaResponseReceived
    | ReplicaLeaderElection
    | ControlledShutdown
    | AlterPartitionReceived
    | AllocateProducerIds
)
