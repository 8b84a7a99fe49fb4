"""States of partitions in requests of the controller, as Kafka's generated classes print them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def leader_and_isr_text(topic: str, state: Any) -> str:
    """One partition of a LeaderAndIsr."""
    return (
        f"LeaderAndIsrPartitionState(topicName='{topic}', partitionIndex={state.partition_index}, "
        f"controllerEpoch={state.controller_epoch}, leader={state.leader}, leaderEpoch={state.leader_epoch}, "
        f"isr={_list(state.isr)}, partitionEpoch={state.partition_epoch}, replicas={_list(state.replicas)}, "
        f"addingReplicas={_list(state.adding_replicas)}, removingReplicas={_list(state.removing_replicas)}, "
        f"isNew={_boolean(state.is_new)}, leaderRecoveryState={state.leader_recovery_state})"
    )


def update_metadata_text(topic: str, state: Any) -> str:
    """One partition of an UpdateMetadata."""
    return (
        f"UpdateMetadataPartitionState(topicName='{topic}', partitionIndex={state.partition_index}, "
        f"controllerEpoch={state.controller_epoch}, leader={state.leader}, leaderEpoch={state.leader_epoch}, "
        f"isr={_list(state.isr)}, zkVersion={state.zk_version}, replicas={_list(state.replicas)}, "
        f"offlineReplicas={_list(state.offline_replicas)})"
    )


def stop_replica_text(partition: int, leader_epoch: int, *, delete: bool) -> str:
    """One partition of a StopReplica."""
    return (
        f"StopReplicaPartitionState(partitionIndex={partition}, leaderEpoch={leader_epoch}, "
        f"deletePartition={_boolean(delete)})"
    )


def _list(ids: Iterable[int]) -> str:
    return f"[{', '.join(map(str, ids))}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"
