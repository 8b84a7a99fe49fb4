"""Share sessions: epochs, what a response names, the limit, and what a lost connection ends."""

from __future__ import annotations

import pytest

from kpybroker.core.budget import Owner, StateBudget, StateLimits
from kpybroker.core.share.sessions import (
    LAST_EPOCH,
    PARTITION_BYTES,
    SESSION_BYTES,
    SessionKey,
    SharePartitionId,
    ShareSessionCache,
)
from kpybroker.wire.errors import ErrorCode, KafkaError

TOPIC = bytes(15) + b"\x01"
KEY = SessionKey("g", "m1")
OTHER = SessionKey("g", "m2")
ELSEWHERE = SessionKey("h", "m1")


def ids(*indexes: int) -> list[SharePartitionId]:
    return [SharePartitionId(TOPIC, index) for index in indexes]


def indexes(cache: ShareSessionCache, key: SessionKey = KEY) -> list[int]:
    return [one.partition for one in cache.require(key).partitions]


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


def test_epochs_rise_by_one_and_wrap_to_one() -> None:
    cache = ShareSessionCache(10)
    session = cache.open(KEY, ids(0), "c")
    assert cache.update(KEY, 1) is session
    assert cache.acknowledging(KEY, 2) is session
    session.epoch = LAST_EPOCH
    cache.update(KEY, LAST_EPOCH)
    assert session.epoch == 1


@pytest.mark.parametrize("epoch", [0, 2, -2, LAST_EPOCH])
def test_another_epoch_than_the_next_one_is_refused_and_changes_nothing(epoch: int) -> None:
    cache = ShareSessionCache(10)
    cache.open(KEY, ids(0), "c")
    with refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH):
        cache.update(KEY, epoch, ids(1), ids(0))
    with refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH):
        cache.acknowledging(KEY, epoch)
    assert (cache.require(KEY).epoch, indexes(cache)) == (1, [0])


def test_a_member_without_a_session_gets_not_found_but_for_epoch_0_of_an_acknowledgement() -> None:
    cache = ShareSessionCache(10)
    cache.open(OTHER, ids(0), "c")
    for epoch in (1, -1):
        with refused(ErrorCode.SHARE_SESSION_NOT_FOUND):
            cache.acknowledging(KEY, epoch)
    with refused(ErrorCode.SHARE_SESSION_NOT_FOUND):
        cache.update(KEY, 1)
    with refused(ErrorCode.INVALID_SHARE_SESSION_EPOCH):
        cache.acknowledging(KEY, 0)


def test_the_last_request_finds_the_session_whatever_its_epoch_and_does_not_change_it() -> None:
    cache = ShareSessionCache(10)
    session = cache.open(KEY, ids(0), "c")
    assert cache.acknowledging(KEY, -1) is session
    assert session.epoch == 1
    assert cache.get(KEY) is session


def test_opening_with_acknowledgements_is_refused_and_the_old_session_goes_on() -> None:
    cache = ShareSessionCache(10)
    session = cache.open(KEY, ids(0), "c")
    with refused(ErrorCode.INVALID_REQUEST):
        cache.open(KEY, ids(1), "c", acknowledges=True)
    assert cache.get(KEY) is session


def test_opening_again_replaces_the_session() -> None:
    cache = ShareSessionCache(10)
    cache.open(KEY, ids(0, 1), "c")
    cache.update(KEY, 1)
    cache.open(KEY, ids(2), "c")
    assert (cache.require(KEY).epoch, indexes(cache), len(cache)) == (1, [2], 1)


def test_every_partition_that_is_named_joins_until_it_is_forgotten() -> None:
    cache = ShareSessionCache(10)
    cache.open(KEY, ids(0, 1), "c")
    cache.update(KEY, 1, named=ids(1, 2), forgotten=ids(0, 7))
    assert indexes(cache) == [1, 2]
    assert cache.partitions == 2


def test_a_partition_that_is_named_and_forgotten_in_one_request_is_forgotten() -> None:
    cache = ShareSessionCache(10)
    cache.open(KEY, ids(0), "c")
    cache.update(KEY, 1, named=ids(1), forgotten=ids(1))
    assert indexes(cache) == [0]


def test_responses_name_what_has_records_or_errors_and_what_is_new() -> None:
    cache = ShareSessionCache(10)
    session = cache.open(KEY, ids(0), "c")
    cache.update(KEY, 1, named=ids(1))
    old, new = ids(0, 1)
    assert not session.names(old, has_records=False, has_error=False)
    assert session.names(new, has_records=False, has_error=False)
    assert not session.names(new, has_records=False, has_error=False), "it is new once"
    assert session.names(old, has_records=True, has_error=False)
    assert session.names(old, has_records=False, has_error=True)
    assert session.names(old, has_records=False, has_error=False), "the end of an error is named"
    assert not session.names(old, has_records=False, has_error=False)


def test_a_partition_with_records_is_last_the_next_time() -> None:
    cache = ShareSessionCache(10)
    session = cache.open(KEY, ids(0, 1, 2), "c")
    session.names(ids(0)[0], has_records=True, has_error=False)
    assert indexes(cache) == [1, 2, 0]


def test_a_partition_that_was_forgotten_while_a_request_waited_is_not_named_and_does_not_return() -> None:
    cache = ShareSessionCache(10)
    session = cache.open(KEY, ids(0), "c")
    cache.update(KEY, 1, forgotten=ids(0))
    assert not session.names(ids(0)[0], has_records=True, has_error=False)
    assert indexes(cache) == []


def test_above_the_limit_a_new_session_is_refused_and_no_other_ends() -> None:
    cache = ShareSessionCache(2)
    cache.open(KEY, ids(0), "c")
    cache.open(OTHER, ids(0), "c")
    with refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED):
        cache.open(ELSEWHERE, ids(0), "c")
    assert len(cache) == 2
    cache.open(KEY, ids(0), "c")  # in place of its own
    cache.remove(OTHER)
    cache.open(ELSEWHERE, ids(0), "c")


def test_a_lost_connection_ends_its_sessions_and_makes_a_group_idle() -> None:
    cache = ShareSessionCache(10)
    mine = cache.open(KEY, ids(0), "c")
    cache.open(OTHER, ids(0), "d")
    theirs = cache.open(ELSEWHERE, ids(0), "c")
    assert cache.disconnected("c") == ([mine, theirs], ["h"])
    assert cache.disconnected("c") == ([], [])
    assert cache.get(OTHER) is not None
    assert cache.evictions_total == 2


def test_a_session_that_was_opened_again_elsewhere_survives_its_first_connection() -> None:
    cache = ShareSessionCache(10)
    cache.open(KEY, ids(0), "c")
    cache.open(KEY, ids(0), "d")
    assert cache.disconnected("c") == ([], [])
    assert cache.get(KEY) is not None


def test_a_group_whose_last_session_ended_before_is_idle_when_the_connection_ends() -> None:
    cache = ShareSessionCache(10)
    cache.open(KEY, ids(0), "c")
    cache.remove(KEY)
    assert cache.disconnected("c") == ([], ["g"])


def test_sessions_that_end_on_a_connection_that_goes_on_leave_nothing_behind() -> None:
    cache = ShareSessionCache(10)
    for number in range(1_000):
        key = SessionKey("g", f"m{number}")
        cache.open(key, ids(0), "c")
        cache.remove(key)
    assert len(cache._opened_by["c"]) == 1


def test_sessions_are_charged_to_their_owner_and_given_back() -> None:
    budget, owner = StateBudget(), Owner(address="a")
    cache = ShareSessionCache(10, budget)
    cache.open(KEY, ids(0), "c", owner)
    cache.update(KEY, 1, named=ids(1, 2))
    assert budget.held(owner) == SESSION_BYTES + 3 * PARTITION_BYTES
    cache.update(KEY, 2, forgotten=ids(1, 2))
    assert budget.held(owner) == SESSION_BYTES + PARTITION_BYTES
    cache.clear()
    assert budget.total == 0


def test_without_room_a_session_is_refused_and_one_that_grows_ends() -> None:
    owner = Owner(address="a")
    budget = StateBudget(StateLimits(address=SESSION_BYTES + 2 * PARTITION_BYTES))
    cache = ShareSessionCache(10, budget)
    cache.open(KEY, ids(0), "c", owner)
    with refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED):
        cache.open(OTHER, ids(0), "c", owner)
    cache.update(KEY, 1, named=ids(1))
    with refused(ErrorCode.SHARE_SESSION_NOT_FOUND):
        cache.update(KEY, 2, named=ids(2))
    assert (len(cache), budget.total) == (0, 0)
