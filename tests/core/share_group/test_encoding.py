"""Records of share groups: bytes as Kafka 4.3 writes them, and back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.group.records import RecordVersions, decode_record, encode_record
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch
from kpybroker.core.share_group.encoding import decode_share_record, encode_share_record
from kpybroker.core.share_group.members import ShareAssignment, ShareMemberMetadata
from kpybroker.core.share_group.records import (
    NamedPartitions,
    ShareCurrentRecord,
    ShareGroupEpochRecord,
    ShareMemberRecord,
    ShareRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitions,
    StatePartitionsRecord,
)
from kpybroker.wire.errors import ProtocolError

TOPIC = bytes(range(16))
NAMES = st.text(max_size=3)
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
TOPIC_IDS = st.binary(min_size=16, max_size=16)
PARTITIONS = st.dictionaries(TOPIC_IDS, st.frozensets(st.integers(0, 9)), max_size=2)
STATES = st.dictionaries(TOPIC_IDS, st.builds(NamedPartitions, NAMES, st.frozensets(st.integers(0, 9))), max_size=2)
RECORDS: st.SearchStrategy[ShareRecord] = st.one_of(
    st.builds(
        ShareMemberRecord,
        NAMES,
        NAMES,
        st.none() | st.builds(ShareMemberMetadata, st.none() | NAMES, NAMES, NAMES, st.frozensets(NAMES, max_size=3)),
    ),
    st.builds(ShareGroupEpochRecord, NAMES, st.none() | st.builds(GroupEpoch, INTS, LONGS)),
    st.builds(ShareTargetEpochRecord, NAMES, st.none() | st.builds(TargetEpoch, INTS, LONGS)),
    st.builds(ShareTargetRecord, NAMES, NAMES, st.none() | PARTITIONS),
    st.builds(ShareCurrentRecord, NAMES, NAMES, st.none() | st.builds(ShareAssignment, INTS, INTS, PARTITIONS)),
    st.builds(
        StatePartitionsRecord,
        NAMES,
        st.none() | st.builds(StatePartitions, STATES, STATES, st.dictionaries(TOPIC_IDS, NAMES, max_size=2)),
    ),
)


def key(record_type: int, *texts: str) -> bytes:
    return struct.pack(">h", record_type) + b"".join(struct.pack(">h", len(text)) + text.encode() for text in texts)


def compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


@given(RECORDS)
def test_what_is_written_is_read(record: ShareRecord) -> None:
    assert decode_record(*encode_record(record, RecordVersions())) == record


def test_a_member_as_kafka_writes_it() -> None:
    record = ShareMemberRecord("g", "m", ShareMemberMetadata(None, "c", "/h", frozenset(("u", "t"))))
    value = b"\0\0" + b"\0" + compact("c") + compact("/h") + b"\3" + compact("t") + compact("u") + b"\0"
    assert encode_share_record(record) == (key(10, "g", "m"), value)


def test_epochs_as_kafka_writes_them() -> None:
    assert encode_share_record(ShareGroupEpochRecord("g", GroupEpoch(7, -2))) == (
        key(11, "g"),
        struct.pack(">hiq", 0, 7, -2) + b"\0",
    )
    tag = b"\1" + b"\0" + b"\10" + struct.pack(">q", 99)
    assert encode_share_record(ShareTargetEpochRecord("g", TargetEpoch(7, 99))) == (
        key(12, "g"),
        struct.pack(">hi", 0, 7) + tag,
    )


def test_assignments_as_kafka_writes_them() -> None:
    topics = b"\2" + TOPIC + b"\3" + struct.pack(">ii", 0, 2) + b"\0"
    partitions = {TOPIC: frozenset((2, 0))}
    assert encode_share_record(ShareTargetRecord("g", "m", partitions)) == (
        key(13, "g", "m"),
        b"\0\0" + topics + b"\0",
    )
    assert encode_share_record(ShareCurrentRecord("g", "m", ShareAssignment(5, 4, partitions))) == (
        key(14, "g", "m"),
        struct.pack(">hiib", 0, 5, 4, 0) + topics + b"\0",
    )


def test_states_as_kafka_writes_them() -> None:
    states = StatePartitions({}, {TOPIC: NamedPartitions("t", frozenset((1,)))}, {TOPIC: "u"})
    initialized = b"\2" + TOPIC + compact("t") + b"\2" + struct.pack(">i", 1) + b"\0"
    deleting = b"\2" + TOPIC + compact("u") + b"\0"
    assert encode_share_record(StatePartitionsRecord("g", states)) == (
        key(15, "g"),
        b"\0\0" + b"\1" + initialized + deleting + b"\0",
    )


def test_what_is_not_of_share_groups_or_of_a_later_version() -> None:
    assert decode_share_record(9, b"", None) is None
    with pytest.raises(ProtocolError, match="Unknown version of ShareGroupMetadataValue: 1"):
        decode_share_record(11, key(11, "g")[2:], b"\0\1")
    with pytest.raises(ProtocolError, match="too short for its version"):
        decode_share_record(11, key(11, "g")[2:], b"\0")
