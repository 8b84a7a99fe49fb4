"""Partitions, their replicas, and how far followers are."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

MANAGER: Final = Table("kafka.server", "ReplicaManager")
PARTITION_COUNT: Final = MANAGER.gauge(
    "PartitionCount", "partitions", "Replicas on this broker.", "It differs much between brokers."
)
LEADER_COUNT: Final = MANAGER.gauge(
    "LeaderCount", "partitions", "Partitions that this broker leads.", "It differs much between brokers."
)
UNDER_REPLICATED: Final = MANAGER.gauge(
    "UnderReplicatedPartitions",
    "partitions",
    "Partitions led here with fewer replicas in sync than assigned.",
    "Above 0 for minutes: a broker is down or slow.",
)
UNDER_MIN_ISR: Final = MANAGER.gauge(
    "UnderMinIsrPartitionCount",
    "partitions",
    "Partitions led here with fewer replicas in sync than min.insync.replicas.",
    "Above 0: producers with acks=all are refused.",
)
AT_MIN_ISR: Final = MANAGER.gauge(
    "AtMinIsrPartitionCount",
    "partitions",
    "Partitions led here with just min.insync.replicas in sync.",
    "Above 0 for minutes: the next failure refuses producers.",
)
OFFLINE_REPLICAS: Final = MANAGER.gauge(
    "OfflineReplicaCount",
    "partitions",
    "Replicas on this broker in failed log directories.",
    "Above 0: replace the disk.",
)
REASSIGNING: Final = MANAGER.gauge(
    "ReassigningPartitions",
    "partitions",
    "Partitions that are being moved to other brokers: all of them on the controller, none elsewhere.",
)
ISR_SHRINKS: Final = MANAGER.meter(
    "IsrShrinksPerSec", "changes", "Replicas were removed from an ISR.", "It grows without a restart: followers lag."
)
ISR_EXPANDS: Final = MANAGER.meter("IsrExpandsPerSec", "changes", "Replicas joined an ISR.")
FAILED_ISR_UPDATES: Final = MANAGER.meter(
    "FailedIsrUpdatesPerSec", "changes", "Changes of an ISR that the controller refused.", "It grows for minutes."
)
PRODUCER_IDS: Final = MANAGER.gauge(
    "ProducerIdCount",
    "producers",
    "Producers whose state is kept, over all partitions here.",
    "Hundreds of thousands: producers are created for each message; lower producer.id.expiration.ms.",
)

PARTITION: Final = Table("kafka.cluster", "Partition", ("topic", "partition"))
P_UNDER_REPLICATED: Final = PARTITION.gauge(
    "UnderReplicated", "flag", "1 if the leader is here and fewer replicas are in sync than assigned.", "1 for minutes."
)
P_UNDER_MIN_ISR: Final = PARTITION.gauge(
    "UnderMinIsr", "flag", "1 if the leader is here and fewer than min.insync.replicas are in sync.", "1."
)
P_AT_MIN_ISR: Final = PARTITION.gauge(
    "AtMinIsr", "flag", "1 if the leader is here and just min.insync.replicas are in sync.", "1 for minutes."
)
P_REPLICAS: Final = PARTITION.gauge("ReplicasCount", "replicas", "Assigned replicas; 0 on a follower.")
P_IN_SYNC: Final = PARTITION.gauge("InSyncReplicasCount", "replicas", "Replicas in sync; 0 on a follower.")
P_STABLE_LAG: Final = PARTITION.gauge(
    "LastStableOffsetLag",
    "records",
    "Records between the last stable offset and the high watermark, which read_committed consumers do not see yet.",
    "It grows for longer than a transaction lasts: a transaction hangs (kafka-transactions find-hanging).",
)

FETCHERS: Final = Table("kafka.server", "ReplicaFetcherManager", ("clientId",))
MAX_LAG: Final = FETCHERS.gauge(
    "MaxLag",
    "records",
    "The largest distance of a follower here from its leader's end.",
    "It grows: this broker cannot keep up.",
)

FAMILIES: Final = (*MANAGER, *PARTITION, *FETCHERS)
