"""Records of consumer groups: bytes as Kafka 4.3 writes them, and back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.consumer_group.encoding import decode_consumer_record, encode_consumer_record
from kpybroker.core.consumer_group.members import ClassicMetadata, CurrentAssignment, MemberMetadata, MemberState
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.values import ResolvedPattern
from kpybroker.core.group.records import decode_record
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch
from kpybroker.wire.errors import ProtocolError
from tests.core.group.logs.random_records import CONSUMER_RECORDS

TOPIC = bytes(range(16))


def compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def key(record_type: int, *texts: str) -> bytes:
    return struct.pack(">h", record_type) + b"".join(struct.pack(">h", len(text)) + text.encode() for text in texts)


@given(CONSUMER_RECORDS)
def test_what_is_written_is_read(record: ConsumerRecord) -> None:
    assert decode_record(*encode_consumer_record(record)) == record


def test_a_group_epoch_as_kafka_writes_it() -> None:
    record = GroupEpochRecord("g", GroupEpoch(7, -2))
    tag = b"\1" + b"\0" + b"\10" + struct.pack(">q", -2)
    assert encode_consumer_record(record) == (key(3, "g"), struct.pack(">hi", 0, 7) + tag)
    without = GroupEpochRecord("g", GroupEpoch(7, 0))
    assert encode_consumer_record(without)[1] == struct.pack(">hi", 0, 7) + b"\0"


def test_a_member_as_kafka_writes_it() -> None:
    metadata = MemberMetadata("i", None, "c", "/h", frozenset(("u", "t")), "", 60, "uniform")
    value = (
        b"\0\0"
        + compact("i")
        + b"\0"
        + compact("c")
        + compact("/h")
        + bytes([3])
        + compact("t")
        + compact("u")
        + compact("")
        + struct.pack(">i", 60)
        + compact("uniform")
    )
    no_classic = b"\1" + b"\0\1\0"  # tag 0 with null: left out, it would be an object of defaults, a classic member's
    record = MemberRecord("g", "m", metadata)
    assert encode_consumer_record(record) == (key(5, "g", "m"), value + no_classic)
    assert decode_record(key(5, "g", "m"), value + b"\0") == record


def test_a_classic_member_has_its_protocols_in_a_tag() -> None:
    metadata = MemberMetadata(classic=ClassicMetadata(10, (("range", b"\0\1"),)))
    encoded = encode_consumer_record(MemberRecord("g", "m", metadata))[1]
    body = struct.pack(">i", 10) + bytes([2]) + compact("range") + b"\3\0\1" + b"\0" + b"\0"
    assert encoded is not None
    assert encoded.endswith(b"\1" + b"\0" + bytes([len(body) + 1]) + b"\1" + body)


def test_targets_as_kafka_writes_them() -> None:
    epoch = encode_consumer_record(TargetEpochRecord("g", TargetEpoch(7, 9)))
    assert epoch == (key(6, "g"), struct.pack(">hi", 0, 7) + b"\1\0\10" + struct.pack(">q", 9))
    target = encode_consumer_record(TargetRecord("g", "m", {TOPIC: frozenset((2, 1))}))
    assert target == (key(7, "g", "m"), b"\0\0\2" + TOPIC + b"\3" + struct.pack(">ii", 1, 2) + b"\0\0")


def test_a_current_assignment_as_kafka_writes_it() -> None:
    current = CurrentAssignment(7, 6, MemberState.UNREVOKED_PARTITIONS, {TOPIC: {1: 5}}, {TOPIC: {2: 6}})
    first = TOPIC + b"\2" + struct.pack(">i", 1) + b"\1\0\5\2" + struct.pack(">i", 5)
    second = TOPIC + b"\2" + struct.pack(">i", 2) + b"\1\0\5\2" + struct.pack(">i", 6)
    value = struct.pack(">hiib", 0, 7, 6, 1) + b"\2" + first + b"\2" + second + b"\0"
    assert encode_consumer_record(CurrentRecord("g", "m", current)) == (key(8, "g", "m"), value)


def test_a_pattern_as_kafka_writes_it() -> None:
    record = PatternRecord("g", "t.*", ResolvedPattern(frozenset(("t2", "t1")), 3, 4))
    value = b"\0\0\3" + compact("t1") + compact("t2") + struct.pack(">qq", 3, 4) + b"\0"
    assert encode_consumer_record(record) == (key(16, "g", "t.*"), value)


def test_partition_metadata_of_kafka_4_0_is_seen_and_removed() -> None:
    assert encode_consumer_record(PartitionMetadataRecord("g", None)) == (key(4, "g"), None)
    topic = TOPIC + compact("t") + struct.pack(">i", 3) + b"\1\0"
    assert decode_record(key(4, "g"), b"\0\0\2" + topic + b"\0") == PartitionMetadataRecord("g", True)


@pytest.mark.parametrize(("member_epoch", "expected"), [(7, 7), (-2, 0)])
@pytest.mark.parametrize("tag", [b"\0", b"\1\0\5\2" + struct.pack(">i", 5)])
def test_assignments_without_epochs_or_with_too_few_have_that_of_the_member(
    member_epoch: int, expected: int, tag: bytes
) -> None:
    """Kafka before 4.3; and a static member that is away got its partitions in epoch 0."""
    topic = TOPIC + b"\3" + struct.pack(">ii", 1, 2) + tag
    value = struct.pack(">hiib", 0, member_epoch, 6, 0) + b"\2" + topic + b"\1" + b"\0"
    record = decode_record(key(8, "g", "m"), value)
    assert isinstance(record, CurrentRecord)
    assert record.value is not None
    assert record.value.assigned == {TOPIC: {1: expected, 2: expected}}


def test_a_state_of_a_later_kafka_is_unknown() -> None:
    record = decode_record(key(8, "g", "m"), struct.pack(">hiib", 0, 7, 6, 9) + b"\1\1\0")
    assert isinstance(record, CurrentRecord)
    assert record.value is not None
    assert record.value.state is MemberState.UNKNOWN


def test_other_types_are_not_of_consumer_groups() -> None:
    for record_type in (0, 1, 2, 9, 10, 17):
        assert decode_consumer_record(record_type, b"\0\1g", None) is None


def test_another_version_of_a_value_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="Unknown version of ConsumerGroupMetadataValue: 1"):
        decode_record(key(3, "g"), struct.pack(">hi", 1, 7) + b"\0")
    with pytest.raises(ProtocolError, match="too short"):
        decode_record(key(3, "g"), b"\0")


@given(st.sampled_from([3, 4, 5, 6, 7, 8, 16]), st.binary(max_size=40), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_record_or_a_protocol_error(record_type: int, rest: bytes, value: bytes | None) -> None:
    try:
        decode_consumer_record(record_type, rest, None if value is None else b"\0\0" + value)
    except ProtocolError:
        pass
