"""Where a follower begins, where it truncates its log, and which fetcher it has: Kafka's ``AbstractFetcherThread``."""

from __future__ import annotations

import pytest

from kpybroker.core.replication.follower import (
    FetchState,
    FollowerLog,
    OutOfRange,
    Truncation,
    fetcher_id,
    initial_state,
    out_of_range,
    truncation,
)
from kpybroker.core.replication.leader_epochs import EpochEndOffset

UNKNOWN = EpochEndOffset(-1, -1)


@pytest.mark.parametrize(
    ("latest_epoch", "truncates_on_fetch", "offset", "is_truncating", "last_fetched"),
    [
        (3, True, 10, False, 3),  # the leader's response says where the logs diverge
        (-1, True, 6, True, -1),  # without epochs: truncate to the high watermark
        (3, False, 6, True, -1),  # an old leader is asked first
    ],
)
def test_how_a_follower_begins(
    latest_epoch: int, truncates_on_fetch: bool, offset: int, is_truncating: bool, last_fetched: int
) -> None:
    log = FollowerLog(10, 6, latest_epoch)
    state = initial_state("t", 0, bytes(16), 4, log, truncates_on_fetch=truncates_on_fetch)
    assert (state.fetch_offset, state.is_truncating, state.last_fetched_epoch) == (offset, is_truncating, last_fetched)
    assert not state.is_in_sync


@pytest.mark.parametrize(
    ("leader", "own", "expected"),
    [
        (EpochEndOffset(2, 8), EpochEndOffset(2, 10), Truncation(8, True)),
        (EpochEndOffset(2, 20), EpochEndOffset(2, 9), Truncation(9, True)),
        (EpochEndOffset(2, 20), EpochEndOffset(2, 12), Truncation(10, True)),
        (EpochEndOffset(2, 8), EpochEndOffset(1, 5), Truncation(5, False)),
        (EpochEndOffset(2, 8), UNKNOWN, Truncation(8, True)),
        (EpochEndOffset(-1, 7), EpochEndOffset(2, 9), Truncation(7, True)),
        (UNKNOWN, EpochEndOffset(2, 9), Truncation(4, True)),
    ],
    ids=[
        "longer",
        "shorter",
        "not beyond the end",
        "unknown epoch",
        "no epochs here",
        "old leader",
        "leader knows none",
    ],
)
def test_where_a_log_is_truncated(leader: EpochEndOffset, own: EpochEndOffset, expected: Truncation) -> None:
    assert truncation(leader, own, 4, 10) == expected


def test_a_log_that_ends_after_the_leaders_is_truncated() -> None:
    assert out_of_range(10, 0, 7) == OutOfRange(7, truncate_to=7)


def test_a_log_that_ends_before_the_leaders_start_restarts_there() -> None:
    assert out_of_range(10, 15, 20) == OutOfRange(15, restart_at=15, lag=5)


def test_a_log_within_the_leaders_continues() -> None:
    assert out_of_range(10, 5, 20) == OutOfRange(10, lag=10)


def test_a_follower_is_in_sync_once_it_has_the_high_watermark() -> None:
    state = FetchState("t", 0, bytes(16), 1, 5)
    state.fetched(8, 9, 1)
    assert (state.lag, state.is_in_sync, state.last_fetched_epoch) == (1, False, 1)
    state.fetched(9, 9, -1)
    assert (state.is_in_sync, state.last_fetched_epoch) == (True, 1)


@pytest.mark.parametrize(
    ("topic", "index", "fetchers", "expected"),
    [
        ("t", 0, 4, 0),
        ("t", 3, 4, 3),
        ("test-topic", 5, 7, 6),
        ("__consumer_offsets", 49, 3, 1),
        ("orders.eu_west", 2, 5, 4),
        ("polygenelubricants", 1, 8, 7),
    ],
)
def test_a_partition_has_the_fetcher_that_it_has_in_kafka(topic: str, index: int, fetchers: int, expected: int) -> None:
    """`Utils.abs(31 * topic.hashCode() + partition) % fetchers`, from a JVM."""
    assert fetcher_id(topic, index, fetchers) == expected


def test_a_leader_that_does_not_know_its_role_is_retried_with_growing_delay() -> None:
    state = FetchState("t", 0, bytes(16), leader_epoch=4, fetch_offset=10)
    delays = []
    for _ in range(9):
        state.refused(now=100.0, backoff_s=1.0)
        delays.append(round(state.delayed_until - 100.0, 3))
    assert delays == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]
    state.fetched(11, 11, 4)
    state.refused(now=200.0, backoff_s=1.0)
    assert state.delayed_until == pytest.approx(200.01)


def test_no_delay_is_longer_than_the_backoff() -> None:
    state = FetchState("t", 0, bytes(16), leader_epoch=4, fetch_offset=10)
    state.refused(now=100.0, backoff_s=0.005)
    assert state.delayed_until == pytest.approx(100.005)
