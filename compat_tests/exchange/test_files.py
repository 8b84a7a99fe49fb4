"""The eyes of the exchange: what DumpLogSegments prints is understood, and a difference is seen."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from pathlib import Path

import pytest

from compat_tests.exchange.contents import Contents, Entry
from compat_tests.exchange.files import Dumped, Row, _parse, compare, excused

BATCH = (
    "baseOffset: 4 lastOffset: 5 count: 2 baseSequence: 4 lastSequence: 5 producerId: 7 producerEpoch: 1 "
    "partitionLeaderEpoch: 3 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty position: 90 "
    "CreateTime: 1700000000005 size: 99 magic: 2 compresscodec: lz4 crc: 123 isvalid: true"
)
RECORD = (
    "| offset: 4 CreateTime: 1700000000004 keySize: 2 valueSize: 10 sequence: 4 headerKeys: [turn,x] "
    "key: k1 payload: key: value"
)
MARKER = (
    "| offset: 6 CreateTime: 1700000000006 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
    "endTxnMarker: ABORT coordinatorEpoch: 2"
)
LOG = "/d/t-0/00000000000000000000.log"
INDEX = "/d/t-0/00000000000000000000.index"


def theirs() -> dict[str, Dumped]:
    found: dict[str, Dumped] = defaultdict(Dumped)
    for line in (BATCH, RECORD, MARKER):
        assert _parse(line, found[LOG])
    assert _parse("offset: 5 position: 90", found[INDEX])
    for line, kind in (
        ("timestamp: 1700000000005 offset: 5", "timeIndex"),
        ("version: 0 producerId: 7 firstOffset: 4 lastOffset: 6 lastStableOffset: 7", "abortedTxn"),
        (
            "producerId: 7 producerEpoch: 1 coordinatorEpoch: 2 currentTxnFirstOffset: OptionalLong[4] "
            "lastTimestamp: 9 firstSequence: 4 lastSequence: 5 lastOffset: 5 offsetDelta: 1 timestamp: 9",
            "producer",
        ),
    ):
        assert _parse(line, found[INDEX])
        assert len(found[INDEX].rows[kind]) == 1
    return found


OURS: dict[str, list[Row]] = {
    LOG: [
        {
            "type": "batch",
            "position": 90,
            "baseOffset": 4,
            "lastOffset": 5,
            "count": 2,
            "baseSequence": 4,
            "lastSequence": 5,
            "producerId": 7,
            "producerEpoch": 1,
            "partitionLeaderEpoch": 3,
            "isTransactional": True,
            "isControl": False,
            "deleteHorizonMs": None,
            "timestampType": "CreateTime",
            "timestamp": 1700000000005,
            "size": 99,
            "magic": 2,
            "compression": "lz4",
            "crc": 123,
            "isValid": True,
        },
        {
            "type": "record",
            "offset": 4,
            "timestamp": 1700000000004,
            "keySize": 2,
            "valueSize": 10,
            "sequence": 4,
            "headers": [{"key": "turn", "value": "1"}, {"key": "x", "value": None}],
            "key": "k1",
            "value": "key: value",
        },
        {
            "type": "record",
            "offset": 6,
            "timestamp": 1700000000006,
            "keySize": 4,
            "valueSize": 6,
            "sequence": -1,
            "headers": [],
            "control": "ABORT",
            "coordinatorEpoch": 2,
        },
    ],
    INDEX: [
        {"type": "offsetIndex", "offset": 5, "position": 90},
        {"type": "timeIndex", "timestamp": 1700000000005, "offset": 5},
        {"type": "abortedTxn", "producerId": 7, "firstOffset": 4, "lastOffset": 6, "lastStableOffset": 7},
        {
            "type": "producer",
            "producerId": 7,
            "producerEpoch": 1,
            "coordinatorEpoch": 2,
            "currentTxnFirstOffset": 4,
            "lastTimestamp": 9,
            "firstSequence": 4,
            "lastSequence": 5,
            "lastOffset": 5,
            "offsetDelta": 1,
        },
    ],
}


def ours() -> dict[str, Dumped]:
    found: dict[str, Dumped] = defaultdict(Dumped)
    for file, listed in OURS.items():
        for row in listed:
            found[file].rows[row["type"]].append(deepcopy(row))
    return found


def test_equal_dumps_have_no_differences() -> None:
    assert compare(theirs(), ours(), set()) == []


@pytest.mark.parametrize(
    ("file", "kind", "field", "value"),
    [
        (LOG, "batch", "crc", 124),
        (LOG, "batch", "isTransactional", False),
        (LOG, "record", "value", "other"),
        (INDEX, "offsetIndex", "position", 91),
        (INDEX, "timeIndex", "offset", 4),
        (INDEX, "abortedTxn", "lastStableOffset", 6),
        (INDEX, "producer", "currentTxnFirstOffset", None),
    ],
)
def test_any_difference_is_seen(file: str, kind: str, field: str, value: object) -> None:
    mine = ours()
    mine[file].rows[kind][0][field] = value
    (problem,) = compare(theirs(), mine, set())
    assert problem.startswith(f"{file}: {kind} 0: ")


def test_a_missing_row_a_missing_file_and_nothing_at_all_are_seen() -> None:
    mine = ours()
    mine[LOG].rows["record"].pop()
    assert len(compare(theirs(), mine, set())) == 1
    mine = ours()
    del mine[INDEX]
    assert "dumped by one only" in compare(theirs(), mine, set())[0]
    assert "nothing to compare" in compare({}, {}, set())[0]


@pytest.mark.parametrize(
    "line",
    [
        BATCH.replace("isvalid: true", "isvalid: false"),
        "Found 7 invalid bytes at the end of 0.log",
        "Exception in thread",
    ],
)
def test_complaints_are_no_part_of_a_dump(line: str) -> None:
    assert _parse(line, Dumped()) is None


def test_only_what_compaction_leaves_is_excused() -> None:
    gap = "Non-consecutive offsets in /d/c-0/0.log\n  4 is followed by 9"
    empty = "Found timestamp mismatch in :/d/c-0/0.timeindex\n  Index timestamp: 5, log timestamp: -1"
    assert excused(gap, {"c"})
    assert excused(empty, {"c"})
    assert not excused(gap, {"other"})
    assert not excused(empty.replace("-1", "7"), {"c"})
    assert not excused("Mismatches in :/d/c-0/0.index\n  Index offset: 5, log offset: 4", {"c"})


def test_contents_see_what_is_lost_changed_and_read_too_early() -> None:
    contents = Contents()
    partition = ("t", 0)
    for offset in range(4):
        contents.add(partition, offset, Entry("k", f"v{offset}"), committed=offset != 2)
    contents.last_stable[partition] = 3
    whole = dict(contents.entries[partition])
    assert contents.differences(partition, "read_uncommitted", whole) == []
    assert contents.differences(partition, "read_committed", {n: whole[n] for n in (0, 1)}) == []
    assert len(contents.differences(partition, "read_committed", whole)) == 2
    assert len(contents.differences(partition, "read_uncommitted", {**whole, 1: Entry("k", "x")})) == 1
    assert len(contents.differences(partition, "read_uncommitted", {n: whole[n] for n in (0, 1, 3)})) == 1


def test_of_a_compacted_topic_the_last_record_of_every_key_is_needed() -> None:
    contents = Contents(compacted={"t"})
    for offset, entry in enumerate([Entry("a", "1"), Entry("b", "2"), Entry("a", "3"), Entry("b", None)]):
        contents.add(("t", 0), offset, entry)
    assert contents.differences(("t", 0), "read_uncommitted", {2: Entry("a", "3")}) == []
    assert len(contents.differences(("t", 0), "read_uncommitted", {0: Entry("a", "1")})) == 1


def test_paths_name_their_topics() -> None:
    assert excused(f"Non-consecutive offsets in {Path('/d/a-b-12/0.log')}", {"a-b"})
