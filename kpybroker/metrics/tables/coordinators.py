"""The groups that this broker coordinates."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

GROUPS: Final = Table("kafka.coordinator.group", "GroupMetadataManager")
NUM_GROUPS: Final = GROUPS.gauge("NumGroups", "groups", "Groups coordinated here.")
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

FAMILIES: Final = tuple(GROUPS)
