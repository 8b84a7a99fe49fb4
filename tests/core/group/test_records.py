"""Records of `__consumer_offsets`: bytes as Kafka writes them, and back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.group.records import (
    GroupRecord,
    OffsetRecord,
    Record,
    RecordVersions,
    StoredGroup,
    StoredMember,
    decode_record,
    encode_record,
)
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ProtocolError

LATEST = RecordVersions()
NAMES = st.text(max_size=20)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
BYTES = st.binary(max_size=30)
TOPIC_IDS = st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16)
OFFSETS = st.builds(OffsetAndMetadata, INT64, INT32, NAMES, INT64, topic_id=TOPIC_IDS)
MEMBERS = st.builds(StoredMember, NAMES, st.none() | NAMES, NAMES, NAMES, INT32, INT32, BYTES, BYTES)
GROUPS = st.builds(
    StoredGroup,
    NAMES,
    INT32,
    st.none() | NAMES,
    st.none() | NAMES,
    INT64,
    st.lists(MEMBERS, max_size=3).map(tuple),
)
RECORDS = st.one_of(
    st.builds(OffsetRecord, NAMES, st.tuples(NAMES, INT32), st.none() | OFFSETS),
    st.builds(GroupRecord, NAMES, st.none() | GROUPS),
)


@given(RECORDS)
def test_what_is_written_is_read(record: Record) -> None:
    key, value = encode_record(record, LATEST)
    assert decode_record(key, value) == record


def test_an_offset_as_kafka_writes_it() -> None:
    record = OffsetRecord("g", ("t", 3), OffsetAndMetadata(5, 2, "m", 7))
    key, value = encode_record(record, LATEST)
    assert key == struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)
    assert value == struct.pack(">hqih1sq", 3, 5, 2, 1, b"m", 7)


def test_an_offset_with_a_topic_id_as_kafka_4_writes_it() -> None:
    """Version 4 is flexible: a compact string, and the id with tag 0. It is written whatever versions are asked for."""
    record = OffsetRecord("g", ("t", 3), OffsetAndMetadata(5, 2, "m", 7, topic_id=bytes(range(16))))
    for versions in (LATEST, RecordVersions(1, 0)):
        key, value = encode_record(record, versions)
        assert value == struct.pack(">hqi", 4, 5, 2) + b"\x02m" + struct.pack(">q", 7) + b"\1\0\x10" + bytes(range(16))
        assert decode_record(key, value) == record


def test_an_expire_timestamp_takes_version_1_and_loses_the_leader_epoch() -> None:
    record = OffsetRecord("g", ("t", 3), OffsetAndMetadata(5, -1, "m", 7, 9))
    key, value = encode_record(record, LATEST)
    assert value == struct.pack(">hqh1sqq", 1, 5, 1, b"m", 7, 9)
    assert decode_record(key, value) == record


def test_a_group_as_kafka_writes_it() -> None:
    member = StoredMember("m", "i", "c", "/h", 60, 10, b"sub", b"as")
    record = GroupRecord("g", StoredGroup("consumer", 4, "range", "m", 99, (member,)))
    key, value = encode_record(record, LATEST)
    assert key == struct.pack(">hh1s", 2, 1, b"g")
    head = struct.pack(">hh8sih5sh1sqi", 3, 8, b"consumer", 4, 5, b"range", 1, b"m", 99, 1)
    names = struct.pack(">h1sh1sh1sh2s", 1, b"m", 1, b"i", 1, b"c", 2, b"/h")
    assert value == head + names + struct.pack(">iii3si2s", 60, 10, 3, b"sub", 2, b"as")


@pytest.mark.parametrize(("offset_version", "group_version"), [(1, 0), (1, 1), (2, 2), (3, 3)])
def test_older_versions_drop_fields_they_do_not_have(offset_version: int, group_version: int) -> None:
    versions = RecordVersions(offset_version, group_version)
    offset = OffsetRecord("g", ("t", 0), OffsetAndMetadata(5, 2, "m", 7))
    read = decode_record(*encode_record(offset, versions))
    assert read == OffsetRecord("g", ("t", 0), OffsetAndMetadata(5, 2 if offset_version == 3 else -1, "m", 7))
    member = StoredMember("m", "i", "c", "/h", 60, 10, b"sub", b"as")
    group = GroupRecord("g", StoredGroup("consumer", 4, "range", "m", 99, (member,)))
    read = decode_record(*encode_record(group, versions))
    assert isinstance(read, GroupRecord)
    assert read.value is not None
    assert read.value.state_timestamp_ms == (99 if group_version >= 2 else -1)
    assert read.value.members[0].group_instance_id == ("i" if group_version >= 3 else None)
    assert read.value.members[0].rebalance_timeout_ms == (60 if group_version >= 1 else 10)


def test_a_key_of_version_0_is_an_offset_too() -> None:
    key, value = encode_record(OffsetRecord("g", ("t", 0), OffsetAndMetadata(5, -1, "", 7)), LATEST)
    assert decode_record(b"\0\0" + key[2:], value) == decode_record(key, value)


def test_a_later_key_version_is_skipped() -> None:
    for later in (9, 18, 24, 99):
        assert decode_record(struct.pack(">h", later) + b"whatever", b"whatever") is None
    assert decode_record(b"\xff\xffwhatever", None) is None


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_record_or_a_protocol_error(key: bytes, value: bytes | None) -> None:
    try:
        decode_record(key, value)
    except ProtocolError:
        pass


@pytest.mark.parametrize("version", [-1, 5, 99])
def test_an_unknown_value_version_is_an_error(version: int) -> None:
    key, value = encode_record(OffsetRecord("g", ("t", 0), OffsetAndMetadata(5, -1, "", 7)), LATEST)
    assert value is not None
    with pytest.raises(ProtocolError, match="Unknown offset message version"):
        decode_record(key, struct.pack(">h", version) + value[2:])
