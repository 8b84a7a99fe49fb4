"""What every procedure of one controller works on, and steps that several procedures share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from kpybroker.core.controller import states
from kpybroker.core.controller.context import ControllerContext
from kpybroker.core.controller.deletion import TopicDeletionManager
from kpybroker.core.controller.effects import Procedure, Settings
from kpybroker.core.controller.model import (
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from kpybroker.core.controller.partitions import PartitionStateMachine
from kpybroker.core.controller.replicas import ReplicaStateMachine
from kpybroker.core.controller.requests import BrokerRequestBatch
from kpybroker.core.topic_partition import TopicPartition


class Parts:
    """The components of one controller; `active_controller_id` is -1 while no controller is known."""

    __slots__ = (
        "active_controller_id",
        "context",
        "deletion",
        "partitions",
        "replicas",
        "settings",
    )

    def __init__(self, settings: Settings, leaderless: Set[TopicPartition] = frozenset()) -> None:
        self.settings = settings
        self.active_controller_id = -1
        self.context = ControllerContext(leaderless)
        self.partitions = PartitionStateMachine(self.context, settings)
        self.replicas = ReplicaStateMachine(self.context, settings)
        self.deletion = TopicDeletionManager(self.context, settings, self.partitions, self.replicas)

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller."""
        return self.active_controller_id == self.settings.broker_id


def send_update_metadata(
    parts: Parts, broker_ids: Iterable[int] | None = None, partitions: Iterable[TopicPartition] = ()
) -> Procedure[None]:
    """Send live brokers and the state of `partitions` to brokers (None: to all live ones)."""
    batch = BrokerRequestBatch(parts.context, parts.settings)
    receivers = parts.context.live_brokers if broker_ids is None else broker_ids
    yield from batch.add_update_metadata_paced(receivers, partitions)
    yield from batch.send()


def refresh_leadership(parts: Parts, partitions: Sequence[TopicPartition]) -> Procedure[None]:
    """Read leadership of partitions from the tree (KafkaController.updateLeaderAndIsrCache)."""
    read = yield from states.read(partitions)
    for partition, found in read.items():
        if isinstance(found, Exception):
            raise found
        if isinstance(found, LeaderIsrAndControllerEpoch):
            parts.context.set_leadership(partition, found)


def replicas_become_offline(parts: Parts, replicas: Iterable[PartitionAndReplica]) -> Procedure[None]:
    """KafkaController.onReplicasBecomeOffline: elect other leaders, and shrink ISRs."""
    context = parts.context
    of_deleted: list[PartitionAndReplica] = []
    of_living: list[PartitionAndReplica] = []
    for replica in replicas:
        queued = context.is_topic_queued_for_deletion(replica.topic_partition.topic)
        (of_deleted if queued else of_living).append(replica)
    yield from parts.partitions.change(context.partitions_with_offline_leader(), PartitionState.OFFLINE)
    results = yield from parts.partitions.trigger_online()
    yield from parts.replicas.change(of_living, ReplicaState.OFFLINE)
    if of_deleted:
        yield from parts.deletion.fail_replicas(of_deleted)
    if not of_living and all(isinstance(result, Exception) for result in results.values()):
        # No transition has notified the brokers of the failure, so do it here.
        yield from send_update_metadata(parts)
