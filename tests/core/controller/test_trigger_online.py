"""`PartitionStateMachine.trigger_online`: which partitions get a leader, and which are left as they are."""

from __future__ import annotations

from typing import Any

from kpybroker.core.controller.model import PartitionState
from kpybroker.core.topic_partition import TopicPartition
from tests.core.controller.harness import Harness

ALLOWED = "config {topic} unclean.leader.election.enable=true"
CONTROLLER = 1


def begun(*lines: str) -> Harness:
    """A controller on broker 1, and what happens then."""
    harness = Harness()
    for line in ("up 1 2 3", "start 1", *lines):
        harness.perform(line)
    return harness


def triggered(harness: Harness, topic: str | None = None) -> dict[str, Any]:
    """What it returns, by partition: the new leader, or the error's type."""
    broker = harness._brokers[CONTROLLER]
    procedure = broker.machine.parts.partitions.trigger_online(topic)
    result: Any = None
    while True:
        try:
            effect = procedure.send(result)
        except StopIteration as stop:
            found = stop.value
            break
        result = harness._do(broker, effect)
    return {
        f"{partition.topic}-{partition.partition}": type(one).__name__ if isinstance(one, Exception) else one.leader
        for partition, one in found.items()
    }


def state(harness: Harness, topic: str) -> PartitionState:
    states = harness._brokers[CONTROLLER].machine.parts.context.partition_states
    return states[TopicPartition(topic, 0)]


def test_partitions_with_a_leader_are_left_alone() -> None:
    harness = begun("topic t 0:1,2 1:2,1")
    harness.output.clear()
    assert triggered(harness) == {}
    assert harness.output == []


def test_one_whose_leader_died_is_elected_once_it_is_allowed_and_only_then() -> None:
    harness = begun("topic t 0:2,1", "isr t-0 2", "down 2")
    assert state(harness, "t") is PartitionState.OFFLINE
    assert triggered(harness) == {"t-0": "StateChangeFailed"}
    assert state(harness, "t") is PartitionState.OFFLINE
    harness.perform(ALLOWED.format(topic="t"))
    assert triggered(harness) == {"t-0": 1}
    assert state(harness, "t") is PartitionState.ONLINE
    assert triggered(harness) == {}


def test_of_one_topic_only_its_own_partitions_are_elected() -> None:
    harness = begun("topic t 0:2,1", "topic u 0:2,1", "isr t-0 2", "isr u-0 2", "down 2")
    for topic in ("t", "u"):
        harness.perform(ALLOWED.format(topic=topic))
    assert triggered(harness, "t") == {"t-0": 1}
    assert (state(harness, "t"), state(harness, "u")) == (PartitionState.ONLINE, PartitionState.OFFLINE)
    assert triggered(harness, "no such topic") == {}
    assert triggered(harness) == {"u-0": 1}


def test_one_that_never_had_a_leader_gets_its_first_one() -> None:
    """All its replicas were down when it was made. It needs no election, so nothing of it is in the results."""
    harness = begun("down 2", "topic t 0:2")
    assert state(harness, "t") is PartitionState.NEW
    assert triggered(harness) == {}
    assert state(harness, "t") is PartitionState.NEW
    harness.perform("hold")
    harness.perform("up 2")
    harness.perform("run")
    assert state(harness, "t") is PartitionState.ONLINE


def test_topics_that_are_being_deleted_get_no_leader() -> None:
    """As long as the deletion waits: when it begins, its partitions do not exist any more."""
    harness = begun("topic t 0:2,1", "isr t-0 2", "down 2", ALLOWED.format(topic="t"))
    harness._brokers[CONTROLLER].machine.parts.context.topics_to_be_deleted.add("t")
    harness.output.clear()
    assert triggered(harness) == triggered(harness, "t") == {}
    assert harness.output == []
    assert state(harness, "t") is PartitionState.OFFLINE
