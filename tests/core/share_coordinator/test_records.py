"""Records of `__share_group_state`: bytes as Kafka 4.3.1 writes them, and back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.share_coordinator.records import (
    ShareRecord,
    ShareSnapshot,
    ShareState,
    ShareUpdate,
    decode_record,
    encode_record,
)
from kpybroker.core.share_coordinator.values import (
    SharePartitionKey,
    StateBatch,
    check_coordinator_key,
    coordinator_key,
)
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
KEYS = st.builds(SharePartitionKey, st.text(max_size=20), st.binary(min_size=16, max_size=16), INT32)
BATCHES = st.lists(st.builds(StateBatch, INT64, INT64, st.integers(-128, 127), INT16), max_size=4).map(tuple)
STATES = st.builds(ShareState, INT32, INT32, INT32, INT64, INT32, BATCHES, INT64, INT64)
RECORDS = st.builds(ShareSnapshot, KEYS, st.none() | STATES) | st.builds(
    ShareUpdate, KEYS, INT32, INT32, INT64, INT32, BATCHES
)
KEY = SharePartitionKey("g", bytes(range(16)), 3)


@given(RECORDS)
def test_what_is_written_is_read(record: ShareRecord) -> None:
    key, value = encode_record(record)
    assert decode_record(key, value) == record


def test_a_snapshot_as_kafka_writes_it() -> None:
    state = ShareState(1, 2, 3, 4, 5, (StateBatch(6, 7, 2, 1),), 8, 9)
    key, value = encode_record(ShareSnapshot(KEY, state))
    assert key == struct.pack(">hh1s16si", 0, 1, b"g", bytes(range(16)), 3)
    fixed = struct.pack(">hiiiqqq", 0, 1, 2, 3, 4, 8, 9)
    batches = struct.pack(">BqqbhB", 2, 6, 7, 2, 1, 0)
    assert value == fixed + batches + struct.pack(">BBBi", 1, 0, 4, 5)  # the tagged delivery complete count


def test_an_update_as_kafka_writes_it() -> None:
    key, value = encode_record(ShareUpdate(KEY, 1, 3, -1, -1, ()))
    assert key == struct.pack(">hh1s16si", 1, 1, b"g", bytes(range(16)), 3)
    assert value == struct.pack(">hiiqBB", 0, 1, 3, -1, 1, 0)  # no count: no tagged field


def test_a_type_of_a_later_kafka_is_skipped() -> None:
    assert decode_record(struct.pack(">h", 2) + b"anything", b"") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0", b""),
        (encode_record(ShareUpdate(KEY, 0, 0, 0, 0, ()))[0], None),
        (encode_record(ShareSnapshot(KEY, None))[0], struct.pack(">h", 1)),
        (encode_record(ShareSnapshot(KEY, None))[0], b""),
        (struct.pack(">hh", 0, 50), None),
    ],
    ids=["short key", "update without value", "later value", "empty value", "broken key"],
)
def test_damaged_records_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        decode_record(key, value)


@given(KEYS.filter(lambda key: bool(key.group_id.strip())))
def test_the_name_of_a_share_partition_is_valid(key: SharePartitionKey) -> None:
    check_coordinator_key(coordinator_key(key))


def test_the_name_of_a_share_partition_is_kafkas() -> None:
    assert coordinator_key(SharePartitionKey("a:b", bytes(15) + b"\1", 7)) == "a:b:AAAAAAAAAAAAAAAAAAAAAQ:7"


@pytest.mark.parametrize(
    "text",
    ["", "g", "g:AAAAAAAAAAAAAAAAAAAAAQ", ":AAAAAAAAAAAAAAAAAAAAAQ:1", "g:AAAA:1", "g:AAAAAAAAAAAAAAAAAAAAAQ:x"],
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(KafkaError) as caught:
        check_coordinator_key(text)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
