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
GROUP_COUNT: Final = OF_PROTOCOLS.attribute(
    "group-count", "groups", "Groups coordinated here, by their protocol: classic or consumer.", tags=("protocol",)
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

FAMILIES: Final = (*GROUPS, *OF_PROTOCOLS)
