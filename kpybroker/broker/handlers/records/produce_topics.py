"""Which topics a Produce means: each partition once, and by its name also where the request has the topic's id.

From version 13 on a topic is named by its id. A topic that was deleted and created again has another id, and takes no
records that were meant for the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.replication.partition import Partition

TOPIC_IDS_FROM = 13
TopicData = ProduceRequest.TopicProduceData


def name_topics(broker: Broker, topics: list[TopicData], budget: YieldBudget) -> Steps[None]:
    """Give topics their names, by their ids; one of an unknown id has none."""
    for topic in topics:
        yield from budget.steps()
        if topic.topic_id != ZERO_UUID:
            topic.name = name_of(broker, topic.topic_id) or ""


def name_of(broker: Broker, topic_id: bytes) -> str | None:
    """The topic's name; None for an unknown id. A leader may know it before its metadata have it."""
    return broker.metadata.topic_name(topic_id) or broker.replicas.topic_names.get(topic_id)


def distinct(topics: list[TopicData], budget: YieldBudget) -> Steps[list[TopicData]]:
    """Each topic and partition once: Kafka puts them into a map, so the last of two batches for a partition counts."""
    merged: dict[tuple[str, bytes], dict[int, ProduceRequest.PartitionProduceData]] = {}
    for topic in topics:
        yield from budget.steps()
        partitions = merged.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            yield from budget.steps()
            partitions[data.index] = data
    found = []
    for (name, topic_id), partitions in merged.items():
        yield from budget.steps()
        found.append(TopicData(name=name, topic_id=topic_id, partition_data=list(partitions.values())))
    return found


def is_same_topic(partition: Partition, topic_id: bytes) -> bool:
    """Whether a partition is of the topic with this id; also where one of the two has none."""
    return partition.topic_id == topic_id or ZERO_UUID in (topic_id, partition.topic_id)


def hosted(broker: Broker, topic: TopicData, index: int, version: int) -> Partition:
    """The partition that a batch is for. Raises UNKNOWN_TOPIC_ID, and the errors of one that is not here."""
    if version < TOPIC_IDS_FROM:
        return broker.replicas.hosted(topic.name, index)
    if not topic.name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = broker.replicas.hosted(topic.name, index)
    if not is_same_topic(partition, topic.topic_id):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    return partition
