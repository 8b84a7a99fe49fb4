"""Internal topics decoded: every key and value version there is."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from kpybroker.core.share_coordinator.records import ShareSnapshot, ShareUpdate, encode_record
from kpybroker.core.share_coordinator.values import SharePartitionKey, StateBatch
from kpybroker.core.streams_group.records import STREAMS_RECORD_TYPES
from kpybroker.core.topic_names import (
    GROUP_METADATA_TOPIC_NAME,
    SHARE_GROUP_STATE_TOPIC_NAME,
    TRANSACTION_STATE_TOPIC_NAME,
)
from kpybroker.storage.inspection import dump_internal
from kpybroker.storage.inspection.dump_internal import decode_internal
from kpybroker.wire.codec import encode
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kpybroker.wire.messages.group_metadata_key import GroupMetadataKey
from kpybroker.wire.messages.group_metadata_value import GroupMetadataValue
from kpybroker.wire.messages.offset_commit_key import OffsetCommitKey
from kpybroker.wire.messages.offset_commit_value import OffsetCommitValue
from kpybroker.wire.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kpybroker.wire.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from kpybroker.wire.messages.transaction_log_key import TransactionLogKey
from kpybroker.wire.messages.transaction_log_value import TransactionLogValue
from kpybroker.wire.schema import Message


def versioned(message: Message, version: int) -> bytes:
    return struct.pack(">h", version) + encode(message, version)


KINDS = [
    (topic, key_version, key_class, value_class, value_version)
    for topic, kinds in dump_internal._KINDS.items()
    for key_version, (key_class, value_class) in kinds.items()
    for value_version in range(value_class.VERSIONS[0], value_class.VERSIONS[1] + 1)
]


@pytest.mark.parametrize(("topic", "key_version", "key_class", "value_class", "value_version"), KINDS)
def test_every_version_of_every_key_and_value(
    topic: str, key_version: int, key_class: type[Message], value_class: type[Message], value_version: int
) -> None:
    key, value = decode_internal(topic, versioned(key_class(), key_version), versioned(value_class(), value_version))
    assert key is not None
    assert value is not None
    assert (key["type"], key["version"]) == (key_class.__name__, key_version)
    assert (value["type"], value["version"]) == (value_class.__name__, value_version)


def test_names_are_kafkas() -> None:
    key = versioned(OffsetCommitKey(group="g", topic="t", partition=3), 1)
    value = versioned(OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=9), 3)
    assert decode_internal(GROUP_METADATA_TOPIC_NAME, key, value) == (
        {"type": "OffsetCommitKey", "version": 1, "data": {"group": "g", "topic": "t", "partition": 3}},
        {
            "type": "OffsetCommitValue",
            "version": 3,
            "data": {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 9},
        },
    )


def test_a_tagged_field_is_shown_where_it_is_in_the_bytes() -> None:
    key = versioned(OffsetCommitKey(group="g", topic="t"), 1)
    for topic_id, shown in ((bytes(16), None), (bytes(range(16)), "AAECAwQFBgcICQoLDA0ODw")):
        _, value = decode_internal(GROUP_METADATA_TOPIC_NAME, key, versioned(OffsetCommitValue(topic_id=topic_id), 4))
        assert value is not None
        assert value["data"].get("topicId") == shown


def test_records_of_streams_groups_are_read() -> None:
    key = versioned(StreamsGroupMetadataKey(group_id="g"), 17)
    message = StreamsGroupMetadataValue(
        epoch=3,
        metadata_hash=-1,
        validated_topology_epoch=2,
        last_assignment_configs=[StreamsGroupMetadataValue.LastAssignmentConfig(key="num.standby.replicas", value="1")],
    )
    shown_key, shown = decode_internal(GROUP_METADATA_TOPIC_NAME, key, versioned(message, 0))
    assert shown_key == {"type": "StreamsGroupMetadataKey", "version": 17, "data": {"groupId": "g"}}
    assert shown is not None
    assert (shown["type"], shown["data"]) == (
        "StreamsGroupMetadataValue",
        {
            "epoch": 3,
            "metadataHash": -1,
            "validatedTopologyEpoch": 2,
            "lastAssignmentConfigs": [{"key": "num.standby.replicas", "value": "1"}],
        },
    )
    _, broken = decode_internal(GROUP_METADATA_TOPIC_NAME, key, b"\0\0no value")
    assert broken is not None
    assert "error" in broken


@pytest.mark.parametrize("number", sorted(STREAMS_RECORD_TYPES))
def test_keys_of_streams_groups_stand_alone_or_are_refused_where_they_break_off(number: int) -> None:
    ids = 2 if number in (19, 21, 22) else 1
    key = struct.pack(">h", number) + struct.pack(">hs", 1, b"x") * ids
    shown, value = decode_internal(GROUP_METADATA_TOPIC_NAME, key, None)
    assert shown is not None
    assert (shown["version"], list(shown["data"].values()), value) == (number, ["x"] * ids, None)
    broken, _ = decode_internal(GROUP_METADATA_TOPIC_NAME, key[:-1], b"\0\0")
    assert broken is not None
    assert "error" in broken


def test_a_tombstone_has_a_key_only() -> None:
    key, value = decode_internal(GROUP_METADATA_TOPIC_NAME, versioned(GroupMetadataKey(group="g"), 2), None)
    assert key is not None
    assert key["data"] == {"group": "g"}
    assert value is None


def test_transactions_say_their_state() -> None:
    message = TransactionLogValue(
        producer_id=5,
        transaction_status=4,
        transaction_partitions=[TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[1, 2])],
    )
    key = versioned(TransactionLogKey(transactional_id="x"), 0)
    _, value = decode_internal(TRANSACTION_STATE_TOPIC_NAME, key, versioned(message, 0))
    assert value is not None
    assert value["state"] == "CompleteCommit"
    assert value["data"]["transactionPartitions"] == [{"topic": "t", "partitionIds": [1, 2]}]


def test_states_of_share_partitions_are_decoded() -> None:
    share_partition = SharePartitionKey("g", bytes(15) + b"\1", 2)
    update = ShareUpdate(share_partition, 3, 4, -1, -1, (StateBatch(5, 6, 2, 1),))
    key, value = decode_internal(SHARE_GROUP_STATE_TOPIC_NAME, *encode_record(update))
    assert key == {
        "type": "ShareUpdateKey",
        "version": 1,
        "data": {"groupId": "g", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 2},
    }
    assert value is not None
    assert value["data"] == {
        "snapshotEpoch": 3,
        "leaderEpoch": 4,
        "startOffset": -1,
        "stateBatches": [{"firstOffset": 5, "lastOffset": 6, "deliveryState": 2, "deliveryCount": 1}],
    }
    assert (
        decode_internal(SHARE_GROUP_STATE_TOPIC_NAME, *encode_record(ShareSnapshot(share_partition, None)))[1] is None
    )


def member(subscription: bytes, protocol_type: str = "consumer") -> Any:
    group = GroupMetadataValue(
        protocol_type=protocol_type,
        protocol="range",
        leader="m",
        members=[GroupMetadataValue.MemberMetadata(member_id="m", subscription=subscription, assignment=b"")],
    )
    _, value = decode_internal(
        GROUP_METADATA_TOPIC_NAME, versioned(GroupMetadataKey(group="g"), 2), versioned(group, 3)
    )
    assert value is not None
    return value["data"]["members"][0]


def test_a_consumers_subscription_is_decoded_and_other_bytes_stay_bytes() -> None:
    subscription = versioned(ConsumerProtocolSubscription(topics=["t"]), 1)
    assert member(subscription)["subscription"]["topics"] == ["t"]
    later = struct.pack(">h", 9) + encode(ConsumerProtocolSubscription(topics=["t"]), 3)
    assert member(later)["subscription"]["topics"] == ["t"]
    assert member(b"\0")["subscription"] == base64.b64encode(b"\0").decode()
    assert member(subscription, "connect")["subscription"] == base64.b64encode(subscription).decode()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"x"),
        (b"\0", b"x"),
        (struct.pack(">h", 99) + b"later", b"x"),
        (versioned(OffsetCommitKey(group="g", topic="t"), 1)[:-2], b"x"),
        (versioned(OffsetCommitKey(group="g", topic="t"), 1), struct.pack(">h", 77)),
    ],
)
def test_unreadable_values_are_shown_as_they_are(key: bytes | None, value: bytes) -> None:
    decoded_key, decoded_value = decode_internal(GROUP_METADATA_TOPIC_NAME, key, value)
    assert decoded_value is not None
    assert decoded_value["base64"] == base64.b64encode(value).decode()
    if key is not None and decoded_key is not None and "base64" in decoded_key:
        assert decoded_key["base64"] == base64.b64encode(key).decode()
