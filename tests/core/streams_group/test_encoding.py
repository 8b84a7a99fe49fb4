"""Records of streams groups: bytes as Kafka 4.3 writes them, and back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.modern_group.records import TargetEpoch
from kpybroker.core.streams_group.encoding import decode_streams_record, encode_streams_record
from kpybroker.core.streams_group.members import (
    CurrentTasks,
    Endpoint,
    HeldTasks,
    MemberState,
    StreamsMemberMetadata,
    Tasks,
)
from kpybroker.core.streams_group.records import (
    STREAMS_RECORD_TYPES,
    StreamsCurrentRecord,
    StreamsGroupEpoch,
    StreamsGroupEpochRecord,
    StreamsMemberRecord,
    StreamsRecord,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    TopologyRecord,
)
from kpybroker.core.streams_group.topics.topology import CopartitionGroup, Subtopology, TopicInfo
from kpybroker.wire.errors import ProtocolError
from tests.core.streams_group.topologies import COUNTING, topology

NAMES = st.text(max_size=3)
INTS = st.integers(-(2**31), 2**31 - 1)
SHORTS = st.integers(-(2**15), 2**15 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
PAIRS = st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple)
TASKS = st.dictionaries(NAMES, st.frozensets(st.integers(0, 9)), max_size=2)
HELD = st.builds(
    HeldTasks, st.dictionaries(NAMES, st.dictionaries(st.integers(0, 9), INTS, max_size=3), max_size=2), TASKS, TASKS
)
TOPICS = st.lists(st.builds(TopicInfo, NAMES, INTS, SHORTS, PAIRS), max_size=2).map(tuple)
TEXTS = st.lists(NAMES, max_size=2).map(tuple)
INDEXES = st.lists(SHORTS, max_size=2).map(tuple)
SUBTOPOLOGIES = st.builds(
    Subtopology,
    NAMES,
    TEXTS,
    TEXTS,
    TOPICS,
    TEXTS,
    TOPICS,
    st.lists(st.builds(CopartitionGroup, INDEXES, INDEXES, INDEXES), max_size=2).map(tuple),
)
MEMBERS = st.builds(
    StreamsMemberMetadata,
    st.none() | NAMES,
    st.none() | NAMES,
    NAMES,
    NAMES,
    INTS,
    INTS,
    NAMES,
    st.none() | st.builds(Endpoint, NAMES, st.integers(0, 2**16 - 1)),
    PAIRS.map(lambda pairs: tuple(sorted(pairs))),
)
RECORDS: st.SearchStrategy[StreamsRecord] = st.one_of(
    st.builds(StreamsGroupEpochRecord, NAMES, st.none() | st.builds(StreamsGroupEpoch, INTS, LONGS, INTS, PAIRS)),
    st.builds(StreamsMemberRecord, NAMES, NAMES, st.none() | MEMBERS),
    st.builds(StreamsTargetEpochRecord, NAMES, st.none() | st.builds(TargetEpoch, INTS, LONGS)),
    st.builds(StreamsTargetRecord, NAMES, NAMES, st.none() | st.builds(Tasks, TASKS, TASKS, TASKS)),
    st.builds(
        StreamsCurrentRecord,
        NAMES,
        NAMES,
        st.none() | st.builds(CurrentTasks, INTS, INTS, st.sampled_from(MemberState), HELD, HELD),
    ),
    st.builds(
        TopologyRecord,
        NAMES,
        st.none()
        | st.builds(lambda epoch, some: topology(*some, epoch=epoch), INTS, st.lists(SUBTOPOLOGIES, max_size=2)),
    ),
)


def key(record_type: int, *texts: str) -> bytes:
    return struct.pack(">h", record_type) + b"".join(struct.pack(">h", len(text)) + text.encode() for text in texts)


def compact(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def read(encoded: tuple[bytes, bytes | None]) -> StreamsRecord | None:
    record_type: int = struct.unpack_from(">h", encoded[0])[0]
    return decode_streams_record(record_type, encoded[0][2:], encoded[1])


@given(RECORDS)
def test_what_is_written_is_read(record: StreamsRecord) -> None:
    assert read(encode_streams_record(record)) == record


def test_epochs_as_kafka_writes_them() -> None:
    configs = (("num.standby.replicas", "1"),)
    tags = b"\2" + b"\0\4" + struct.pack(">i", 3)
    inner = b"\2" + compact("num.standby.replicas") + compact("1") + b"\0"
    tags += b"\1" + bytes([len(inner)]) + inner
    assert encode_streams_record(StreamsGroupEpochRecord("g", StreamsGroupEpoch(7, -2, 3, configs))) == (
        key(17, "g"),
        struct.pack(">hiq", 0, 7, -2) + tags,
    )
    assert encode_streams_record(StreamsGroupEpochRecord("g", StreamsGroupEpoch(7, -2))) == (
        key(17, "g"),
        struct.pack(">hiq", 0, 7, -2) + b"\0",
    )
    assert encode_streams_record(StreamsTargetEpochRecord("g", TargetEpoch(7, 99))) == (
        key(20, "g"),
        struct.pack(">hi", 0, 7) + b"\1\0\10" + struct.pack(">q", 99),
    )


def test_a_member_as_kafka_writes_it() -> None:
    said = StreamsMemberMetadata(None, "r", "c", "/h", 9, 2, "p", Endpoint("e", 40_000), (("a", "b"),))
    value = b"\0\0\0" + compact("r") + compact("c") + compact("/h") + struct.pack(">ii", 9, 2) + compact("p")
    value += b"\1" + compact("e") + struct.pack(">H", 40_000) + b"\0"
    value += b"\2" + compact("a") + compact("b") + b"\0" + b"\0"
    assert encode_streams_record(StreamsMemberRecord("g", "m", said)) == (key(19, "g", "m"), value)


def test_assignments_as_kafka_writes_them() -> None:
    """Only active tasks have epochs; those of other kinds have no such field."""
    zero = compact("0") + b"\3" + struct.pack(">ii", 0, 2)
    target = b"\0\0" + b"\2" + zero + b"\0" + b"\1\1" + b"\0"
    assert encode_streams_record(StreamsTargetRecord("g", "m", Tasks({"0": frozenset((2, 0))}))) == (
        key(21, "g", "m"),
        target,
    )
    current = CurrentTasks(
        7, 6, MemberState.STABLE, HeldTasks({"0": {2: 7, 0: 5}}, {"0": frozenset((0, 2))}), HeldTasks()
    )
    value = struct.pack(">hiib", 0, 7, 6, 1)
    value += b"\2" + zero + b"\1" + b"\0\11" + b"\3" + struct.pack(">ii", 5, 7)
    value += b"\2" + zero + b"\0" + b"\1" * 4 + b"\0"
    assert encode_streams_record(StreamsCurrentRecord("g", "m", current)) == (key(22, "g", "m"), value)


def test_a_topology_as_the_serializer_of_kafka_4_3_1_wrote_it() -> None:
    subtopology = Subtopology(
        "1",
        ("in",),
        (),
        (TopicInfo("c", configs=(("k", "v"),)),),
        ("s",),
        (TopicInfo("q", 4, 2),),
        (CopartitionGroup((0,), (), (0,)),),
    )
    value = bytes.fromhex(
        "0000000000030202310203696e0102026300000000000002026b0276000002027302027100000004000201000202000001020000000000"
    )
    assert encode_streams_record(TopologyRecord("g", topology(subtopology, epoch=3))) == (key(23, "g"), value)


def test_active_tasks_without_epochs_have_that_of_the_member() -> None:
    """As Kafka 4.1 and 4.2 wrote them."""
    value = struct.pack(">hiib", 0, 7, 6, 1) + b"\2" + compact("0") + b"\2" + struct.pack(">i", 4) + b"\0" + b"\1" * 5
    record = decode_streams_record(22, key(22, "g", "m")[2:], value + b"\0")
    assert isinstance(record, StreamsCurrentRecord)
    assert record.value is not None
    assert record.value.assigned.active == {"0": {4: 7}}


def test_tombstones_and_types() -> None:
    assert encode_streams_record(TopologyRecord("g", None)) == (key(23, "g"), None)
    assert read(encode_streams_record(TopologyRecord("g", COUNTING))) == TopologyRecord("g", COUNTING)
    for record_type in (16, 18, 24):
        assert decode_streams_record(record_type, key(record_type, "g")[2:], None) is None
        assert record_type not in STREAMS_RECORD_TYPES


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\1", b"\0\0"])
def test_a_value_that_is_not_one_is_refused(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_streams_record(17, key(17, "g")[2:], value)
