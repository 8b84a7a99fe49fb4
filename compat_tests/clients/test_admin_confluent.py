"""confluent-kafka's AdminClient (librdkafka): every administrative call that a user of one broker makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from compat_tests.conftest import MakeTopic
from compat_tests.support import quick
from compat_tests.support.groups.members import BOTH_PROTOCOLS, Member, speaks_new_protocol
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

DEADLINE_S = 90


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return quick.admin_client(broker.bootstrap)


def refusal(future: Any) -> int:
    """The error code that a call ended with."""
    with pytest.raises(KafkaException) as caught:
        future.result(timeout=DEADLINE_S)
    code = caught.value.args[0].code()
    assert isinstance(code, int)
    return code


def partition_count(admin: AdminClient, topic: str) -> int:
    return len(admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions)


def test_create_topics(admin: AdminClient, name: str) -> None:
    wanted = [
        NewTopic(f"{name}-a", 3, 1, config={"retention.ms": "1000"}),
        NewTopic(f"{name}-b"),
        NewTopic(f"{name}-c", 2, replica_assignment=[[0], [0]]),
    ]
    for future in admin.create_topics(wanted).values():
        future.result(timeout=DEADLINE_S)
    eventually(lambda: [partition_count(admin, f"{name}-{letter}") for letter in "abc"] == [3, 1, 2], "the partitions")


def test_create_topics_refused(admin: AdminClient, topic: MakeTopic, name: str) -> None:
    existing = topic()
    refused = {
        NewTopic(existing, 1, 1): KafkaError.TOPIC_ALREADY_EXISTS,
        NewTopic(f"{name}/slash", 1, 1): KafkaError.TOPIC_EXCEPTION,
        NewTopic("x" * 250, 1, 1): KafkaError.TOPIC_EXCEPTION,
        NewTopic(f"{name}-many", 1, 2): KafkaError.INVALID_REPLICATION_FACTOR,
        NewTopic(f"{name}-twice", 1, replica_assignment=[[0, 0]]): KafkaError.INVALID_REPLICA_ASSIGNMENT,
        NewTopic(f"{name}-key", 1, 1, config={"no.such.key": "1"}): KafkaError.INVALID_CONFIG,
        NewTopic(f"{name}-value", 1, 1, config={"retention.ms": "soon"}): KafkaError.INVALID_CONFIG,
    }
    seen = {new.topic: refusal(admin.create_topics([new])[new.topic]) for new in refused}
    assert seen == {new.topic: code for new, code in refused.items()}


def test_create_topics_validate_only(admin: AdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(timeout=DEADLINE_S)
    assert name not in admin.list_topics(timeout=DEADLINE_S).topics


def test_delete_topics(admin: AdminClient, topic: MakeTopic, name: str) -> None:
    doomed = topic(partitions=2)
    admin.delete_topics([doomed])[doomed].result(timeout=DEADLINE_S)
    eventually(lambda: doomed not in admin.list_topics(timeout=DEADLINE_S).topics, "the topic gone")
    missing = f"{name}-missing"
    assert refusal(admin.delete_topics([missing])[missing]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_name_is_free_again(admin: AdminClient, topic: MakeTopic, broker: Broker) -> None:
    """A new topic may take a deleted one's name, once the deletion is done, and starts empty."""
    reused = topic(partitions=2)
    quick.fill(broker.bootstrap, reused, ["old"])
    admin.delete_topics([reused])[reused].result(timeout=DEADLINE_S)

    def created() -> bool:
        refused = admin.create_topics([NewTopic(reused, 1, 1)])[reused].exception(timeout=DEADLINE_S)
        assert refused is None or refused.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, "marked for deletion"
        return refused is None

    eventually(created, "the name free")
    eventually(lambda: partition_count(admin, reused) == 1, "the new topic's partitions")
    quick.fill(broker.bootstrap, reused, ["new"])
    assert [(m.offset(), m.value()) for m in quick.read(broker.bootstrap, [(reused, 0)], 1)] == [(0, b"new")]


def test_create_partitions(admin: AdminClient, topic: MakeTopic) -> None:
    made = topic(partitions=2)
    admin.create_partitions([NewPartitions(made, 5)])[made].result(timeout=DEADLINE_S)
    eventually(lambda: partition_count(admin, made) == 5, "five partitions")
    assert refusal(admin.create_partitions([NewPartitions(made, 3)])[made]) == KafkaError.INVALID_PARTITIONS
    assert refusal(admin.create_partitions([NewPartitions(made, 5)])[made]) == KafkaError.INVALID_PARTITIONS


def test_describe_topics(admin: AdminClient, topic: MakeTopic, broker: Broker, name: str) -> None:
    made = topic(partitions=2)
    described = admin.describe_topics(TopicCollection([made, f"{name}-missing"]))
    found = described[made].result(timeout=DEADLINE_S)
    assert (found.name, found.is_internal, len(found.partitions)) == (made, False, 2)
    assert all(part.leader.id == broker.node_id for part in found.partitions)
    assert [[node.id for node in part.isr] for part in found.partitions] == [[broker.node_id]] * 2
    assert str(found.topic_id) not in ("", "AAAAAAAAAAAAAAAAAAAAAA")
    assert refusal(described[f"{name}-missing"]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_describe_cluster(admin: AdminClient, broker: Broker) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(timeout=DEADLINE_S)
    assert [(node.id, node.host, node.port) for node in cluster.nodes] == [(broker.node_id, "127.0.0.1", broker.port)]
    assert cluster.controller.id == broker.node_id
    assert len(cluster.cluster_id) == 22
    assert len(cluster.authorized_operations) > 0


def configs(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(timeout=DEADLINE_S)
    return found


def test_describe_configs(admin: AdminClient, topic: MakeTopic, broker: Broker) -> None:
    made = topic(retention_ms=4242)
    of_topic = configs(admin, ResourceType.TOPIC, made)
    assert of_topic["retention.ms"].value == "4242"
    assert of_topic["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert of_topic["cleanup.policy"].value == "delete"
    assert of_topic["cleanup.policy"].source == ConfigSource.DEFAULT_CONFIG.value
    of_broker = configs(admin, ResourceType.BROKER, str(broker.node_id))
    assert len(of_broker) >= 200
    assert of_broker["log.dirs"].value == str(broker.data_dir)
    assert of_broker["log.dirs"].is_read_only
    assert not of_broker["log.cleaner.threads"].is_read_only
    assert of_broker["ssl.key.password"].is_sensitive
    assert of_broker["ssl.key.password"].value is None
    assert of_broker["listeners"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert set(of_broker["log.retention.hours"].synonyms) == {"log.retention.hours"}


def test_alter_configs(admin: AdminClient, topic: MakeTopic) -> None:
    """The old call replaces all of a topic's overrides."""
    made = topic(retention_ms=4242)
    resource = ConfigResource(ResourceType.TOPIC, made, set_config={"max.message.bytes": "1234567"})
    admin.alter_configs([resource])[resource].result(timeout=DEADLINE_S)

    def overrides() -> dict[str, str]:
        entries = configs(admin, ResourceType.TOPIC, made)
        dynamic = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {key: entry.value for key, entry in entries.items() if entry.source == dynamic}

    eventually(lambda: overrides() == {"max.message.bytes": "1234567"}, "only the new one")


def test_incremental_alter_configs(admin: AdminClient, topic: MakeTopic) -> None:
    made = topic(retention_ms=4242, cleanup_policy="delete")

    def alter(*changes: tuple[str, str | None, AlterConfigOpType]) -> Any:
        entries = [ConfigEntry(key, value, incremental_operation=operation) for key, value, operation in changes]
        resource = ConfigResource(ResourceType.TOPIC, made, incremental_configs=entries)
        return admin.incremental_alter_configs([resource])[resource]

    def value(key: str) -> str:
        return str(configs(admin, ResourceType.TOPIC, made)[key].value)

    alter(
        ("retention.ms", None, AlterConfigOpType.DELETE),
        ("cleanup.policy", "compact", AlterConfigOpType.APPEND),
        ("segment.ms", "60000", AlterConfigOpType.SET),
    ).result(timeout=DEADLINE_S)
    eventually(
        lambda: (
            (value("retention.ms"), value("cleanup.policy"), value("segment.ms"))
            == ("604800000", "delete,compact", "60000")
        ),
        "the three changes",
    )
    alter(("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)).result(timeout=DEADLINE_S)
    eventually(lambda: value("cleanup.policy") == "compact", "delete subtracted")
    assert refusal(alter(("retention.ms", "soon", AlterConfigOpType.SET))) == KafkaError.INVALID_CONFIG
    # APPEND is for lists only
    assert refusal(alter(("retention.ms", "1", AlterConfigOpType.APPEND))) in (
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REQUEST,
    )


def test_list_offsets(admin: AdminClient, topic: MakeTopic, broker: Broker) -> None:
    # nothing so old would outlive the stock retention
    made = topic(retention_ms=-1)
    part = TopicPartition(made, 0)
    stamps = [1_000_000, 3_000_000, 2_000_000]

    def offset(spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> tuple[int, int]:
        response = admin.list_offsets({part: spec}, isolation_level=isolation)[part].result(timeout=DEADLINE_S)
        return response.offset, response.timestamp

    assert offset(OffsetSpec.max_timestamp()) == (-1, -1)
    quick.fill(broker.bootstrap, made, ["a", "b", "c"], timestamps=stamps)
    assert offset(OffsetSpec.earliest())[0] == 0
    assert offset(OffsetSpec.latest())[0] == 3
    assert offset(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)[0] == 3
    assert offset(OffsetSpec.max_timestamp()) == (1, 3_000_000)
    assert offset(OffsetSpec.for_timestamp(1_500_000)) == (1, 3_000_000)
    assert offset(OffsetSpec.for_timestamp(1)) == (0, 1_000_000)
    assert offset(OffsetSpec.for_timestamp(4_000_000)) == (-1, -1)


def test_delete_records(made: str, admin: AdminClient, broker: Broker) -> None:
    quick.fill(broker.bootstrap, made, [str(n) for n in range(10)])

    def delete(offset: int) -> Any:
        part = TopicPartition(made, 0, offset)
        return admin.delete_records([part])[part]

    assert delete(4).result(timeout=DEADLINE_S).low_watermark == 4
    assert delete(2).result(timeout=DEADLINE_S).low_watermark == 4
    assert [m.value() for m in quick.read(broker.bootstrap, [(made, 0)], 6)] == [b"4", b"5", b"6", b"7", b"8", b"9"]
    assert refusal(delete(11)) == KafkaError.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("client", BOTH_PROTOCOLS)
def test_groups(
    admin: AdminClient, topic: MakeTopic, broker: Broker, name: str, join: Callable[..., Member], client: str
) -> None:
    """List and describe a live group, refuse to delete it; alter, list and delete the offsets of an empty one."""
    made = topic(partitions=2)
    quick.fill(broker.bootstrap, made, ["a", "b", "c"])
    member = join(client, group=name, topics=[made], settings={"client.id": "me"})
    member.has(3)
    member.commit()
    listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(timeout=DEADLINE_S)
    assert name in {group.group_id for group in listed.valid}
    described = admin.describe_consumer_groups([name])[name].result(timeout=DEADLINE_S)
    assignor = "uniform" if speaks_new_protocol(client) else "range"
    assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, assignor)
    (only,) = described.members
    assert (only.client_id, only.host) == ("me", "/127.0.0.1")
    assert {part.partition for part in only.assignment.topic_partitions} == {0, 1}
    assert refusal(admin.delete_consumer_groups([name])[name]) == KafkaError.NON_EMPTY_GROUP

    def commits() -> dict[int, int]:
        wanted = ConsumerGroupTopicPartitions(name)
        found = admin.list_consumer_group_offsets([wanted])[name].result(timeout=DEADLINE_S)
        return {part.partition: part.offset for part in found.topic_partitions}

    assert commits() == {0: 3}
    back = ConsumerGroupTopicPartitions(name, [TopicPartition(made, 0, 1)])
    (altered,) = admin.alter_consumer_group_offsets([back])[name].result(timeout=DEADLINE_S).topic_partitions
    assert altered.error.code() == KafkaError.UNKNOWN_MEMBER_ID
    member.close()
    back = ConsumerGroupTopicPartitions(name, [TopicPartition(made, 0, 1), TopicPartition(made, 1, 0)])
    admin.alter_consumer_group_offsets([back])[name].result(timeout=DEADLINE_S)
    assert commits() == {0: 1, 1: 0}
    described = admin.describe_consumer_groups([name])[name].result(timeout=DEADLINE_S)
    assert (described.state, described.members) == (ConsumerGroupState.EMPTY, [])
    admin.delete_consumer_groups([name])[name].result(timeout=DEADLINE_S)
    listed = admin.list_consumer_groups().result(timeout=DEADLINE_S)
    assert name not in {group.group_id for group in listed.valid}
    assert refusal(admin.delete_consumer_groups([name])[name]) == KafkaError.GROUP_ID_NOT_FOUND
    dead = admin.describe_consumer_groups([name])[name].result(timeout=DEADLINE_S)
    assert dead.state == ConsumerGroupState.DEAD
