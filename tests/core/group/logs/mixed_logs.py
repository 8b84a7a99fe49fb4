"""Logs of `__consumer_offsets` that no one broker would write: every kind of record in any order, for two groups.

Classic generations of every version, also such as cannot be; offsets of every version, in and out of transactions;
records of consumer groups; those of share and streams groups and of types that there are not; bytes that are damaged;
and the same record twice. As after a forced downgrade to a Kafka 3.9 and back, or worse.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from hypothesis import strategies as st

from kpybroker.core.group.records import (
    GroupRecord,
    OffsetRecord,
    Record,
    RecordVersions,
    StoredGroup,
    StoredMember,
    encode_record,
)
from kpybroker.core.offsets.values import OffsetAndMetadata
from tests.core.consumer_group.harness import classic_assignment, classic_subscription
from tests.core.group.harness import LogEntry
from tests.core.group.logs.random_records import CONSUMER_RECORDS, GROUPS, MEMBERS

FOREIGN_TYPES = (9, *range(10, 16), *range(17, 25), 99, -1)
"""Share groups, streams groups, and no groups at all."""
_VERSION = struct.Struct(">h")

_SUBSCRIPTIONS = st.sampled_from([classic_subscription("tu", {}), classic_subscription("t", {"t": [0]}), b"", b"own"])
_ASSIGNMENTS = st.sampled_from([classic_assignment("t:0,1"), classic_assignment("u:0"), b"", b"\0\1\xff"])
_STORED_MEMBERS = st.builds(
    StoredMember,
    MEMBERS,
    st.none() | st.sampled_from(["i", "j"]),
    st.just("c"),
    st.just("/h"),
    st.sampled_from([-1, 0, 1_000, 60_000]),
    st.sampled_from([-1, 0, 10_000, 45_000]),
    _SUBSCRIPTIONS,
    _ASSIGNMENTS,
)
_STORED_GROUPS = st.builds(
    StoredGroup,
    st.sampled_from(["consumer", "connect", ""]),
    st.sampled_from([-1, 0, 1, 5]),
    st.none() | st.sampled_from(["", "range"]),
    st.none() | MEMBERS | st.just("who"),
    st.sampled_from([-1, 1_000]),
    st.lists(_STORED_MEMBERS, max_size=3).map(tuple),
)
_OFFSETS = st.builds(
    OffsetAndMetadata,
    st.integers(0, 9),
    st.integers(-1, 3),
    st.sampled_from(["", "m"]),
    st.integers(0, 2_000_000),
    st.none() | st.just(7),
    st.sampled_from([bytes(16), b"1" * 16]),
)
_PARTITIONS = st.tuples(st.sampled_from("tu"), st.integers(0, 1))
_PRODUCERS = st.sampled_from([-1, -1, -1, 7, 8])
_VERSIONS = st.builds(RecordVersions, st.integers(0, 3), st.integers(0, 4))


def _entries(records: st.SearchStrategy[Record]) -> st.SearchStrategy[LogEntry]:
    return st.builds(lambda record, versions: (*encode_record(record, versions), -1), records, _VERSIONS)


def _offset_entry(record: OffsetRecord, versions: RecordVersions, producer_id: int) -> LogEntry:
    if versions.offset_commit_value in (0, 2) and record.value is not None:
        record = replace(record, value=replace(record.value, leader_epoch=-1))
    return (*encode_record(record, versions), producer_id)


def _foreign(record_type: int, group_id: str, value: bytes | None) -> LogEntry:
    return _VERSION.pack(record_type) + _VERSION.pack(len(group_id)) + group_id.encode(), value, -1


def _damaged(entry: LogEntry, at: int, to: int, cut: bool) -> LogEntry:
    """One byte of the value is another one, or the value ends there; of the key, where there is no value."""
    if len(entry) == 2:
        return entry
    key, value, producer_id = entry
    data = bytearray(key if value is None else value)
    at %= len(data)
    data[at] = to
    broken = bytes(data[:at] if cut else data)
    return (broken, None, producer_id) if value is None else (key, broken, producer_id)


_CONSUMER = _entries(CONSUMER_RECORDS)
_CLASSIC = _entries(st.builds(GroupRecord, GROUPS, st.none() | _STORED_GROUPS | _STORED_GROUPS))
_OFFSET = st.builds(
    _offset_entry, st.builds(OffsetRecord, GROUPS, _PARTITIONS, st.none() | _OFFSETS), _VERSIONS, _PRODUCERS
)
_MARKER: st.SearchStrategy[LogEntry] = st.tuples(st.sampled_from([7, 8]), st.booleans())
_SOUND = st.one_of(_CONSUMER, _CONSUMER, _CONSUMER, _CLASSIC, _OFFSET, _OFFSET)
_ANY = st.one_of(
    _SOUND,
    _SOUND,
    _MARKER,
    st.builds(_foreign, st.sampled_from(FOREIGN_TYPES), GROUPS, st.none() | st.binary(max_size=9)),
    st.builds(_damaged, _SOUND, st.integers(0, 99), st.integers(0, 255), st.booleans()),
)

MIXED_LOGS: st.SearchStrategy[list[LogEntry]] = st.lists(
    st.tuples(_ANY, st.sampled_from([1, 1, 1, 2])), max_size=40
).map(lambda entries: [entry for entry, times in entries for _ in range(times)])
