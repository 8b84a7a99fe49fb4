"""DescribeShareGroupOffsets 0-1: where share groups are in their partitions, and how far behind (KIP-932).

Refused with UNSUPPORTED_VERSION until `share.version` 1 is finalized, as in Kafka. What is not known is -1, and no
error: a partition that has no state of the group, a topic that there is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.handlers.groups.checks import serves_share_groups
from kpybroker.broker.handlers.share_groups.end_offsets import end_offsets
from kpybroker.broker.loop.yielding import YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.share_coordinator.values import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_START_OFFSET,
    ReadState,
    SummaryResult,
)
from kpybroker.core.share_group.values import InitializedPartitions, ListInitializedPartitions
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    0,
    1,
    {
        0: "start offsets (KIP-932); UNSUPPORTED_VERSION where `share.version` 1 is not finalized",
        1: "lag (KIP-1226)",
    },
)

UNKNOWN_LAG: Final = -1

GroupQuery = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
TopicQuery = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic
Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
Partition = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition


async def handle(
    broker: Broker, request: DescribeShareGroupOffsetsRequest, context: RequestContext
) -> DescribeShareGroupOffsetsResponse:
    """Each group by itself."""
    budget = YieldBudget()
    groups = []
    for wanted in request.groups:
        await budget.spend()
        groups.append(await _group(broker, context, wanted))
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def _group(broker: Broker, context: RequestContext, wanted: GroupQuery) -> Group:
    group_id = wanted.group_id
    if not serves_share_groups(broker):
        return Group(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return Group(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        if wanted.topics is None:
            topics = await _all_topics(broker, context, group_id)
        else:
            topics = await _topics(broker, context, group_id, wanted.topics)
    except KafkaError as error:
        return _failed(group_id, error.code)
    return Group(group_id=group_id, topics=topics)


async def _all_topics(broker: Broker, context: RequestContext, group_id: str) -> list[Topic]:
    """All partitions that have a state of the group; topics that the client may not describe are left out."""
    found: InitializedPartitions = await broker.groups.ask(ListInitializedPartitions(group_id))
    if found.error is not ErrorCode.NONE:
        raise KafkaError(found.error)
    budget = YieldBudget()
    states = []
    for topic_id, indexes in found.partitions.items():
        name = broker.metadata.topic_name(topic_id)
        if name is not None and context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            states += [ReadState(topic_id, index) for index in sorted(indexes)]
        await budget.spend()
    return await _described(broker, group_id, states)


async def _topics(broker: Broker, context: RequestContext, group_id: str, wanted: Sequence[TopicQuery]) -> list[Topic]:
    """These topics: those that there are, those that there are not, those that the client may not describe."""
    budget = YieldBudget()
    states: list[ReadState] = []
    absent: dict[bytes, Topic] = {}
    missing: list[Topic] = []
    hidden: list[Topic] = []
    for topic in wanted:
        await budget.spend()
        name, indexes = topic.topic_name, topic.partitions
        topic_id = broker.metadata.topic_id(name)
        if not context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            hidden.append(Topic(topic_name=name, partitions=await _unknown(indexes, error, budget)))
        elif topic_id == ZERO_UUID:
            missing.append(Topic(topic_name=name, partitions=await _unknown(indexes, ErrorCode.NONE, budget)))
        else:
            # No state can be known of a partition that there is not: its coordinator is not asked.
            there = range(broker.metadata.partition_count(name) or 0)
            states += [ReadState(topic_id, index) for index in indexes if index in there]
            others = [index for index in indexes if index not in there]
            if others:
                rows = await _unknown(others, ErrorCode.NONE, budget)
                absent[topic_id] = Topic(topic_name=name, topic_id=topic_id, partitions=rows)
    described = await _described(broker, group_id, states)
    for one in described:
        if one.topic_id in absent:
            one.partitions += absent.pop(one.topic_id).partitions
    return [*described, *absent.values(), *missing, *hidden]


async def _unknown(indexes: Iterable[int], error: ErrorCode, budget: YieldBudget) -> list[Partition]:
    message = None if error is ErrorCode.NONE else error.message
    return await listed(
        (
            Partition(
                partition_index=index,
                start_offset=UNINITIALIZED_START_OFFSET,
                error_code=error,
                error_message=message,
            )
            for index in indexes
        ),
        budget,
    )


async def _described(broker: Broker, group_id: str, states: Sequence[ReadState]) -> list[Topic]:
    if not states:
        return []
    summaries = await broker.groups.share_persister.read_summary(group_id, states)
    names = {state.topic_id: broker.metadata.topic_name(state.topic_id) or "" for state in states}
    counted = [(names[one.topic_id], one.partition) for one in summaries if _has_lag(one)]
    ends = await end_offsets(broker, counted)
    return list(
        _by_topic((names[one.topic_id], one, ends.get((names[one.topic_id], one.partition))) for one in summaries)
    )


def _by_topic(rows: Iterable[tuple[str, SummaryResult, int | ErrorCode | None]]) -> Iterable[Topic]:
    topics: dict[PartitionKey | bytes, Topic] = {}
    for name, summary, end in rows:
        topic = topics.setdefault(summary.topic_id, Topic(topic_name=name, topic_id=summary.topic_id))
        topic.partitions.append(_partition(summary, end))
    return topics.values()


def _has_lag(summary: SummaryResult) -> bool:
    return (
        summary.error is ErrorCode.NONE
        and summary.start_offset != UNINITIALIZED_START_OFFSET
        and summary.delivery_complete_count != UNINITIALIZED_DELIVERY_COMPLETE_COUNT
    )


def _partition(summary: SummaryResult, end: int | ErrorCode | None) -> Partition:
    """`end` is None where there is no lag to count."""
    if isinstance(end, ErrorCode):
        return Partition(partition_index=summary.partition, error_code=end, error_message=end.message)
    is_known = summary.error is ErrorCode.NONE
    lag = UNKNOWN_LAG if end is None else end - summary.start_offset - summary.delivery_complete_count
    return Partition(
        partition_index=summary.partition,
        start_offset=summary.start_offset if is_known else UNINITIALIZED_START_OFFSET,
        leader_epoch=summary.leader_epoch if is_known else 0,
        lag=lag,
    )


def _failed(group_id: str, error: ErrorCode) -> Group:
    return Group(group_id=group_id, error_code=error, error_message=error.message)


def error_response(
    request: DescribeShareGroupOffsetsRequest, context: RequestContext, error: KafkaError
) -> DescribeShareGroupOffsetsResponse:
    """The error at each group."""
    return DescribeShareGroupOffsetsResponse(groups=[_failed(wanted.group_id, error.code) for wanted in request.groups])
