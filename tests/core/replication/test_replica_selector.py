"""KIP-392: a consumer reads from its own rack where it can."""

from __future__ import annotations

import pytest

from kpybroker.core.replication.replica_selector import ReplicaView, rack_aware, replica_selector

LEADER = ReplicaView(1, "a", 100, 0)
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.mark.parametrize(
    ("rack", "others", "selected"),
    [
        ("", [ReplicaView(2, "b", 90, 0)], 1),
        ("c", [ReplicaView(2, "b", 90, 0)], 1),
        ("a", [ReplicaView(2, "a", 200, 0)], 1),
        ("b", [ReplicaView(2, "b", 90, 0), ReplicaView(3, "b", 95, 50)], 3),
        ("b", [ReplicaView(2, "b", 90, 10), ReplicaView(3, "b", 90, 50)], 2),
        ("b", [ReplicaView(2, None, 90, 10)], 1),
    ],
    ids=["no rack", "empty rack", "the leader's rack", "the most records", "the least lag", "rack unknown"],
)
def test_who_is_selected(rack: str, others: list[ReplicaView], selected: int) -> None:
    assert rack_aware(rack, [*others, LEADER], 1) == selected


def test_selectors_have_kafkas_class_names() -> None:
    assert replica_selector(RACK_AWARE) is rack_aware
    assert replica_selector("org.apache.kafka.common.replica.LeaderSelector") is None
    assert replica_selector(None) is None
