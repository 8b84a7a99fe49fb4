"""Which brokers get which replicas of a new topic: Kafka's ``AdminUtils.assignReplicasToBrokers``.

First replicas go round-robin over the brokers from `start_index`; the others follow at a shift that grows by one each
time the round wraps, so that sets do not repeat. With racks the broker list alternates racks first and a replica
prefers a rack that has none yet. `start_index` and `replica_shift` are drawn by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpybroker.wire.errors import ErrorCode, KafkaError

Assignment = dict[int, list[int]]
"""Partition id -> broker ids, the preferred leader first."""


class BrokerMetadata(NamedTuple):
    """A live broker as a place for replicas; `rack` is its `broker.rack`."""

    id: int
    rack: str | None = None


def assign_replicas_to_brokers(
    brokers: Sequence[BrokerMetadata],
    partition_count: int,
    replication_factor: int,
    *,
    start_index: int,
    replica_shift: int,
    start_partition_id: int = 0,
) -> Assignment:
    """Assign `partition_count` partitions numbered from `start_partition_id`.

    Kafka draws `start_index` and `replica_shift` in [0, len(brokers)) for a new topic, and passes one fixed value for
    both when it adds partitions. Raises KafkaError: INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, or
    UNKNOWN_SERVER_ERROR where only some brokers have a rack.
    """
    if partition_count <= 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}.",
        )
    racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
    if racks and len(racks) < len(brokers):
        # AdminOperationException in Kafka, which clients see as an unknown server error.
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    order = rack_alternated(racks) if racks else [broker.id for broker in brokers]
    assignment: Assignment = {}
    shift = replica_shift
    for partition in range(start_partition_id, start_partition_id + partition_count):
        if partition > 0 and partition % len(order) == 0:
            shift += 1
        first = (partition + start_index) % len(order)
        if racks:
            assignment[partition] = _spread_over_racks(order, racks, first, shift, replication_factor)
        else:
            assignment[partition] = [order[first]] + [
                order[_replica_index(first, shift, j, len(order))] for j in range(replication_factor - 1)
            ]
    return assignment


def rack_alternated(racks: dict[int, str]) -> list[int]:
    """Broker ids with racks alternating: rack1 {0,1}, rack2 {2,3} -> 0, 2, 1, 3."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id], []).append(broker_id)
    columns = [by_rack[rack] for rack in sorted(by_rack)]
    depth = max(len(column) for column in columns)
    return [column[row] for row in range(depth) for column in columns if row < len(column)]


def _spread_over_racks(
    order: list[int], racks: dict[int, str], first: int, shift: int, replication_factor: int
) -> list[int]:
    rack_count = len(set(racks.values()))
    replicas = [order[first]]
    used_racks = {racks[order[first]]}
    k = 0
    while len(replicas) < replication_factor:
        broker_id = order[_replica_index(first, shift * rack_count, k, len(order))]
        k += 1
        rack = racks[broker_id]
        # Skip a rack that has a replica while another has none, and a broker that has one.
        if (rack in used_racks and len(used_racks) < rack_count) or broker_id in replicas:
            continue
        replicas.append(broker_id)
        used_racks.add(rack)
    return replicas


def _replica_index(first: int, shift: int, replica: int, broker_count: int) -> int:
    return (first + 1 + (shift + replica) % (broker_count - 1)) % broker_count
