"""The leader's view of its replicas: high watermark, ISR, the controller's responses. Rules of Kafka's `Partition`."""

from __future__ import annotations

import pytest

from kpybroker.core.replication.replica import LeaderState, Verdict
from kpybroker.wire.errors import ErrorCode

LAG_MS = 1000


class Contact:
    def __init__(self, last_used_ms: int) -> None:
        self.last_used_ms = last_used_ms


def leader(replicas: tuple[int, ...] = (1, 2, 3), isr: tuple[int, ...] = (1, 2, 3), end: int = 0) -> LeaderState:
    state = LeaderState(1, end, 0)
    state.take_epoch(5, 7, replicas, isr, 0)
    return state


@pytest.fixture
def state() -> LeaderState:
    """Of three replicas, the last is not in the ISR."""
    return leader(isr=(1, 2))


def advance(state: LeaderState, now_ms: int = 0, min_isr: int = 1, dead: tuple[int, ...] = ()) -> int:
    return state.advance(min_isr, now_ms, LAG_MS, lambda broker_id: broker_id not in dead)


def test_a_leader_alone_commits_what_it_appends() -> None:
    assert leader((1,), (1,)).appended(10) == 10


def test_the_high_watermark_is_the_smallest_end_of_the_in_sync_replicas() -> None:
    state = leader()
    state.appended(10)
    assert advance(state) == 0
    state.fetched(2, 10, 0, 1)
    assert advance(state) == 0
    state.fetched(3, 4, 0, 1)
    assert advance(state) == 4


def test_an_out_of_sync_replica_does_not_hold_the_high_watermark_back(state: LeaderState) -> None:
    state.appended(10)
    state.fetched(2, 10, 0, 5000)
    assert advance(state, now_ms=5000) == 10


def test_a_replica_about_to_join_holds_it_back_while_alive() -> None:
    """Otherwise a follower could never reach a high watermark that moves with every append."""
    for dead, expected in (((), 8), ((3,), 10)):
        state = leader(isr=(1, 2), end=8)
        state.fetched(3, 8, 0, 5000)
        state.appended(10)
        state.fetched(2, 10, 0, 5000)
        assert advance(state, now_ms=5000, dead=dead) == expected


def test_below_min_isr_nothing_is_committed() -> None:
    state = leader(isr=(1,))
    state.appended(10)
    assert advance(state, now_ms=9000, min_isr=2) == 0
    assert advance(state, now_ms=9000, min_isr=1) == 10


def test_min_isr_is_never_more_than_there_are_replicas() -> None:
    assert leader().effective_min_isr(5) == 3
    assert leader().effective_min_isr(2) == 2


def test_a_replica_that_joins_counts_before_the_controller_has_agreed(state: LeaderState) -> None:
    state.appended(10)
    state.fetched(2, 10, 0, 5000)
    state.high_watermark = 5
    state.fetched(3, 6, 0, 5000)
    assert state.may_join(3)
    change = state.propose(state.isr | {3})
    assert state.isr == {1, 2}
    assert state.maximal_isr == {1, 2, 3}
    assert advance(state, now_ms=9000) == 6
    assert state.agreed(change, 5, 8, [1, 2, 3]) is Verdict.COMMITTED
    assert state.isr == {1, 2, 3}
    assert state.partition_epoch == 8


def test_a_replica_that_leaves_counts_until_the_controller_has_agreed() -> None:
    state = leader()
    state.appended(10)
    state.fetched(2, 10, 0, 5000)
    change = state.propose(state.isr - {3})
    assert advance(state, now_ms=9000) == 0
    state.agreed(change, 5, 8, [1, 2])
    assert advance(state, now_ms=9000) == 10


def test_one_change_at_a_time(state: LeaderState) -> None:
    state.propose({1, 2, 3})
    state.fetched(3, 0, 0, 0)
    assert not state.may_join(3)
    assert state.out_of_sync(99_999, LAG_MS) == frozenset()


@pytest.mark.parametrize(
    ("before", "wanted", "asked"),
    [
        ((2, 3), {1, 2, 3}, (2, 3, 1)),
        ((3, 1, 2), {2, 3}, (3, 2)),
        ((4, 1, 3), {1, 2, 3, 4}, (4, 1, 3, 2)),
        ((5, 4, 3, 2), {1, 2, 3, 4, 5}, (1, 2, 3, 4, 5)),
    ],
)
def test_the_isr_is_in_the_order_in_which_they_joined(
    before: tuple[int, ...], wanted: set[int], asked: tuple[int, ...]
) -> None:
    """That of a Scala set: the controller writes what it is sent, and `kafka-topics --describe` shows it."""
    assert leader((1, 2, 3, 4, 5), isr=before).propose(wanted).isr == asked


@pytest.mark.parametrize(("end", "joins"), [(4, False), (5, True), (9, True)])
def test_a_follower_joins_from_the_high_watermark_on(state: LeaderState, end: int, joins: bool) -> None:
    state.appended(10)
    state.high_watermark = 5
    state.fetched(3, end, 0, 0)
    assert state.may_join(3) is joins


def test_a_follower_joins_only_from_the_start_of_the_leaders_epoch_on() -> None:
    """Below it, it may hold what the former leader wrote and this one never had (KAFKA-7128)."""
    state = leader(isr=(1, 2), end=10)
    state.fetched(3, 9, 0, 0)
    assert not state.may_join(3)
    state.fetched(3, 10, 0, 0)
    assert state.may_join(3)


def test_a_follower_that_reads_at_the_end_in_time_stays() -> None:
    state = leader()
    state.appended(10)
    for now in range(0, 5000, 500):
        state.fetched(2, state.log_end_offset, 0, now)
        state.fetched(3, 5, 0, now)
        state.appended(state.log_end_offset + 1)
    assert state.out_of_sync(5000, LAG_MS) == {3}


def test_a_follower_that_reaches_the_end_of_its_last_fetch_was_caught_up_then() -> None:
    state = leader()
    for now in range(0, 10_000, 500):
        before = state.log_end_offset
        state.appended(before + 100)
        state.fetched(2, before, 0, now)  # always one append behind
        state.fetched(3, before, 0, now)
    assert state.out_of_sync(10_000, LAG_MS) == frozenset()


def test_an_idle_follower_counts_by_its_session() -> None:
    """It fetched all the time; its session had no change of this partition, which was not visited."""
    state, contact = leader((1, 2), (1, 2)), Contact(0)
    state.fetched(2, 0, 0, 0, contact)
    contact.last_used_ms = 60_000
    state.appended(1)
    assert state.out_of_sync(60_500, LAG_MS) == frozenset()
    assert state.out_of_sync(61_001, LAG_MS) == {2}


def test_a_leader_elected_again_restarts_the_lag_of_in_sync_replicas_and_keeps_their_ends() -> None:
    state = leader()
    state.appended(10)
    state.fetched(2, 7, 0, 10)
    state.propose({1, 2})
    state.take_epoch(6, 8, (1, 2, 3), (1, 2), 50_000)
    assert state.followers[2].log_end_offset == 7
    assert (state.pending, state.epoch_start_offset) == (None, 10)
    assert state.out_of_sync(50_900, LAG_MS) == frozenset()


@pytest.mark.parametrize(
    ("error", "verdict", "is_open"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, Verdict.DROPPED, False),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, Verdict.DROPPED, False),
        (ErrorCode.INVALID_UPDATE_VERSION, Verdict.DROPPED, True),
        (ErrorCode.FENCED_LEADER_EPOCH, Verdict.DROPPED, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, Verdict.DROPPED, True),
        (ErrorCode.NOT_CONTROLLER, Verdict.RETRY, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Verdict.RETRY, True),
    ],
)
def test_only_errors_that_exclude_a_later_change_close_it(
    state: LeaderState, error: ErrorCode, verdict: Verdict, is_open: bool
) -> None:
    change = state.propose({1, 2, 3})
    assert state.refused(change, error) is verdict
    assert (state.pending is change) is is_open
    assert state.maximal_isr == ({1, 2, 3} if is_open else {1, 2})


def test_a_response_from_before_the_last_election_is_ignored(state: LeaderState) -> None:
    change = state.propose({1, 2, 3})
    state.take_epoch(6, 8, (1, 2, 3), (1,), 0)
    assert state.agreed(change, 5, 8, [1, 2, 3]) is Verdict.DROPPED
    assert state.refused(change, ErrorCode.INELIGIBLE_REPLICA) is Verdict.DROPPED
    assert state.isr == {1}


def test_an_older_state_of_the_partition_is_ignored(state: LeaderState) -> None:
    change = state.propose({1, 2, 3})
    assert state.agreed(change, 5, 6, [1]) is Verdict.DROPPED
    assert state.agreed(change, 5, 7, [1, 2]) is Verdict.COMMITTED  # nothing to do: the state is the same


def test_the_low_watermark_is_the_smallest_start_of_live_replicas() -> None:
    state = leader()
    assert state.low_watermark(4, lambda _: True) == -1
    state.fetched(2, 9, 3, 0)
    state.fetched(3, 9, 2, 0)
    assert state.low_watermark(4, lambda _: True) == 2
    assert state.low_watermark(4, lambda broker_id: broker_id == 2) == 3
    assert leader((1,), (1,)).low_watermark(4, lambda _: True) == 4


# --- what is asserted


@pytest.mark.parametrize("epoch", [4, 5])
def test_a_leader_epoch_that_does_not_grow_is_noticed(state: LeaderState, epoch: int) -> None:
    with pytest.raises(AssertionError, match=f"leader epoch {epoch} after 5"):
        state.take_epoch(epoch, 8, (1, 2, 3), (1, 2), 0)


def test_a_broker_that_is_no_replica_cannot_join_the_isr(state: LeaderState) -> None:
    with pytest.raises(AssertionError, match=r"\{4\} would join the ISR of \{1, 2, 3\}"):
        state.propose({1, 2, 4})


def test_an_isr_may_have_brokers_that_are_no_replicas_any_more() -> None:
    """As the controller orders it at the end of a reassignment. They leave it like replicas that lag."""
    state = leader((1, 2), (1, 2, 3, 4))
    assert state.out_of_sync(0, LAG_MS) == {3, 4}
    assert state.propose({1, 2, 3}).isr == (1, 2, 3)
