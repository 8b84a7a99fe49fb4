"""Errors for a part of a request: where they belong, what is left of the request, and the response put together."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.rules.acts import Error
from kpybroker.control.rules.entities import TOP, entities
from kpybroker.control.rules.entity_table import shape_of
from kpybroker.control.rules.matching import select
from kpybroker.control.rules.merging import Failure, ShapedResponse, depth_of_error, in_order_of, leave_out, put_errors
from kpybroker.control.rules.parse import parse
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.metadata import MetadataRequest, MetadataResponse
from kpybroker.wire.messages.offset_fetch import OffsetFetchResponse
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.support.brokers.known_topics import IDS, known

BUSY = ErrorCode.NOT_LEADER_OR_FOLLOWER
Topic, Partition = ProduceResponse.TopicProduceResponse, ProduceResponse.PartitionProduceResponse


def failure_of(key: ApiKey, request: Any, version: int, code: ErrorCode = BUSY, **match: Any) -> Failure:
    rule = parse({"match": match, "act": {"error": code.name}}, SERVED)
    assert isinstance(rule.act, Error)
    shape = shape_of(key, version)
    chosen = select(rule.match, shape, entities(shape, request, known()), request)
    return Failure(rule.match, code, "injected", depth_of_error(shape, rule.match, rule.act), chosen)


def shaped_response(key: ApiKey, request: Any, response: Any, version: int) -> ShapedResponse:
    return ShapedResponse(shape_of(key, version), request, response, version, known())


@pytest.mark.parametrize(
    ("api", "version", "match", "depth"),
    [
        ("Produce", 9, {}, 1),
        ("Produce", 9, {"topic": "t"}, 1),
        ("Produce", 9, {"transactional_id": "t"}, 1),
        ("Metadata", 9, {}, 0),
        ("Metadata", 9, {"topic": "t"}, 0),
        ("Metadata", 9, {"partition": 1}, 1),
        ("OffsetFetch", 1, {"group": "g"}, 1),
        ("OffsetFetch", 7, {"group": "g"}, TOP),
        ("OffsetFetch", 7, {"topic": "t"}, 1),
        ("OffsetFetch", 8, {}, 0),
        ("OffsetFetch", 8, {"group": "g"}, 0),
        ("OffsetFetch", 8, {"group": "g", "partition": 1}, 2),
        ("AddPartitionsToTxn", 4, {"transactional_id": "t"}, 2),
        ("ListPartitionReassignments", 0, {"topic": "t"}, TOP),
        ("Heartbeat", 4, {"group": "g"}, TOP),
        ("FindCoordinator", 2, {"group": "g"}, TOP),
        ("FindCoordinator", 4, {"group": "g"}, 0),
        ("DescribeConfigs", 4, {"topic": "t"}, 0),
        ("UpdateMetadata", 8, {"topic": "t"}, TOP),
    ],
    ids=str,
)
def test_where_an_error_belongs(api: str, version: int, match: dict[str, Any], depth: int) -> None:
    rule = parse({"match": {"api": api, **match}, "act": {"error": BUSY.name}}, SERVED)
    assert rule.match.apis is not None
    (key,) = rule.match.apis
    assert isinstance(rule.act, Error)
    assert depth_of_error(shape_of(key, version), rule.match, rule.act) == depth


def produce_request(*topics: tuple[str, list[int]]) -> ProduceRequest:
    return ProduceRequest(
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name,
                partition_data=[ProduceRequest.PartitionProduceData(index=i, records=b"r%d" % i) for i in indexes],
            )
            for name, indexes in topics
        ]
    )


def test_what_is_left_out_is_gone_and_the_rest_is_as_it_was() -> None:
    request = produce_request(("orders", [0, 1]), ("others", [0]))
    shape, unwanted = shape_of(ApiKey.PRODUCE, 9), [(("topic", "others"), ("partition", 0))]
    assert leave_out(shape, request, [*unwanted, (("topic", "orders"), ("partition", 0))], known())
    assert request == ProduceRequest(topic_data=produce_request(("orders", [1])).topic_data)
    assert not leave_out(shape, request, [(("topic", "orders"), ("partition", 1))], known())
    assert request.topic_data == []


def test_the_response_is_in_the_order_of_the_request() -> None:
    request = produce_request(("others", [5]), ("orders", [2, 1, 0]), ("last", [0]))
    response = ProduceResponse(
        responses=[
            Topic(name="orders", partition_responses=[Partition(index=0, base_offset=9), Partition(index=2)]),
            Topic(name="last", partition_responses=[Partition(index=0, base_offset=8)]),
        ]
    )
    shaped = shaped_response(ApiKey.PRODUCE, request, response, 9)
    failures = [
        failure_of(ApiKey.PRODUCE, request, 9, topic="others"),
        failure_of(ApiKey.PRODUCE, request, 9, topic="orders", partition=1),
    ]
    put_errors(shaped, failures)
    in_order_of(shaped, entities(shaped.shape, request, known()))
    failed: dict[str, Any] = {"error_code": BUSY, "base_offset": -1, "error_message": "injected"}
    assert response.responses == [
        Topic(name="others", partition_responses=[Partition(index=5, **failed)]),
        Topic(
            name="orders",
            partition_responses=[
                Partition(index=2),
                Partition(index=1, **failed),
                Partition(index=0, base_offset=9),
            ],
        ),
        Topic(name="last", partition_responses=[Partition(index=0, base_offset=8)]),
    ]


def test_an_old_version_gets_no_field_that_it_does_not_have() -> None:
    request = produce_request(("orders", [0]))
    response = ProduceResponse()
    put_errors(
        shaped_response(ApiKey.PRODUCE, request, response, 3), [failure_of(ApiKey.PRODUCE, request, 3, topic="orders")]
    )
    assert response.responses[0].partition_responses[0].error_message is None


def test_of_two_errors_for_one_partition_the_first_stays() -> None:
    request, response = produce_request(("orders", [0, 1])), ProduceResponse()
    failures = [
        failure_of(ApiKey.PRODUCE, request, 9, ErrorCode.INVALID_RECORD, partition=1),
        failure_of(ApiKey.PRODUCE, request, 9, topic="orders"),
    ]
    put_errors(shaped_response(ApiKey.PRODUCE, request, response, 9), failures)
    codes = {one.index: one.error_code for one in response.responses[0].partition_responses}
    assert codes == {0: BUSY, 1: ErrorCode.INVALID_RECORD}


def metadata() -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponse.MetadataResponseTopic(
                name=name,
                topic_id=IDS[name],
                partitions=[
                    MetadataResponse.MetadataResponsePartition(
                        partition_index=index, leader_id=1, leader_epoch=4, replica_nodes=[1, 2]
                    )
                    for index in range(2)
                ],
            )
            for name in IDS
        ]
    )


def test_a_request_for_all_topics_fails_for_the_one_that_the_rule_names() -> None:
    request, response = MetadataRequest(topics=None), metadata()
    put_errors(
        shaped_response(ApiKey.METADATA, request, response, 12),
        [failure_of(ApiKey.METADATA, request, 12, topic="orders")],
    )
    orders, others = response.topics
    assert (orders.name, orders.topic_id, orders.error_code, orders.partitions) == ("orders", IDS["orders"], BUSY, [])
    assert others == metadata().topics[1]


def test_an_error_of_a_partition_in_metadata_keeps_its_replicas() -> None:
    request, response = MetadataRequest(topics=None), metadata()
    match: dict[str, Any] = {"topic": "orders", "partition": 1}
    put_errors(
        shaped_response(ApiKey.METADATA, request, response, 12), [failure_of(ApiKey.METADATA, request, 12, **match)]
    )
    first, second = response.topics[0].partitions
    assert (first.error_code, first.leader_id) == (0, 1)
    assert (second.error_code, second.leader_id, second.replica_nodes) == (BUSY, -1, [1, 2])
    assert response.topics[1] == metadata().topics[1]


def test_a_group_that_fails_has_no_offsets() -> None:
    request = API_INFO[ApiKey.OFFSET_FETCH].request_class()()
    request.groups = [type(request).OffsetFetchRequestGroup(group_id=one, topics=None) for one in ("a", "b")]  # type: ignore[attr-defined]
    topics = [OffsetFetchResponse.OffsetFetchResponseTopics(name="orders")]
    response = OffsetFetchResponse(
        groups=[OffsetFetchResponse.OffsetFetchResponseGroup(group_id=one, topics=list(topics)) for one in ("a", "b")]
    )
    put_errors(
        shaped_response(ApiKey.OFFSET_FETCH, request, response, 8),
        [failure_of(ApiKey.OFFSET_FETCH, request, 8, ErrorCode.NOT_COORDINATOR, group="b")],
    )
    assert [(one.group_id, one.error_code, len(one.topics)) for one in response.groups] == [
        ("a", 0, 1),
        ("b", ErrorCode.NOT_COORDINATOR, 0),
    ]


@pytest.mark.not_quick
def test_requests_for_very_many_partitions_take_no_quadratic_time() -> None:
    """50 000 partitions of 50 topics: with a search for each one it would take minutes."""
    request = produce_request(*((f"topic-{number}", list(range(1000))) for number in range(50)))
    shaped = shaped_response(ApiKey.PRODUCE, request, ProduceResponse(), 9)
    found = entities(shaped.shape, request, known())
    put_errors(shaped, [failure_of(ApiKey.PRODUCE, request, 9)])
    in_order_of(shaped, found)
    assert len(shaped.response.responses) == 50  # type: ignore[attr-defined]
    assert not leave_out(shaped.shape, request, {one.identity for one in found}, known())
