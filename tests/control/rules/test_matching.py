"""What a request names, and which of it a rule selects."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.rules.entities import Entity, entities
from kpybroker.control.rules.entity_table import shape_of
from kpybroker.control.rules.matching import select
from kpybroker.control.rules.parse import parse
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.known_topics import IDS, UNKNOWN_ID, known

Group, GroupTopic = OffsetFetchRequest.OffsetFetchRequestGroup, OffsetFetchRequest.OffsetFetchRequestTopics


def selected(key: ApiKey, request: Any, version: int, **match: Any) -> list[Entity]:
    rule = parse({"match": match, "act": {"observe": True}}, SERVED)
    shape = shape_of(key, version)
    return select(rule.match, shape, entities(shape, request, known()), request)


def identities(key: ApiKey, request: Any, version: int, **match: Any) -> list[Any]:
    return [one.identity for one in selected(key, request, version, **match)]


def produce(*partitions: tuple[str, int], **fields: Any) -> ProduceRequest:
    """One topic entry for each partition."""
    return ProduceRequest(
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name, partition_data=[ProduceRequest.PartitionProduceData(index=index)]
            )
            for name, index in partitions
        ],
        **fields,
    )


def place(topic: str | bytes, partition: int) -> Any:
    return ("topic", topic), ("partition", partition)


def test_all_that_is_named_must_match() -> None:
    request = produce(("orders", 0), ("orders", 1), ("others", 0), transactional_id="tx-1")
    assert identities(ApiKey.PRODUCE, request, 9, topic="orders", partition=1) == [place("orders", 1)]
    assert identities(ApiKey.PRODUCE, request, 9, topic="o*") == [
        place("orders", 0),
        place("orders", 1),
        place("others", 0),
    ]
    assert identities(ApiKey.PRODUCE, request, 9, topic=["others", "none"]) == [place("others", 0)]
    assert len(identities(ApiKey.PRODUCE, request, 9, transactional_id="tx-?")) == 3
    assert identities(ApiKey.PRODUCE, request, 9, transactional_id="tx-1", topic="none") == []


def test_a_null_name_matches_no_text() -> None:
    assert identities(ApiKey.PRODUCE, produce(("orders", 0)), 9, transactional_id="*") == []


def test_topics_match_by_name_and_by_id_whichever_the_request_has() -> None:
    by_id = FetchRequest(
        topics=[
            FetchRequest.FetchTopic(topic_id=IDS["orders"], partitions=[FetchRequest.FetchPartition(partition=3)]),
            FetchRequest.FetchTopic(topic_id=UNKNOWN_ID, partitions=[FetchRequest.FetchPartition(partition=4)]),
        ]
    )
    assert identities(ApiKey.FETCH, by_id, 13, topic="orders") == [place("orders", 3)]
    assert identities(ApiKey.FETCH, by_id, 13, topic_id="AAAAAAAAAAAAAAAAAAAAAQ") == [place("orders", 3)]
    assert identities(ApiKey.FETCH, by_id, 13, topic_id="AAAAAAAAAAAAAAAAAAAACQ") == [place(UNKNOWN_ID, 4)]
    assert identities(ApiKey.PRODUCE, produce(("orders", 0)), 9, topic_id="AAAAAAAAAAAAAAAAAAAAAQ") == [
        place("orders", 0)
    ]


def test_every_request_that_has_ids_alone_is_matched_by_the_names_of_its_topics() -> None:
    committed = OffsetCommitRequest(
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                topic_id=topic_id, partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=1)]
            )
            for topic_id in (IDS["orders"], UNKNOWN_ID)
        ]
    )
    fetched = OffsetFetchRequest(
        groups=[
            OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id="g",
                topics=[
                    OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[1])
                    for topic_id in (IDS["orders"], UNKNOWN_ID)
                ],
            )
        ]
    )
    produced = ProduceRequest(
        topic_data=[
            ProduceRequest.TopicProduceData(
                topic_id=topic_id, partition_data=[ProduceRequest.PartitionProduceData(index=1)]
            )
            for topic_id in (IDS["orders"], UNKNOWN_ID)
        ]
    )
    for key, version, request, outer in (
        (ApiKey.OFFSET_COMMIT, 10, committed, ()),
        (ApiKey.OFFSET_FETCH, 10, fetched, (("group", "g"),)),
        (ApiKey.PRODUCE, 13, produced, ()),
    ):
        assert identities(key, request, version, topic="orders") == [(*outer, *place("orders", 1))]
        assert identities(key, request, version, topic_id="AAAAAAAAAAAAAAAAAAAACQ") == [(*outer, *place(UNKNOWN_ID, 1))]
        assert identities(key, request, version, topic="others") == []


def test_a_request_may_introduce_a_topic() -> None:
    """The controller's LeaderAndIsr gives name and id of a topic that the broker hears of for the first time."""
    states = LeaderAndIsrRequest.LeaderAndIsrTopicState(topic_name="new", topic_id=UNKNOWN_ID)
    topics = known()
    entities(shape_of(ApiKey.LEADER_AND_ISR, 5), LeaderAndIsrRequest(topic_states=[states]), topics)
    assert topics.topic_name(UNKNOWN_ID) == "new"
    assert topics.topic_id("new") == UNKNOWN_ID


@pytest.mark.parametrize(("key_type", "kind"), [(0, "group"), (1, "transactional_id")])
def test_the_key_of_a_coordinator_is_a_group_or_a_transactional_id(key_type: int, kind: str) -> None:
    many = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"])
    assert identities(ApiKey.FIND_COORDINATOR, many, 4, **{kind: "b"}) == [(("coordinator_key", "b"),)]
    other = {"group", "transactional_id"} - {kind}
    assert identities(ApiKey.FIND_COORDINATOR, many, 4, **{other.pop(): "b"}) == []
    one = FindCoordinatorRequest(key_type=key_type, key="a")
    assert len(selected(ApiKey.FIND_COORDINATOR, one, 2, **{kind: "a"})) == 1
    assert selected(ApiKey.FIND_COORDINATOR, one, 2, **{kind: "b"}) == []


def test_the_resources_of_configurations_are_topics_and_groups() -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[
            resource(resource_type=2, resource_name="orders"),
            resource(resource_type=4, resource_name="orders"),
            resource(resource_type=32, resource_name="orders"),
        ]
    )
    assert [one.identity[0] for one in selected(ApiKey.DESCRIBE_CONFIGS, request, 4, topic="orders")] == [
        ("resource_type", 2)
    ]
    assert [one.identity[0] for one in selected(ApiKey.DESCRIBE_CONFIGS, request, 4, group="orders")] == [
        ("resource_type", 32)
    ]
    assert len(selected(ApiKey.DESCRIBE_CONFIGS, request, 4)) == 3


def test_a_request_for_everything_may_mean_what_a_rule_names() -> None:
    everything = MetadataRequest(topics=None)
    assert [one.is_all for one in selected(ApiKey.METADATA, everything, 9, topic="orders")] == [True]
    group = OffsetFetchRequest(groups=[Group(group_id="g", topics=None)])
    assert [one.is_all for one in selected(ApiKey.OFFSET_FETCH, group, 8, topic="orders", partition=1)] == [True]
    assert selected(ApiKey.OFFSET_FETCH, group, 8, group="other", topic="orders") == []


def test_what_only_the_response_names_is_decided_there() -> None:
    named = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")])
    assert len(selected(ApiKey.METADATA, named, 9, topic="orders", partition=1)) == 1
    assert selected(ApiKey.METADATA, named, 9, topic="others", partition=1) == []


def test_a_request_that_names_nothing_matches_a_rule_that_names_nothing() -> None:
    assert len(selected(ApiKey.PRODUCE, ProduceRequest(), 9)) == 1
    assert selected(ApiKey.PRODUCE, ProduceRequest(), 9, topic="*") == []
    assert len(selected(ApiKey.HEARTBEAT, HeartbeatRequest(group_id="g"), 4, group="g")) == 1
    assert selected(ApiKey.HEARTBEAT, HeartbeatRequest(group_id="g"), 4, group="h") == []


def test_a_group_without_topics_is_an_entity() -> None:
    request = OffsetFetchRequest(groups=[Group(group_id="g", topics=[])])
    assert identities(ApiKey.OFFSET_FETCH, request, 8, group="g") == [(("group", "g"),)]
    topics = OffsetFetchRequest(groups=[Group(group_id="g", topics=[GroupTopic(name="t", partition_indexes=[4])])])
    assert identities(ApiKey.OFFSET_FETCH, topics, 8, group="g") == [(("group", "g"), *place("t", 4))]


@pytest.mark.parametrize(
    ("when", "matches"),
    [
        ({"acks": -1}, True),
        ({"acks": [0, 1]}, False),
        ({"transactional_id": None}, True),
        ({"transactional_id": ["tx", None]}, True),
        ({"transactional_id": "*"}, False),
        ({"topic_data.name": "oth*"}, True),
        ({"topic_data.name": "none"}, False),
        ({"topic_data.partition_data.index": 3}, True),
        ({"topicData.partitionData.index": 3, "acks": 1}, False),
        ({"timeout_ms": True}, False),
    ],
    ids=str,
)
def test_paths_in_the_request(when: dict[str, Any], matches: bool) -> None:
    request = produce(("orders", 0), ("others", 3), acks=-1, timeout_ms=1)
    assert bool(selected(ApiKey.PRODUCE, request, 9, api="Produce", when=when)) is matches


def test_a_text_tests_bytes_too() -> None:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"with orders in it")
    request = JoinGroupRequest(group_id="g", protocols=[protocol])
    assert selected(ApiKey.JOIN_GROUP, request, 5, api="JoinGroup", when={"protocols.metadata": "*orders*"})
    assert not selected(ApiKey.JOIN_GROUP, request, 5, api="JoinGroup", when={"protocols.metadata": "orders"})


def test_a_produce_by_ids_matches_by_name() -> None:
    data = [ProduceRequest.PartitionProduceData(index=3)]
    by_id = ProduceRequest(
        topic_data=[ProduceRequest.TopicProduceData(topic_id=IDS["orders"], partition_data=data)],
    )
    assert identities(ApiKey.PRODUCE, by_id, 13, topic="orders") == [place("orders", 3)]
    assert identities(ApiKey.PRODUCE, by_id, 13, topic="others") == []
