"""CreateTopics in every version."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kpybroker.broker.handlers.topics import create_partitions, create_topics
from kpybroker.config.keys.releases import listed_of_topics
from kpybroker.core import tree
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.create_partitions import CreatePartitionsRequest
from kpybroker.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from tests.support.brokers.control_broker import Denying, call, running_broker

ALL_VERSIONS = range(8)
Topic = CreateTopicsRequest.CreatableTopic


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> Topic:
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def outcome(response: CreateTopicsResponse) -> list[tuple[str, ErrorCode, str | None]]:
    return [(t.name, ErrorCode(t.error_code), t.error_message) for t in response.topics]


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_each_topic_gets_its_own_response(version: int) -> None:
    async with running_broker() as broker:
        request = CreateTopicsRequest(topics=[topic("a", 2), topic("b", 1, 5)], timeout_ms=1000)
        response = await call(broker, create_topics, request, version)
        assert broker.metadata.partition_count("a") == 2
        topic_id = broker.metadata.topic_id("a")
    message = "Replication factor: 5 larger than available brokers: 1."
    # Version 0 has no messages; decoding then shows the field's default.
    assert outcome(response) == [
        ("a", ErrorCode.NONE, None if version >= 1 else ""),
        ("b", ErrorCode.INVALID_REPLICATION_FACTOR, message if version >= 1 else ""),
    ]
    first, second = response.topics
    if version >= 5:
        assert (first.num_partitions, first.replication_factor) == (2, 1)
        assert (second.num_partitions, second.replication_factor, second.configs) == (-1, -1, [])
    assert first.topic_id == (topic_id if version >= 7 else bytes(16))


async def test_the_whole_configuration_with_its_sources() -> None:
    async with running_broker(log_retention_hours="3", message_max_bytes="5000") as broker:
        request = CreateTopicsRequest(topics=[topic("a", cleanup_policy="compact,delete")], timeout_ms=1000)
        response = await call(broker, create_topics, request, 7)
    configs = {config.name: (config.value, config.config_source) for config in response.topics[0].configs}
    assert configs.keys() == listed_of_topics(None)
    assert configs["cleanup.policy"] == ("compact,delete", 1)
    # A value by way of log.retention.hours passes for a default: Kafka looks for log.retention.ms only.
    assert configs["retention.ms"] == (str(3 * 3600 * 1000), 5)
    assert configs["max.message.bytes"] == ("5000", 4)
    assert configs["segment.bytes"] == (str(1024**3), 5)
    assert configs["min.cleanable.dirty.ratio"] == ("0.5", 5)
    assert not any(config.read_only or config.is_sensitive for config in response.topics[0].configs)


@pytest.mark.parametrize("version", ALL_VERSIONS[1:])
async def test_validate_only(version: int) -> None:
    async with running_broker() as broker:
        request = CreateTopicsRequest(topics=[topic("a", 3)], validate_only=True)
        response = await call(broker, create_topics, request, version)
        assert not broker.metadata.contains("a")
    assert outcome(response) == [("a", ErrorCode.NONE, None)]
    if version >= 5:
        assert response.topics[0].num_partitions == 3
    assert response.topics[0].topic_id == bytes(16)


async def test_by_hand() -> None:
    by_hand = Topic(
        name="a",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreateTopicsRequest.CreatableReplicaAssignment(partition_index=i, broker_ids=[0]) for i in (1, 0)],
    )
    async with running_broker() as broker:
        request = CreateTopicsRequest(topics=[by_hand], timeout_ms=1000)
        response = await call(broker, create_topics, request, 0)
        assert broker.metadata.partition_count("a") == 2
    assert response.topics[0].error_code == ErrorCode.NONE


async def test_a_topic_named_twice_is_not_made() -> None:
    async with running_broker() as broker:
        request = CreateTopicsRequest(topics=[topic("a"), topic("b"), topic("a", 2)], timeout_ms=1000)
        response = await call(broker, create_topics, request, 7)
        assert not broker.metadata.contains("a")
    twice = (ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
    assert outcome(response) == [("a", *twice), ("b", ErrorCode.NONE, None), ("a", *twice)]


async def test_krafts_own_topic_is_prohibited() -> None:
    async with running_broker() as broker:
        response = await call(broker, create_topics, CreateTopicsRequest(topics=[topic("__cluster_metadata")]), 7)
    message = "Creation of internal topic __cluster_metadata is prohibited."
    assert outcome(response) == [("__cluster_metadata", ErrorCode.INVALID_REQUEST, message)]


async def test_one_needs_the_right_to_create() -> None:
    denying = Denying([(Operation.CREATE, ResourceType.CLUSTER, None), (Operation.CREATE, ResourceType.TOPIC, "a")])
    async with running_broker() as broker:
        request = CreateTopicsRequest(topics=[topic("a"), topic("b")], timeout_ms=1000)
        response = await call(broker, create_topics, request, 7, authorizer=denying)
        assert not broker.metadata.contains("a")
    assert outcome(response) == [
        ("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."),
        ("b", ErrorCode.NONE, None),
    ]


async def test_who_may_not_see_the_configuration_sees_none() -> None:
    denying = Denying([(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, None)])
    async with running_broker() as broker:
        request = CreateTopicsRequest(topics=[topic("a")], timeout_ms=1000)
        response = await call(broker, create_topics, request, 7, authorizer=denying)
    (result,) = response.topics
    assert result.error_code == ErrorCode.NONE
    assert result.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (result.num_partitions, result.configs, result.topic_id) == (-1, [], bytes(16))


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_only_the_controller_creates(version: int) -> None:
    async with running_broker() as broker:
        broker.controller.machine.parts.active_controller_id = 7
        response = await call(broker, create_topics, CreateTopicsRequest(topics=[topic("a")]), version)
    assert [t.error_code for t in response.topics] == [ErrorCode.NOT_CONTROLLER]


async def test_a_full_disk_under_the_tree_is_a_storage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker() as broker:
        await call(broker, create_topics, CreateTopicsRequest(topics=[topic("t")], timeout_ms=1000), 7)
        submit = broker.tree.submit_many

        async def full(ops: Sequence[tree.Operation]) -> list[tree.Result | tree.TreeError]:
            if any(isinstance(op, tree.Multi | tree.SetData) for op in ops):
                return [tree.SystemFailure(message="the coordination file cannot be written: the disk is full")] * len(
                    ops
                )
            return await submit(ops)

        monkeypatch.setattr(broker.tree, "submit_many", full)
        response = await call(broker, create_topics, CreateTopicsRequest(topics=[topic("new")], timeout_ms=1000), 7)
        assert response.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "the disk is full" in (response.topics[0].error_message or "")
        grown = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=2, assignments=None)
        response = await call(broker, create_partitions, CreatePartitionsRequest(topics=[grown], timeout_ms=1000), 3)
        assert response.results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("partitions", [100_001, 2**31 - 1])
async def test_no_request_makes_the_broker_list_more_partitions_than_a_topic_can_have(partitions: int) -> None:
    """2^31 of them would take all memory of the machine, before anything is written."""
    async with running_broker() as broker:
        await call(broker, create_topics, CreateTopicsRequest(topics=[topic("t")], timeout_ms=1000), 7)
        for validate_only in (True, False):
            request = CreateTopicsRequest(
                topics=[topic("new", partitions)], timeout_ms=1000, validate_only=validate_only
            )
            created = await call(broker, create_topics, request, 7)
            assert created.topics[0].error_code == ErrorCode.POLICY_VIOLATION
        grown = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=partitions, assignments=None)
        response = await call(broker, create_partitions, CreatePartitionsRequest(topics=[grown], timeout_ms=1000), 3)
        assert response.results[0].error_code == ErrorCode.POLICY_VIOLATION


async def test_in_the_place_of_kafka_4_the_configuration_is_in_the_order_of_names() -> None:
    async with running_broker(kpybroker_kafka_version="4.3") as broker:
        request = CreateTopicsRequest(topics=[topic("a", retention_ms="5")], timeout_ms=1000)
        response = await call(broker, create_topics, request, 7)
    configs = {config.name: (config.value, config.config_source) for config in response.topics[0].configs}
    assert list(configs) == sorted(listed_of_topics("4.3"))
    assert configs["retention.ms"] == ("5", 1)
    assert configs["message.timestamp.after.max.ms"] == ("3600000", 5)
