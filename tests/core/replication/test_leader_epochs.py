"""Leader epochs: epochs and offsets increase, and end offsets are Kafka's (LeaderEpochFileCacheTest)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.replication.leader_epochs import EpochEntry, LeaderEpochCache


def cache(*entries: tuple[int, int]) -> LeaderEpochCache:
    return LeaderEpochCache(EpochEntry(*entry) for entry in entries)


def test_an_epoch_is_assigned_once() -> None:
    epochs = cache()
    assert epochs.latest_epoch == -1
    assert epochs.assign(2, 6)
    assert not epochs.assign(2, 7)
    assert epochs.entries == [(2, 6)]
    assert epochs.version == 1


def test_a_new_entry_removes_what_contradicts_it() -> None:
    epochs = cache((1, 0), (2, 10), (3, 20))
    epochs.assign(4, 10)
    assert epochs.entries == [(1, 0), (4, 10)]
    epochs = cache((1, 0), (5, 10))
    epochs.assign(3, 20)
    assert epochs.entries == [(1, 0), (3, 20)]
    epochs = cache((1, 5))
    epochs.assign(1, 3)
    assert epochs.entries == [(1, 3)]


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 0), (0, -1)])
def test_negative_entries_are_refused(epoch: int, offset: int) -> None:
    with pytest.raises(ValueError, match="invalid partition leader epoch"):
        cache().assign(epoch, offset)


@pytest.mark.parametrize(
    ("asked", "response"),
    [
        (-1, (-1, -1)),  # undefined
        (7, (7, 100)),  # the latest ends at the log's end
        (8, (-1, -1)),  # unknown
        (2, (2, 20)),
        (3, (2, 20)),  # between known ones: the one before
        (5, (5, 30)),
        (1, (1, 10)),  # before the first: nothing of it is left below the first one's start
    ],
)
def test_end_offset_for(asked: int, response: tuple[int, int]) -> None:
    assert cache((2, 10), (5, 20), (7, 30)).end_offset_for(asked, 100) == response


def test_end_offset_of_an_empty_cache_is_unknown() -> None:
    assert cache().end_offset_for(0, 10) == (-1, -1)


def test_epoch_for_offset() -> None:
    epochs = cache((2, 10), (5, 20))
    assert [epochs.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 99)] == [None, 2, 2, 5, 5]


def test_truncate_from_end_removes_epochs_at_and_after() -> None:
    epochs = cache((2, 10), (5, 20), (7, 30))
    assert not epochs.truncate_from_end(31)
    assert epochs.truncate_from_end(20)
    assert epochs.entries == [(2, 10)]
    assert epochs.latest_epoch == 2
    assert not epochs.truncate_from_end(-1)


def test_truncate_from_start_keeps_the_epoch_that_holds_the_offset() -> None:
    epochs = cache((2, 10), (5, 20), (7, 30))
    assert not epochs.truncate_from_start(5)
    assert epochs.truncate_from_start(25)
    assert epochs.entries == [(5, 25), (7, 30)]
    assert not epochs.truncate_from_start(25)
    assert epochs.truncate_from_start(30)
    assert epochs.entries == [(7, 30)]


def test_clear() -> None:
    epochs = cache((2, 10))
    epochs.clear()
    assert (epochs.entries, epochs.latest_epoch, epochs.latest_entry, epochs.earliest_entry) == ([], -1, None, None)


steps = st.one_of(
    st.tuples(st.just("assign"), st.integers(0, 20), st.integers(0, 50)),
    st.tuples(st.just("end"), st.integers(0, 50), st.none()),
    st.tuples(st.just("start"), st.integers(0, 50), st.none()),
)


@given(st.lists(steps, max_size=30))
def test_epochs_and_offsets_always_increase_and_version_follows_changes(
    actions: list[tuple[str, int, int | None]],
) -> None:
    epochs = cache()
    for kind, first, second in actions:
        before, version = epochs.entries, epochs.version
        if kind == "assign":
            assert second is not None
            changed = epochs.assign(first, second)
        elif kind == "end":
            changed = epochs.truncate_from_end(first)
        else:
            changed = epochs.truncate_from_start(first)
        entries = epochs.entries
        assert changed == (entries != before) == (epochs.version != version)
        assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(entries))
        assert epochs.latest_epoch == (entries[-1].epoch if entries else -1)
