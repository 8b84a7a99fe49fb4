"""DescribeTopicPartitions 0: topics with all their partitions, a bounded number a response (KIP-966).

Kafka serves it only in KRaft mode; here too, because today's admin clients ask it first. Topics are in the order of
their names; `next_cursor` is where the next request continues. Eligible leader replicas exist in KRaft only, so there
are none.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.broker.cluster.metadata_cache import MetadataSnapshot
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed, next_slice
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core import topic_names
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition

SORTED_AT_ONCE = 10_000

LEDGER = Ledger(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, {0: "pages of partitions, by a cursor"})


async def handle(
    broker: Broker, request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """Topics and their partitions in the order of names, up to the limit of partitions."""
    await broker.metadata.wait_first_update(broker.tree)
    snapshot = broker.metadata.snapshot
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    all_topics = not request.topics
    names = snapshot.topics if all_topics else {topic.name for topic in request.topics}
    _check_cursor(request, names, all_topics)
    response = DescribeTopicPartitionsResponse()
    refused = []
    allowed = []
    budget = YieldBudget()
    await budget.spend(ELEMENT * len(names))
    wanted = await _sorted([name for name in names if name >= first], budget)
    for name in wanted:
        await budget.spend()
        if context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name, log_denied=not all_topics):
            allowed.append(name)
        elif not all_topics:
            refused.append(Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name))
    limit = min(broker.config.get_int("max.request.partition.size.limit"), request.response_partition_limit)
    start = 0 if cursor is None else cursor.partition_index
    page = _Page((first, start), max(limit, 1), skip_unknown=all_topics)
    await _fill(response, snapshot, context, allowed, page)
    for topic in response.topics:
        await budget.spend()
        topic.topic_authorized_operations = context.authorized_operations(ResourceType.TOPIC, topic.name or "")
    response.topics += refused
    return response


async def _sorted(names: list[str], budget: YieldBudget) -> list[str]:
    """In order; a part at a time, for a request may name any number of topics."""
    if len(names) <= SORTED_AT_ONCE:
        return sorted(names)
    parts = []
    for start in range(0, len(names), SORTED_AT_ONCE):
        parts.append(sorted(names[start : start + SORTED_AT_ONCE]))
        await next_slice()
    return await listed(heapq.merge(*parts), budget)


def _check_cursor(request: DescribeTopicPartitionsRequest, names: Iterable[str], all_topics: bool) -> None:
    cursor = request.cursor
    if cursor is None:
        return
    if not all_topics and cursor.topic_name not in names:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
        )
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor.partition_index}",
        )


class _Page(NamedTuple):
    """Which part of all partitions one response has: from a topic and partition on, at most `limit` partitions."""

    start: tuple[str, int]
    limit: int
    skip_unknown: bool


async def _fill(
    response: DescribeTopicPartitionsResponse,
    snapshot: MetadataSnapshot,
    context: RequestContext,
    names: list[str],
    page: _Page,
) -> None:
    remaining = page.limit
    budget = YieldBudget()
    for name in names:
        await budget.spend()
        if remaining == 0:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            return
        states = snapshot.topics.get(name)
        if states is None:
            if not page.skip_unknown:
                valid = topic_names.is_valid(name)
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
                response.topics.append(Topic(error_code=code, name=name, is_internal=topic_names.is_internal(name)))
            continue
        from_index = page.start[1] if name == page.start[0] else 0
        end = min(len(states), from_index + remaining)
        response.topics.append(_topic(snapshot, context, name, range(from_index, end)))
        if end < len(states):
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=end)
            return
        remaining -= max(end - from_index, 0)
        await next_slice()


def _topic(snapshot: MetadataSnapshot, context: RequestContext, name: str, indexes: range) -> Topic:
    partitions = []
    for index in indexes:
        state = snapshot.partition(name, index)
        if state is None:
            continue
        leader = snapshot.brokers.get(state.leader)
        reachable = leader is not None and context.listener_name in leader.endpoints
        partitions.append(
            Partition(
                partition_index=index,
                leader_id=state.leader if reachable else -1,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=state.offline_replicas,
            )
        )
    return Topic(
        name=name,
        topic_id=snapshot.topic_id(name),
        is_internal=topic_names.is_internal(name),
        partitions=partitions,
    )


def error_response(
    request: DescribeTopicPartitionsRequest, context: RequestContext, error: KafkaError
) -> DescribeTopicPartitionsResponse:
    """The error at each topic."""
    return DescribeTopicPartitionsResponse(
        topics=[Topic(error_code=error.code, name=topic.name) for topic in request.topics]
    )
