"""OffsetFetch 0-10: how far groups have read.

Version 0 reads the tree, where version 0 of OffsetCommit writes. From version 1 on the coordinator responds,
with what is committed only. Versions 0 and 1 have no field for a group's error: each requested partition carries it.
From version 10 on topics have their ids in place of their names; what was committed for a topic of another id does not
count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpybroker.broker.coordinators.tree_offsets import read_offset
from kpybroker.broker.handlers.groups.checks import name_topics
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import FetchedOffset, FetchOffsets, FetchOffsetsResult
from kpybroker.core.topic_partition import PartitionKey, by_topic
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.OFFSET_FETCH,
    0,
    10,
    {
        0: "offsets from the tree",
        1: "offsets from the coordinator",
        2: "null topics for all offsets; the group's error on top",
        3: "throttle time",
        5: "leader epoch (KIP-320)",
        6: "flexible",
        7: "require stable (KIP-447)",
        8: "several groups (KIP-709)",
        9: "members of consumer groups, with their epochs: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH",
        10: "topic ids (KIP-848)",
    },
)

GROUP_ERROR_FROM = 2
SEVERAL_GROUPS_FROM = 8
TOPIC_IDS_FROM = 10
Group = OffsetFetchResponse.OffsetFetchResponseGroup


@dataclass(slots=True)
class Asked:
    """What is asked of one group, whatever the version; `partitions` None are all."""

    group_id: str
    partitions: list[PartitionKey] | None
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = -1
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Fetched:
    """The result for one group, before it is put into a version's fields."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    offsets: Mapping[PartitionKey, FetchedOffset] = field(default_factory=dict)


async def handle(broker: Broker, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """The committed offset of each requested partition, or of all."""
    if context.api_version == 0:
        return await _fetch_from_tree(broker, request, context)
    if context.api_version >= SEVERAL_GROUPS_FROM:
        response, budget = OffsetFetchResponse(), YieldBudget()
        for group in request.groups:
            one = await _of_group(broker, context, group, request.require_stable)
            await budget.spend(ELEMENT * (1 + sum(1 + len(topic.partitions) for topic in one.topics)))
            response.groups.append(one)
        return response
    asked = Asked(request.group_id, _partitions(request.topics), request.require_stable)
    fetched = await _fetch(broker, context, asked)
    if context.api_version < GROUP_ERROR_FROM and fetched.error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return OffsetFetchResponse()  # no partition is named, so no error either
    if context.api_version < GROUP_ERROR_FROM and fetched.error is not ErrorCode.NONE:
        raise KafkaError(fetched.error)
    return OffsetFetchResponse(error_code=fetched.error, topics=_topics(fetched.offsets))


async def _of_group(
    broker: Broker, context: RequestContext, group: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
) -> Group:
    topics = group.topics
    unknown: list[OffsetFetchRequest.OffsetFetchRequestTopics] = []
    has_ids = context.api_version >= TOPIC_IDS_FROM
    if topics is not None and has_ids:
        topics, unknown = await name_topics(broker, topics)
    topic_ids = {topic.name: topic.topic_id for topic in topics or ()}
    asked = Asked(group.group_id, _partitions(topics), require_stable, group.member_id, group.member_epoch, topic_ids)
    fetched = await _fetch(broker, context, asked)
    found = _topics(fetched.offsets, _SEVERAL_GROUPS)
    if has_ids:
        for topic in found:
            topic.topic_id = topic_ids.get(topic.name) or broker.metadata.topic_id(topic.name)
        found = [topic for topic in found if topic.topic_id != ZERO_UUID]
        unknown += [topic for topic in topics or () if not topic.partition_indexes]  # it is named without an error
    if fetched.error is ErrorCode.NONE:
        found += map(_unknown_topic, unknown)
    return Group(group_id=fetched.group_id, error_code=fetched.error, topics=found)


def _unknown_topic(topic: OffsetFetchRequest.OffsetFetchRequestTopics) -> OffsetFetchResponse.OffsetFetchResponseTopics:
    code = ErrorCode.UNKNOWN_TOPIC_ID
    return OffsetFetchResponse.OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponse.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _partitions(
    topics: Iterable[OffsetFetchRequest.OffsetFetchRequestTopic | OffsetFetchRequest.OffsetFetchRequestTopics] | None,
) -> list[PartitionKey] | None:
    if topics is None:
        return None
    return [(topic.name, index) for topic in topics for index in topic.partition_indexes]


async def _fetch(broker: Broker, context: RequestContext, asked: Asked) -> Fetched:
    """Topics that may not be described are refused where they were named, and left out where all were asked for."""
    group_id, partitions = asked.group_id, asked.partitions
    if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return Fetched(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: dict[PartitionKey, FetchedOffset] = {}
    wanted = None
    if partitions is not None:
        allowed, refused = _split(context, partitions)
        wanted = tuple(allowed)
        await YieldBudget().spend(ELEMENT * len(partitions))
    try:
        result: FetchOffsetsResult = await broker.groups.ask(
            FetchOffsets(group_id, wanted, asked.require_stable, asked.member_id, asked.member_epoch, asked.topic_ids)
        )
    except KafkaError as error:
        return Fetched(group_id, error.code)
    if result.error is not ErrorCode.NONE:
        return Fetched(group_id, result.error)
    offsets = dict(result.offsets) | refused
    if partitions is None:
        visible, _ = _split(context, list(offsets))
        offsets = {partition: offsets[partition] for partition in visible}
    return Fetched(group_id, ErrorCode.NONE, offsets)


def _split(
    context: RequestContext, partitions: list[PartitionKey], *, counts_partitions: bool = False
) -> tuple[list[PartitionKey], dict[PartitionKey, FetchedOffset]]:
    refusal = FetchedOffset(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    may_describe = {
        topic: context.authorized(
            Operation.DESCRIBE, ResourceType.TOPIC, topic, references=count if counts_partitions else 1
        )
        for topic, count in Counter(topic for topic, _ in partitions).items()
    }
    allowed = [partition for partition in partitions if may_describe[partition[0]]]
    return allowed, {partition: refusal for partition in partitions if not may_describe[partition[0]]}


async def _fetch_from_tree(broker: Broker, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    context.require(Operation.DESCRIBE, ResourceType.GROUP, request.group_id)
    allowed, refused = _split(context, _partitions(request.topics) or [], counts_partitions=True)
    offsets = {}
    for partition in allowed:
        if broker.metadata.contains(*partition):
            offsets[partition] = await read_offset(broker.tree, request.group_id, partition)
        else:
            offsets[partition] = FetchedOffset(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return OffsetFetchResponse(topics=_topics(offsets | refused))


Response = OffsetFetchResponse
_ONE_GROUP = (Response.OffsetFetchResponseTopic, Response.OffsetFetchResponsePartition)
_SEVERAL_GROUPS = (Response.OffsetFetchResponseTopics, Response.OffsetFetchResponsePartitions)
"""The classes of a topic and of a partition, which have the same fields before version 8 and from it on."""


def _topics(offsets: Mapping[PartitionKey, FetchedOffset], classes: tuple[Any, Any] = _ONE_GROUP) -> list[Any]:
    topic_class, partition_class = classes
    return [
        topic_class(
            name=name,
            partitions=[
                partition_class(
                    partition_index=index,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    metadata=offset.metadata,
                    error_code=offset.error,
                )
                for index, offset in partitions
            ],
        )
        for name, partitions in by_topic(offsets.items()).items()
    ]


def error_response(request: OffsetFetchRequest, context: RequestContext, error: KafkaError) -> OffsetFetchResponse:
    """The error where the version has a field for it: each group (from 8 on), the top, or each partition (before 2)."""
    if context.api_version >= SEVERAL_GROUPS_FROM:
        return OffsetFetchResponse(
            groups=[Group(group_id=group.group_id, error_code=error.code) for group in request.groups]
        )
    if context.api_version >= GROUP_ERROR_FROM:
        return OffsetFetchResponse(error_code=error.code)
    failed = FetchedOffset(error=error.code)
    return OffsetFetchResponse(topics=_topics(dict.fromkeys(_partitions(request.topics) or (), failed)))
