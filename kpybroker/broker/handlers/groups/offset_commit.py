"""OffsetCommit 0-10: remember how far a group has read.

Version 0 keeps the offset in the tree, under `/consumers`, where consumers of Kafka 0.8 kept it; from version
1 on the group's coordinator writes it to `__consumer_offsets` and responds when that is committed. From version 10 on
topics have their ids in place of their names: of a topic that was made again, an old id is UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap
from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.tree_offsets import write_offset
from kpybroker.broker.handlers.groups.checks import (
    check_static_membership,
    kept_topic_id,
    known_partitions,
    name_topics,
    serves_consumer_groups,
)
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import CommitOffsets, CommitResult
from kpybroker.core.offsets.values import OffsetAndMetadata, java_length
from kpybroker.core.topic_partition import PartitionKey, by_topic
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.OFFSET_COMMIT,
    0,
    10,
    {
        0: "offsets in the tree",
        1: "offsets in the coordinator, with generation, member and commit timestamp",
        2: "retention time in place of the timestamp",
        3: "throttle time",
        5: "no retention time: the broker's rules (KIP-211)",
        6: "leader epoch (KIP-320)",
        7: "static members (KIP-345)",
        8: "flexible",
        9: "members of consumer groups, with their epochs: STALE_MEMBER_EPOCH; with `group.version` 1 finalized, "
        "GROUP_ID_NOT_FOUND",
        10: "topic ids (KIP-848)",
    },
)

MEMBER_EPOCH_FROM = 9
TOPIC_IDS_FROM = 10
DEFAULT_TIMESTAMP = -1
DEFAULT_RETENTION_TIME = -1
Partition = OffsetCommitRequest.OffsetCommitRequestPartition
TopicResponse = OffsetCommitResponse.OffsetCommitResponseTopic
PartitionResponse = OffsetCommitResponse.OffsetCommitResponsePartition


async def handle(broker: Broker, request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    """Commit the offset of each partition, in the tree (version 0) or through the coordinator."""
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    check_static_membership(broker, request.group_instance_id)
    asked = request.topics
    unknown: list[OffsetCommitRequest.OffsetCommitRequestTopic] = []
    if context.api_version >= TOPIC_IDS_FROM:
        asked, unknown = await name_topics(broker, request.topics)
    topic_ids = {topic.name: topic.topic_id for topic in asked}
    known, errors = await known_partitions(broker, context, asked)
    if known and context.api_version == 0:
        errors |= await _commit_to_tree(broker, request.group_id, known)
    elif known:
        errors |= await _commit(broker, request, known, context, topic_ids)
    budget = YieldBudget()
    await budget.spend(ELEMENT * len(errors))
    topics = by_topic(errors.items())
    await budget.spend(ELEMENT * len(errors))
    return OffsetCommitResponse(
        topics=[
            *(_failed(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in unknown),
            *[
                TopicResponse(
                    name=name, topic_id=topic_ids[name], partitions=await listed(starmap(_partition, codes), budget)
                )
                for name, codes in topics.items()
            ],
        ]
    )


async def _commit(
    broker: Broker,
    request: OffsetCommitRequest,
    known: dict[PartitionKey, Partition],
    context: RequestContext,
    topic_ids: Mapping[str, bytes],
) -> dict[PartitionKey, ErrorCode]:
    now_ms, retention_ms = broker.clock.time_ms(), request.retention_time_ms
    expire_ms = None if retention_ms == DEFAULT_RETENTION_TIME else now_ms + retention_ms
    commit = CommitOffsets(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        offsets={
            key: _offset(partition, now_ms, expire_ms, kept_topic_id(broker, key[0], topic_ids[key[0]]))
            for key, partition in known.items()
        },
        owner=context.owner,
        has_member_epoch=context.api_version >= MEMBER_EPOCH_FROM,
        as_kafka_4=serves_consumer_groups(broker, context),
    )
    try:
        result: CommitResult = await broker.groups.ask(commit)
    except KafkaError as error:
        return dict.fromkeys(known, error.code)
    return dict(result.errors)


def _offset(partition: Partition, now_ms: int, expire_ms: int | None, topic_id: bytes) -> OffsetAndMetadata:
    given_ms = partition.commit_timestamp
    return OffsetAndMetadata(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=now_ms if given_ms == DEFAULT_TIMESTAMP else given_ms,
        expire_timestamp_ms=expire_ms,
        topic_id=topic_id if expire_ms is None else ZERO_UUID,  # only the record's version 1 has an expire timestamp
    )


async def _commit_to_tree(
    broker: Broker, group_id: str, known: dict[PartitionKey, Partition]
) -> dict[PartitionKey, ErrorCode]:
    errors = {}
    limit = broker.groups.config.offset_metadata_max_bytes
    for key, partition in known.items():
        if java_length(partition.committed_metadata or "") > limit:
            errors[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            errors[key] = await write_offset(broker.tree, group_id, key, partition.committed_offset)
    return errors


def _failed(topic: OffsetCommitRequest.OffsetCommitRequestTopic, code: ErrorCode) -> TopicResponse:
    partitions = [_partition(partition.partition_index, code) for partition in topic.partitions]
    return TopicResponse(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _partition(index: int, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code)


def error_response(request: OffsetCommitRequest, context: RequestContext, error: KafkaError) -> OffsetCommitResponse:
    """The error at each partition."""
    return OffsetCommitResponse(topics=[_failed(topic, error.code) for topic in request.topics])
