"""What is asked of a cluster about the places of replicas, with its own protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from kpybroker.client.actions.partitions import LEGAL_NAME, Partition, Place, parse_places
from kpybroker.client.connect.errors import FIXES, WITHOUT_CONTROLLER, CommandError, broker_error, check, usage
from kpybroker.client.connect.wire import WireBroker, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kpybroker.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest


class Move(NamedTuple):
    """A reassignment that is under way."""

    replicas: Sequence[int]
    adding: Sequence[int]
    removing: Sequence[int]


def controller(wire: WireCluster) -> WireBroker:
    """The broker that changes where replicas are. Raises CommandError if there is none."""
    if wire.controller_id not in wire.nodes:
        raise CommandError("there is no controller", WITHOUT_CONTROLLER)
    return wire.broker(wire.controller_id)


def partitions(wire: WireCluster, texts: Sequence[str]) -> dict[Place, Partition]:
    """The partitions of `TOPIC`, `TOPIC:0,2`, `TOPIC:0-3`; of all topics without any. Raises CommandError."""
    wanted = parse_places(texts)
    for name in wanted:
        if not LEGAL_NAME.fullmatch(name):
            raise usage(f"no topic can have the name {name[:100]!r}", FIXES["UNKNOWN_TOPIC_OR_PARTITION"])
    found: dict[Place, Partition] = {}
    for topic in wire.topics(list(wanted) or None):
        error = broker_error(topic.error_code)
        if error is not None:
            raise CommandError(f"topic {topic.name}: {error.cause}", error.fix)
        numbers = wanted.get(topic.name)
        missing = sorted(set(numbers or ()) - {one.partition_index for one in topic.partitions})
        if missing:
            raise usage(f"topic {topic.name} has no partition {missing[0]}", "kpybroker topic describe shows them")
        for one in sorted(topic.partitions, key=lambda one: int(one.partition_index)):
            if numbers is None or one.partition_index in numbers:
                leader = one.leader_id if one.leader_id >= 0 else None
                place = topic.name, one.partition_index
                found[place] = Partition(*place, leader, list(one.replica_nodes), list(one.isr_nodes))
    return found


def moves(wire: WireCluster) -> dict[Place, Move]:
    """All that are under way. Raises CommandError."""
    request = ListPartitionReassignmentsRequest(topics=None)
    response = controller(wire).request(ApiKey.LIST_PARTITION_REASSIGNMENTS, request)
    check(response.error_code, response.error_message)
    return {
        (topic.name, one.partition_index): Move(one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in response.topics
        for one in topic.partitions
    }


def reassign(
    wire: WireCluster, wanted: Mapping[Place, Sequence[int] | None], timeout_s: float
) -> dict[Place, CommandError | None]:
    """Ask for these replicas, None cancels a move; what was refused. Raises CommandError."""
    topics = [
        AlterPartitionReassignmentsRequest.ReassignableTopic(
            name=name,
            partitions=[
                AlterPartitionReassignmentsRequest.ReassignablePartition(
                    partition_index=number, replicas=None if replicas is None else list(replicas)
                )
                for (_, number), replicas in places
            ],
        )
        for name, places in groupby(sorted(wanted.items(), key=lambda item: item[0]), key=lambda item: item[0][0])
    ]
    request = AlterPartitionReassignmentsRequest(timeout_ms=int(timeout_s * 1000), topics=topics)
    response = controller(wire).request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request)
    check(response.error_code, response.error_message)
    return {
        (topic.name, one.partition_index): broker_error(one.error_code, one.error_message)
        for topic in response.responses
        for one in topic.partitions
    }


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """The numbers of partitions by topic."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(places):
        found.setdefault(topic, []).append(number)
    return found
