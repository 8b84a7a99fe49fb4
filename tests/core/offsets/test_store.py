"""Committed offsets against a plain reading of the log, in any order of commits, tombstones and markers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.offsets.store import CommittedOffset, GroupOffsets
from kpybroker.core.offsets.values import OffsetAndMetadata

PARTITIONS = st.sampled_from([("t", 0), ("t", 1)])
PRODUCERS = st.sampled_from([-1, 7, 8])
COMMITS = st.tuples(st.just("commit"), PARTITIONS, PRODUCERS, st.booleans())
MARKERS = st.tuples(st.just("marker"), st.sampled_from([7, 8]), st.booleans())


def value(offset: int, commit_ms: int = 0, expire_ms: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, "", commit_ms, expire_ms)


@given(st.lists(st.one_of(COMMITS, MARKERS), max_size=40))
def test_an_offset_is_the_latest_effective_record(log: list[tuple[object, ...]]) -> None:
    """Each partition has the highest-placed record among those outside transactions and those in committed ones, since
    its last tombstone. So it does not matter whether compaction has removed what is before that.
    """
    offsets = GroupOffsets()
    open_records: dict[int, dict[object, int]] = {}
    expected: dict[object, int] = {}
    for at, entry in enumerate(log):
        if entry[0] == "marker":
            _, producer, is_commit = entry
            assert isinstance(producer, int)
            offsets.replay_marker(producer, bool(is_commit))
            for partition, written_at in open_records.pop(producer, {}).items():
                if is_commit and expected.get(partition, -1) < written_at:
                    expected[partition] = written_at
            continue
        _, partition, producer, is_tombstone = entry
        assert isinstance(partition, tuple)
        assert isinstance(producer, int)
        offsets.replay_commit(partition, None if is_tombstone else value(at), at, producer)
        records = expected if producer < 0 else open_records.setdefault(producer, {})
        if is_tombstone:
            for earlier in (expected, *open_records.values()):
                earlier.pop(partition, None)
        else:
            records[partition] = at
    assert {p: c.record_offset for p, c in offsets.committed.items()} == expected
    for partition in (("t", 0), ("t", 1)):
        assert offsets.is_unstable(partition) == any(partition in records for records in open_records.values())
        assert offsets.get(partition) == (value(expected[partition]) if partition in expected else None)


def test_expiry_by_retention_own_timestamp_and_topic() -> None:
    offsets = GroupOffsets()
    for name, commit_ms, expire_ms in (("old", 0, None), ("new", 50, None), ("kept", 0, 1_000), ("gone", 100, 90)):
        offsets.replay_commit((name, 0), value(1, commit_ms, expire_ms), 0, -1)
    expired = offsets.expired(100, 60, lambda v: v.commit_timestamp_ms)
    assert sorted(topic for topic, _ in expired) == ["gone", "old"]
    expired = offsets.expired(100, 60, lambda v: v.commit_timestamp_ms, {"old"})
    assert [topic for topic, _ in expired] == ["gone"]


def test_stores_are_equal_when_they_hold_the_same() -> None:
    one, two = GroupOffsets(), GroupOffsets()
    assert one == two
    assert not one
    one.replay_commit(("t", 0), value(1), 3, 7)
    assert one != two
    assert one
    two.pending[7] = {("t", 0): CommittedOffset(3, value(1))}
    assert one == two
