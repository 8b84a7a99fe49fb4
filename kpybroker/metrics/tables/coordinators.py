"""The groups that this broker coordinates."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

GROUPS: Final = Table("kafka.coordinator.group", "GroupMetadataManager")
NUM_GROUPS: Final = GROUPS.gauge("NumGroups", "groups", "Groups of the classic protocol that are coordinated here.")
NUM_STABLE: Final = GROUPS.gauge("NumGroupsStable", "groups", "Groups whose members have their assignments.")
NUM_PREPARING: Final = GROUPS.gauge(
    "NumGroupsPreparingRebalance",
    "groups",
    "Groups that wait for their members to join.",
    "The same groups for minutes: members join and leave in a loop.",
)
NUM_COMPLETING: Final = GROUPS.gauge(
    "NumGroupsCompletingRebalance", "groups", "Groups that wait for the assignment of their leader."
)
NUM_EMPTY: Final = GROUPS.gauge("NumGroupsEmpty", "groups", "Groups without members, whose offsets are kept.")
NUM_DEAD: Final = GROUPS.gauge("NumGroupsDead", "groups", "Groups that are being removed.")
NUM_OFFSETS: Final = GROUPS.gauge("NumOffsets", "offsets", "Committed offsets of all groups.")

OF_PROTOCOLS: Final = Table("kafka.server", "group-coordinator-metrics")
LOAD_MAX: Final = OF_PROTOCOLS.attribute(
    "partition-load-time-max",
    "milliseconds",
    "The longest time that reading a partition of `__consumer_offsets` took after this broker became its leader, of "
    "the last half minute; 0 without one.",
    "Seconds: groups of this partition got COORDINATOR_LOAD_IN_PROGRESS for so long.",
)
LOAD_AVG: Final = OF_PROTOCOLS.attribute("partition-load-time-avg", "milliseconds", "The average of the same.")
NUM_PARTITIONS: Final = OF_PROTOCOLS.attribute(
    "num-partitions",
    "partitions",
    "Partitions of `__consumer_offsets` that this broker leads, by state: loading, active or failed.",
    "Above 0 in failed: its log cannot be read, and its groups have no coordinator. The log has the reason.",
    ("state",),
)
OFFSET_COMMITS: Final = OF_PROTOCOLS.attribute(
    "offset-commit-count", "offsets", "Offsets that were committed since the start."
)
OFFSET_COMMIT_RATE: Final = OF_PROTOCOLS.attribute(
    "offset-commit-rate", "offsets/s", "The same a second, of the last half minute."
)
OFFSET_EXPIRATIONS: Final = OF_PROTOCOLS.attribute(
    "offset-expiration-count",
    "offsets",
    "Offsets that were removed since the start because they had expired.",
    "More than what you gave up: a group reads from the start or the end when it is back.",
)
OFFSET_EXPIRATION_RATE: Final = OF_PROTOCOLS.attribute(
    "offset-expiration-rate", "offsets/s", "The same a second, of the last half minute."
)
OFFSET_DELETIONS: Final = OF_PROTOCOLS.attribute(
    "offset-deletion-count", "offsets", "Offsets that OffsetDelete removed since the start."
)
OFFSET_DELETION_RATE: Final = OF_PROTOCOLS.attribute(
    "offset-deletion-rate", "offsets/s", "The same a second, of the last half minute."
)
COMPLETED_REBALANCES: Final = OF_PROTOCOLS.attribute(
    "group-completed-rebalance-count", "rebalances", "Rebalances of classic groups that were completed since the start."
)
COMPLETED_REBALANCE_RATE: Final = OF_PROTOCOLS.attribute(
    "group-completed-rebalance-rate",
    "rebalances/s",
    "The same a second, of the last half minute.",
    "Above 0 for minutes: members join and leave in a loop.",
)
GROUP_COUNT: Final = OF_PROTOCOLS.attribute(
    "group-count",
    "groups",
    "Groups coordinated here, by protocol: classic, consumer, share or streams.",
    tags=("protocol",),
)
CONSUMER_GROUP_COUNT: Final = OF_PROTOCOLS.attribute(
    "consumer-group-count",
    "groups",
    "Groups of the consumer protocol (KIP-848), by their state.",
    "The same groups in Assigning or Reconciling for minutes: a member does not give up its partitions.",
    ("state",),
)
CONSUMER_REBALANCES: Final = OF_PROTOCOLS.attribute(
    "consumer-group-rebalance-count", "rebalances", "Rebalances of consumer groups since the start."
)
CONSUMER_REBALANCE_RATE: Final = OF_PROTOCOLS.attribute(
    "consumer-group-rebalance-rate",
    "rebalances/s",
    "The same a second, of the last half minute.",
    "Above 0 for minutes: members join and leave in a loop.",
)
SHARE_GROUP_COUNT: Final = OF_PROTOCOLS.attribute(
    "share-group-count", "groups", "Share groups (KIP-932), by their state.", tags=("state",)
)
SHARE_REBALANCES: Final = OF_PROTOCOLS.attribute(
    "share-group-rebalance-count", "rebalances", "Rebalances of share groups since the start."
)
SHARE_REBALANCE_RATE: Final = OF_PROTOCOLS.attribute(
    "share-group-rebalance-rate",
    "rebalances/s",
    "The same a second, of the last half minute.",
    "Above 0 for minutes: members join and leave in a loop.",
)
STREAMS_GROUP_COUNT: Final = OF_PROTOCOLS.attribute(
    "streams-group-count",
    "groups",
    "Streams groups (KIP-1071), by their state.",
    "A group in NotReady for minutes: topics of its topology are missing. In Reconciling: a member keeps its tasks.",
    ("state",),
)
STREAMS_REBALANCES: Final = OF_PROTOCOLS.attribute(
    "streams-group-rebalance-count", "rebalances", "Rebalances of streams groups since the start."
)
STREAMS_REBALANCE_RATE: Final = OF_PROTOCOLS.attribute(
    "streams-group-rebalance-rate",
    "rebalances/s",
    "The same a second, of the last half minute.",
    "Above 0 for minutes: members join and leave in a loop.",
)

FAMILIES: Final = (*GROUPS, *OF_PROTOCOLS)
