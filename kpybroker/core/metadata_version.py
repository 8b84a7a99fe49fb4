"""`inter.broker.protocol.version`: versions of inter-broker requests and of znodes.

Peers do not negotiate: this one configured version decides for the whole cluster. Kafka's `MetadataVersion`; here a
version is its index in Kafka's list, so that versions compare as numbers.
"""

from __future__ import annotations

from kpybroker.config.metadata_versions import VERSIONS, metadata_version


def parse(text: str) -> int:
    """`3.9-IV0`, or a release alone (`3.9`), which means its last IV. Raises ValueError."""
    name = metadata_version(text)
    if name is None:
        raise ValueError(f"Version {text} is not a valid version")
    return VERSIONS.index(name)


# (from this version on, request version), newest first; ControllerChannelManager.
_LEADER_AND_ISR = (
    (parse("3.4-IV0"), 7),
    (parse("3.2-IV0"), 6),
    (parse("2.8-IV1"), 5),
    (parse("2.4-IV1"), 4),
    (parse("2.4-IV0"), 3),
    (parse("2.2-IV0"), 2),
    (parse("1.0-IV0"), 1),
)
_UPDATE_METADATA = (
    (parse("3.4-IV0"), 8),
    (parse("2.8-IV1"), 7),
    (parse("2.4-IV1"), 6),
    (parse("2.2-IV0"), 5),
    (parse("1.0-IV0"), 4),
    (parse("0.10.2-IV0"), 3),
    (parse("0.10.0-IV1"), 2),
    (parse("0.9.0"), 1),
)
_STOP_REPLICA = (
    (parse("3.4-IV0"), 4),
    (parse("2.6-IV0"), 3),
    (parse("2.4-IV1"), 2),
    (parse("2.2-IV0"), 1),
)
_WRITE_TXN_MARKERS = ((parse("2.8-IV0"), 1),)
_BROKER_ZNODE = ((parse("2.7-IV0"), 5), (parse("0.10.0-IV1"), 4))
_CONTROLLED_SHUTDOWN = ((parse("2.4-IV1"), 3), (parse("2.2-IV0"), 2), (parse("0.9.0"), 1))
_FETCH = (
    (parse("3.9-IV0"), 17),
    (parse("3.7-IV4"), 16),
    (parse("3.5-IV1"), 15),
    (parse("3.5-IV0"), 14),
    (parse("3.1-IV0"), 13),
    (parse("2.7-IV1"), 12),
    (parse("2.3-IV1"), 11),
    (parse("2.1-IV2"), 10),
    (parse("2.0-IV1"), 8),
    (parse("1.1-IV0"), 7),
    (parse("0.11.0-IV1"), 5),
    (parse("0.11.0-IV0"), 4),
    (parse("0.10.1-IV1"), 3),
    (parse("0.10.0-IV0"), 2),
    (parse("0.9.0"), 1),
)
_OFFSET_FOR_LEADER_EPOCH = (
    (parse("2.8-IV0"), 4),
    (parse("2.3-IV1"), 3),
    (parse("2.1-IV1"), 2),
    (parse("2.0-IV0"), 1),
)
_LIST_OFFSETS = (
    (parse("3.9-IV0"), 9),
    (parse("3.5-IV0"), 8),
    (parse("3.0-IV1"), 7),
    (parse("2.8-IV0"), 6),
    (parse("2.2-IV1"), 5),
    (parse("2.1-IV1"), 4),
    (parse("2.0-IV1"), 3),
    (parse("0.11.0-IV0"), 2),
    (parse("0.10.1-IV2"), 1),
)
# Kafka asks the controller which versions it knows. Every broker is of the configured version or later.
_ALTER_PARTITION = ((parse("3.5-IV0"), 3), (parse("3.3-IV0"), 2), (parse("3.2-IV0"), 1))
_FEATURE_ZNODE = ((parse("3.3-IV0"), 2),)

_TRUNCATES_ON_FETCH = parse("2.7-IV1")
_SUPPORTS_OFFSET_FOR_LEADER_EPOCH = parse("0.11.0-IV2")
_SUPPORTS_TOPIC_IDS = parse("2.8-IV0")
_SUPPORTS_FEATURES = parse("2.7-IV0")
_SUPPORTS_ALTER_PARTITION = parse("2.7-IV2")
_SUPPORTS_LEADER_RECOVERY = parse("3.2-IV0")


def leader_and_isr_version(version: int) -> int:
    """The LeaderAndIsr version that the controller sends."""
    return _first(_LEADER_AND_ISR, version, 0)


def update_metadata_version(version: int) -> int:
    """The UpdateMetadata version that the controller sends."""
    return _first(_UPDATE_METADATA, version, 0)


def stop_replica_version(version: int) -> int:
    """The StopReplica version that the controller sends."""
    return _first(_STOP_REPLICA, version, 0)


def write_txn_markers_version(version: int) -> int:
    """The WriteTxnMarkers version that transaction coordinators send."""
    return _first(_WRITE_TXN_MARKERS, version, 0)


def controlled_shutdown_version(version: int) -> int:
    """The ControlledShutdown version that a stopping broker sends."""
    return _first(_CONTROLLED_SHUTDOWN, version, 0)


def fetch_version(version: int) -> int:
    """The Fetch version that followers send."""
    return _first(_FETCH, version, 0)


def offset_for_leader_epoch_version(version: int) -> int:
    """The OffsetForLeaderEpoch version that followers send."""
    return _first(_OFFSET_FOR_LEADER_EPOCH, version, 0)


def list_offsets_version(version: int) -> int:
    """The ListOffsets version that followers send."""
    return _first(_LIST_OFFSETS, version, 0)


def alter_partition_version(version: int) -> int:
    """The AlterPartition version that leaders send."""
    return _first(_ALTER_PARTITION, version, 0)


def truncates_on_fetch(version: int) -> bool:
    """Whether Fetch responses contain the point where the follower's log diverges (KIP-595)."""
    return version >= _TRUNCATES_ON_FETCH


def supports_offset_for_leader_epoch(version: int) -> bool:
    """Whether leaders respond to OffsetForLeaderEpoch (KIP-101)."""
    return version >= _SUPPORTS_OFFSET_FOR_LEADER_EPOCH


def broker_znode_version(version: int) -> int:
    """The version of the JSON in `/brokers/ids/<id>`."""
    return _first(_BROKER_ZNODE, version, 2)


def feature_znode_version(version: int) -> int:
    """The version of the JSON in `/feature`."""
    return _first(_FEATURE_ZNODE, version, 1)


def uses_topic_id(version: int) -> bool:
    """Whether topics have ids (KIP-516)."""
    return version >= _SUPPORTS_TOPIC_IDS


def is_feature_versioning_supported(version: int) -> bool:
    """Whether finalized features exist (KIP-584)."""
    return version >= _SUPPORTS_FEATURES


def is_alter_partition_supported(version: int) -> bool:
    """Whether leaders change their ISR by AlterPartition rather than in the tree (KIP-497)."""
    return version >= _SUPPORTS_ALTER_PARTITION


def is_leader_recovery_supported(version: int) -> bool:
    """Whether an unclean leader is marked as recovering (KIP-704)."""
    return version >= _SUPPORTS_LEADER_RECOVERY


def _first(table: tuple[tuple[int, int], ...], version: int, otherwise: int) -> int:
    return next((number for since, number in table if version >= since), otherwise)
