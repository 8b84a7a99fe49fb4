"""ElectLeaders 0-2 on a broker that leads everything already."""

from __future__ import annotations

import pytest

from kpybroker.broker.cluster.topic_admin import NewTopic
from kpybroker.broker.handlers.cluster import elect_leaders
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from tests.support.brokers.control_broker import Denying, call, running_broker

Partitions = ElectLeadersRequest.TopicPartitions


def outcome(response: ElectLeadersResponse) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.topic, p.partition_id): ErrorCode(p.error_code)
        for topic in response.replica_election_results
        for p in topic.partition_result
    }


@pytest.mark.parametrize("version", range(3))
async def test_what_is_led_needs_no_election(version: int) -> None:
    asked = [Partitions(topic="a", partitions=[0, 9]), Partitions(topic="b", partitions=[0])]
    async with running_broker() as broker:
        await broker.topics.create_topics([NewTopic("a", 1, 1)], 60_000)
        request = ElectLeadersRequest(topic_partitions=asked, timeout_ms=1000)
        response = await call(broker, elect_leaders, request, version)
        everything = await call(broker, elect_leaders, ElectLeadersRequest(topic_partitions=None), version)
    assert response.error_code == ErrorCode.NONE
    assert outcome(response) == {
        ("a", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("a", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("b", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    # Of all partitions only those with a result are in the response.
    assert outcome(everything) == {}


async def test_an_unclean_election_gives_a_partition_a_leader() -> None:
    async with running_broker() as broker:
        # Replicas 0 and 7 with only 7 in sync, and 7 is gone.
        await broker.topics.create_topics([NewTopic("a", assignments={0: [7, 0]})], 60_000)
        state = await broker.tree.get("/brokers/topics/a/partitions/0/state")
        assert state.data is not None
        lost = state.data.replace(b'"isr":[0]', b'"isr":[7]').replace(b'"leader":0', b'"leader":7')
        await broker.tree.set("/brokers/topics/a/partitions/0/state", lost)
        context = broker.controller.machine.parts.context
        info = context.partition_leadership_info["a", 0]  # type: ignore[index]
        context.partition_leadership_info["a", 0] = info._replace(  # type: ignore[index]
            leader_and_isr=info.leader_and_isr.new_leader_and_isr(7, (7,))
        )
        request = ElectLeadersRequest(
            election_type=1, topic_partitions=[Partitions(topic="a", partitions=[0])], timeout_ms=1000
        )
        response = await call(broker, elect_leaders, request, 2)
        assert broker.metadata.leader_and_epoch("a", 0) == (0, 1)
    assert outcome(response) == {("a", 0): ErrorCode.NONE}


async def test_refusals_of_the_whole_request() -> None:
    asked = [Partitions(topic="a", partitions=[0])]
    denying = Denying([(Operation.ALTER, ResourceType.CLUSTER, None)])
    async with running_broker() as broker:
        denied = await call(broker, elect_leaders, ElectLeadersRequest(topic_partitions=asked), 2, authorizer=denying)
        odd = await call(broker, elect_leaders, ElectLeadersRequest(election_type=5, topic_partitions=asked), 2)
        broker.controller.machine.parts.active_controller_id = 7
        elsewhere = await call(broker, elect_leaders, ElectLeadersRequest(topic_partitions=asked), 2)
    assert denied.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert odd.error_code == ErrorCode.INVALID_REQUEST
    assert outcome(elsewhere) == {("a", 0): ErrorCode.NOT_CONTROLLER}


async def test_a_broker_in_the_place_of_kafka_4_says_what_there_is_not() -> None:
    asked = [Partitions(topic="a", partitions=[9]), Partitions(topic="b", partitions=[0])]
    async with running_broker(kpybroker_kafka_version="4.3") as broker:
        await broker.topics.create_topics([NewTopic("a", 1, 1)], 60_000)
        request = ElectLeadersRequest(topic_partitions=asked, timeout_ms=1000)
        response = await call(broker, elect_leaders, request, 2)
    texts = [p.error_message for topic in response.replica_election_results for p in topic.partition_result]
    assert texts == ["No such partition as a-9", "No such topic as b"]
