"""Limits of followers: the lowest counts, and each ends with its owner."""

from __future__ import annotations

from kpybroker.broker.replication.fetch_visit import NO_LIMIT, UNSEEN
from kpybroker.control.levers.holds import Holds


def test_of_several_limits_the_lowest_counts_until_it_ends() -> None:
    holds = Holds()
    holds.limit("a", {("t", 0, 1): 5, ("t", 0, 2): 7})
    holds.limit("b", {("t", 0, 1): UNSEEN})
    assert holds.follower_ends == {("t", 0, 1): UNSEEN, ("t", 0, 2): 7}
    assert [holds.end_of("t", 0, broker_id) for broker_id in range(3)] == [NO_LIMIT, UNSEEN, 7]
    assert list(holds.free("b")) == [("t", 0, 1)]
    assert holds.follower_ends == {("t", 0, 1): 5, ("t", 0, 2): 7}
    assert set(holds.free("a")) == {("t", 0, 1), ("t", 0, 2)}
    assert list(holds.free("a")) == []
    assert holds.follower_ends == {}


def test_no_client_is_a_broker_unless_it_is_known_as_one() -> None:
    assert not Holds().is_peer("127.0.0.1", 9092)
