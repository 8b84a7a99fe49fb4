"""Fetch sessions: epochs, errors, eviction, and which partitions a visit must reach."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest

from kpybroker.core.budget import Owner, StateBudget, StateLimits
from kpybroker.core.replication.fetch_session import EVICTION_MS, CachedPartition, FetchSession, FetchSessionCache
from kpybroker.wire.errors import ErrorCode, KafkaError

ZERO = bytes(16)
HERE, THERE = Owner(address="10.0.0.1"), Owner(address="10.0.0.2")


def key(index: int) -> tuple[bytes, str, int]:
    return (ZERO, "t", index)


def session(partitions: int = 1, *, follower: bool = False, now_ms: int = 0) -> FetchSession:
    made = FetchSession(is_follower=follower, uses_topic_ids=False, now_ms=now_ms)
    for index in range(partitions):
        made.put(CachedPartition(key(index), 0, 1000))
    return made


def cache(slots: int = 2) -> tuple[FetchSessionCache, list[FetchSession]]:
    removed: list[FetchSession] = []
    return FetchSessionCache(slots, removed.append), removed


def look_up(sessions: FetchSessionCache, session_id: int, epoch: int, *, by_id: bool = False) -> FetchSession:
    return sessions.session_for(session_id, epoch, is_follower=False, uses_topic_ids=by_id, now_ms=5)


def test_a_kept_session_counts_its_epochs_and_refuses_others() -> None:
    sessions, _ = cache()
    kept = session()
    assert sessions.keep(kept, iter([0, 77]), 0)
    assert kept.session_id == 77  # 0 is never given
    assert look_up(sessions, 77, 1) is kept
    assert look_up(sessions, 77, 2) is kept
    with pytest.raises(KafkaError) as raised:
        look_up(sessions, 77, 2)
    assert raised.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    with pytest.raises(KafkaError) as raised:
        look_up(sessions, 78, 1)
    assert raised.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR):
        look_up(sessions, 77, 3, by_id=True)


def test_the_epoch_wraps_to_one() -> None:
    kept = session()
    kept.epoch = 2**31 - 1
    kept.next_epoch()
    assert kept.epoch == 1


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_ends_the_session_it_names(epoch: int) -> None:
    sessions, removed = cache()
    kept = session()
    sessions.keep(kept, iter([77]), 0)
    fresh = look_up(sessions, 77, epoch)
    assert fresh is not kept
    assert removed == [kept]
    assert len(sessions) == 0


def test_only_dirty_partitions_are_visited() -> None:
    kept = session(3)
    assert kept.take_dirty() == [key(0), key(1), key(2)]
    for index in range(3):
        kept.visiting(key(index))
    assert kept.take_dirty() == []
    kept.mark_dirty(key(1), 10)
    kept.mark_dirty((ZERO, "other", 0), 10)  # of a forgotten partition: ignored
    assert kept.take_dirty() == [key(1)]
    kept.put(CachedPartition(key(2), 5, 1000))
    assert kept.take_dirty() == [key(1), key(2)]
    assert kept.partitions[key(2)].fetch_offset == 5


def test_a_partition_with_records_moves_to_the_end() -> None:
    kept = session(3)
    kept.visiting(key(0))
    kept.stays_dirty(key(0))
    assert kept.take_dirty() == [key(0), key(1), key(2)]
    kept.move_to_end(kept.partitions[key(0)])
    assert kept.take_dirty() == [key(1), key(2), key(0)]
    kept.put(CachedPartition(key(0), 5, 1000))
    assert kept.take_dirty() == [key(1), key(2), key(0)], "a new position keeps its turn"


def test_a_forgotten_partition_is_no_longer_visited() -> None:
    kept = session(2)
    assert kept.forget(key(0))
    assert not kept.forget(key(0))
    assert kept.take_dirty() == [key(1)]


def test_a_response_names_only_changes() -> None:
    cached = CachedPartition(key(0), 0, 1000)
    quiet = {"has_records": False, "is_special": False}
    assert cached.has_changed(10, 0, **quiet)
    assert not cached.has_changed(10, 0, **quiet)
    assert cached.has_changed(11, 0, **quiet)
    assert cached.has_changed(11, 3, **quiet)
    assert cached.has_changed(11, 3, has_records=True, is_special=False)
    assert cached.has_changed(11, 3, has_records=False, is_special=True)
    assert cached.has_changed(11, 3, **quiet)  # after an error everything is sent again


def test_a_full_cache_keeps_sessions_in_use_and_evicts_idle_ones() -> None:
    sessions, removed = cache(slots=2)
    first, second = session(5), session(5)
    ids = itertools.count(1)
    sessions.keep(first, ids, 0)
    sessions.keep(second, ids, 0)
    assert not sessions.keep(session(5), ids, 10)
    sessions.touch(first, EVICTION_MS)
    candidate = session(1, now_ms=EVICTION_MS + 1)
    assert sessions.keep(candidate, ids, EVICTION_MS + 1)
    assert removed == [second]
    assert sessions.evictions_total == 1


def test_a_follower_takes_the_place_of_an_old_consumer_session() -> None:
    sessions, removed = cache(slots=1)
    consumer = session(100)
    sessions.keep(consumer, iter([1]), 0)
    sessions.touch(consumer, EVICTION_MS)
    follower = session(1, follower=True)
    assert sessions.keep(follower, iter([2]), EVICTION_MS + 1)
    assert removed == [consumer]


# --- the budget


def limited(address: int) -> tuple[FetchSessionCache, StateBudget]:
    budget = StateBudget(StateLimits(address=address))
    return FetchSessionCache(1000, lambda session: None, budget), budget


def of(owner: Owner, partitions: int, *, now_ms: int = 0) -> FetchSession:
    made = session(partitions, now_ms=now_ms)
    made.owner = owner
    return made


def test_an_estimate_is_not_below_what_a_session_takes() -> None:
    tracemalloc.start()
    try:
        made = FetchSession(is_follower=False, uses_topic_ids=False, now_ms=0)
        for number in range(20_000):
            made.put(CachedPartition((ZERO, f"unknown topic {number:06}", number + 1000), number * 1000, number + 300))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(f"{taken / 20_000:.0f} bytes a partition, {taken / made.size:.2f} of the estimate")
    assert 0.5 < taken / made.size < 1.2


def test_sessions_for_which_there_is_no_room_are_not_kept() -> None:
    sessions, budget = limited(1_000_000)
    ids = itertools.count(1)
    kept = [sessions.keep(of(HERE, 500), ids, 0) for _ in range(10)]
    assert (kept[0], kept[-1], len(sessions)) == (True, False, sum(kept))
    assert budget.held(HERE) <= 1_000_000
    assert sessions.keep(of(THERE, 500), ids, 0)
    for session_id in range(1, 20):
        sessions.remove(session_id)
    assert budget.total == 0


def test_what_no_one_uses_makes_room_but_not_others_sessions_for_ones_own_limit() -> None:
    sessions, budget = limited(1_000_000)
    ids = itertools.count(1)
    theirs, ours, later = of(THERE, 1500), of(HERE, 1500), of(HERE, 1500, now_ms=EVICTION_MS)
    assert sessions.keep(theirs, ids, 0)
    assert sessions.keep(ours, ids, 0)
    assert not sessions.keep(later, ids, EVICTION_MS)
    assert sessions.keep(later, ids, EVICTION_MS + 1)
    assert (sessions.peek(theirs.session_id), sessions.peek(ours.session_id)) == (theirs, None)
    assert budget.held(HERE) == later.size


def test_a_session_that_grows_beyond_the_room_ends_and_its_client_begins_again() -> None:
    sessions, budget = limited(100_000)
    kept = of(HERE, 100)
    assert sessions.keep(kept, itertools.count(1), 0)
    for index in range(100, 1000):
        kept.put(CachedPartition(key(index), 0, 1000))
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND):
        sessions.grown(kept, 0)
    assert (len(sessions), budget.total) == (0, 0)


def test_a_session_that_shrinks_gives_back_what_it_has_no_more() -> None:
    sessions, budget = limited(100_000)
    kept = of(HERE, 100)
    assert sessions.keep(kept, itertools.count(1), 0)
    for index in range(50):
        kept.forget(key(index))
    sessions.grown(kept, 0)
    assert budget.held(HERE) == kept.size == of(HERE, 50).size


def test_a_session_that_ends_during_one_of_its_fetches_is_known_to_be_gone() -> None:
    sessions, budget = limited(100_000)
    kept = of(HERE, 100)
    assert sessions.keep(kept, itertools.count(1), 0)
    in_progress = look_up(sessions, kept.session_id, 1)
    sessions.remove(kept.session_id)
    assert (in_progress.session_id, budget.total) == (0, 0)
