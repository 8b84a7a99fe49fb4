"""Feature levels (KIP-584): which features there are, what each level allows, what is supported, what is finalized.

A broker *supports* a range of levels of a feature: what its program can do. A cluster has *finalized* one level: what
it does, on every broker. Kafka 4 keeps finalized levels in its metadata log; Kafka 3.9 on ZooKeeper, and so kpybroker,
in `/feature`. Nothing but `/feature` decides: a part of the broker asks `Finalized.level`, and takes the value once a
request.

`metadata.version` and `kraft.version` are about KRaft's own log, and `eligible.leader.replicas.version` needs a KRaft
controller: there is none here, so they are not features of this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

GROUP_VERSION: Final = "group.version"
CONSUMER_GROUPS_FROM: Final = 1
"""The level of `group.version` that has consumer groups, and the rules of Kafka 4 for all groups."""
TRANSACTION_VERSION: Final = "transaction.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
METADATA_VERSION: Final = "metadata.version"

UNKNOWN_EPOCH: Final = -1
"""The epoch while nothing is known of `/feature`."""


class VersionRange(NamedTuple):
    """The levels that a broker supports, both included."""

    min: int
    max: int

    def contains(self, level: int) -> bool:
        """Whether the level is supported."""
        return self.min <= level <= self.max

    def __str__(self) -> str:
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"


NOT_SUPPORTED: Final = VersionRange(0, 0)
"""Of a feature that a broker does not have: level 0 says the same as no level."""

Levels = Mapping[str, int]
"""A level by the name of its feature."""
Ranges = Mapping[str, VersionRange]
"""What a broker supports, by the name of the feature."""


class Level(NamedTuple):
    """One level of a feature: what it allows that the level below does not, and the first Kafka that had it."""

    allows: str
    since: str


class Feature(NamedTuple):
    """A feature; its levels count from 0."""

    name: str
    levels: tuple[Level, ...]


FEATURES: Final = (
    Feature(
        GROUP_VERSION,
        (
            Level("classic groups only", "4.0"),
            Level("consumer groups: the protocol of KIP-848 and its records in __consumer_offsets", "4.0"),
        ),
    ),
    Feature(
        TRANSACTION_VERSION,
        (
            Level("records in __transaction_state as Kafka 3.9 has them", "4.0"),
            Level("records in __transaction_state that can have tagged fields", "4.0"),
            Level("transactions of version 2, whose every end bumps the producer's epoch (KIP-890)", "4.0"),
        ),
    ),
    Feature(
        SHARE_VERSION,
        (
            Level("no share groups", "4.1"),
            Level("share groups, their records in __consumer_offsets and in __share_group_state (KIP-932)", "4.1"),
        ),
    ),
    Feature(
        STREAMS_VERSION,
        (
            Level("no streams groups", "4.2"),
            Level("streams groups and their records in __consumer_offsets (KIP-1071)", "4.2"),
        ),
    ),
)
"""The features that a cluster without KRaft can have. `since` is the first release that supports the level."""

SUPPORTED: Final[Ranges] = MappingProxyType(
    {
        GROUP_VERSION: VersionRange(0, 1),
        TRANSACTION_VERSION: VersionRange(0, 2),
        SHARE_VERSION: VersionRange(0, 1),
        STREAMS_VERSION: VersionRange(0, 1),
    }
)
"""What this build supports: a feature is named here once all that its levels allow is served."""


class Finalized(NamedTuple):
    """What `/feature` said last: levels above 0, and the version of the znode, which only rises."""

    levels: Levels = MappingProxyType({})
    epoch: int = UNKNOWN_EPOCH

    def level(self, feature: str) -> int:
        """The finalized level; 0 where none is."""
        return self.levels.get(feature, 0)


class UpgradeType(IntEnum):
    """What a client allows its update to do (UpdateFeatures 1+)."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    """Only a downgrade that loses nothing."""
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def of(cls, code: int) -> UpgradeType:
        """Kafka's ``UpgradeType.fromCode``: UNKNOWN for any other number."""
        return cls(code) if code in (1, 2, 3) else cls.UNKNOWN


class Update(NamedTuple):
    """A wish of a client: this level for this feature. Below 1: the feature shall not be finalized any more."""

    feature: str
    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


def feature_named(name: str) -> Feature | None:
    """The feature of this name; None for one that no level of is known here."""
    return next((feature for feature in FEATURES if feature.name == name), None)


def newest(supported: Ranges) -> dict[str, int]:
    """The levels that a new cluster begins with: the highest of each feature, without those that have none above 0."""
    return {name: levels.max for name, levels in supported.items() if levels.max > 0}


def unsupported(finalized: Levels, supported: Ranges) -> dict[str, int]:
    """The finalized levels that a broker with these ranges does not support, as Kafka's ``BrokerFeatures``."""
    return {
        name: level
        for name, level in finalized.items()
        if not (found := supported.get(name, NOT_SUPPORTED)).max or not found.contains(level)
    }


def levels_of_release(finalized: Levels, has: Levels) -> dict[str, int]:
    """What a release of Kafka would know of the finalized levels; `has` are the newest levels of that release."""
    known = {name: min(level, has.get(name, 0)) for name, level in finalized.items()}
    return {name: level for name, level in known.items() if level > 0}


def of_release(supported: Ranges, has: Mapping[str, int]) -> dict[str, VersionRange]:
    """The part of `supported` that a release of Kafka has too; `has` are the newest levels of that release."""
    return {
        name: VersionRange(levels.min, min(levels.max, has[name]))
        for name, levels in supported.items()
        if has.get(name, 0) > 0 and levels.min <= has[name]
    }
