"""ConsumerGroupDescribe 0-1: state, epochs, members and assignments of groups of the new protocol (KIP-848).

Refused with UNSUPPORTED_VERSION until `group.version` 1 is finalized, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import group_operations, serves_consumer_groups
from kpybroker.broker.loop.yielding import YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.consumer_group.values import (
    DescribeConsumerGroup,
    DescribedConsumerGroup,
    DescribedConsumerMember,
)
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    0,
    1,
    {
        0: "state, epochs, members and assignments (KIP-848); UNSUPPORTED_VERSION where `group.version` 1 is not "
        "finalized",
        1: "the protocol of each member (KIP-1099)",
    },
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
HIDDEN = "The group has described topic(s) that the client is not authorized to describe."

Group = ConsumerGroupDescribeResponse.DescribedGroup
Assignment = ConsumerGroupDescribeResponse.Assignment


async def handle(
    broker: Broker, request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    """Each group that this broker coordinates; the refused ones are first, as in Kafka."""
    budget = YieldBudget()
    if not serves_consumer_groups(broker, context):
        unserved = (_failed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids)
        return ConsumerGroupDescribeResponse(groups=await listed(unserved, budget))
    refused: list[Group] = []
    described: list[Group] = []
    for group_id in request.group_ids:
        await budget.spend()
        if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(_failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        group = await _describe(broker, context, group_id)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = group_operations(broker, context, group_id)
        described.append(group)
    return ConsumerGroupDescribeResponse(groups=refused + described)


async def _describe(broker: Broker, context: RequestContext, group_id: str) -> Group:
    if not group_id:
        return _failed(group_id, ErrorCode.INVALID_GROUP_ID)
    try:
        found: DescribedConsumerGroup = await broker.groups.ask(DescribeConsumerGroup(group_id))
    except KafkaError as error:
        return _failed(group_id, error.code)
    if found.error is not ErrorCode.NONE:
        return _failed(group_id, found.error, found.message)
    budget = YieldBudget()
    for name in found.topic_names.values():
        if not context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            return _failed(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN)
        await budget.spend()
    members = []
    for member in found.members:
        members.append(_member(member, found.topic_names))
        await budget.spend()
    return Group(
        group_id=group_id,
        group_state=found.state,
        group_epoch=found.group_epoch,
        assignment_epoch=found.assignment_epoch,
        assignor_name=found.assignor,
        members=members,
    )


def _member(described: DescribedConsumerMember, names: Mapping[bytes, str]) -> ConsumerGroupDescribeResponse.Member:
    member, metadata = described.member, described.member.metadata
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        member_epoch=member.current.member_epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=sorted(metadata.topic_names),
        subscribed_topic_regex=metadata.pattern,
        assignment=Assignment(topic_partitions=list(_topics(described.assignment, names))),
        target_assignment=Assignment(topic_partitions=list(_topics(described.target, names))),
        member_type=CONSUMER_MEMBER if metadata.classic is None else CLASSIC_MEMBER,
    )


def _topics(
    partitions: Mapping[bytes, tuple[int, ...]], names: Mapping[bytes, str]
) -> Iterator[ConsumerGroupDescribeResponse.TopicPartitions]:
    for topic_id, indexes in partitions.items():
        yield ConsumerGroupDescribeResponse.TopicPartitions(
            topic_id=topic_id, topic_name=names[topic_id], partitions=list(indexes)
        )


def _failed(group_id: str, error: ErrorCode, message: str | None = None) -> Group:
    return Group(group_id=group_id, error_code=error, error_message=message)


def error_response(
    request: ConsumerGroupDescribeRequest, context: RequestContext, error: KafkaError
) -> ConsumerGroupDescribeResponse:
    """The error at each group."""
    return ConsumerGroupDescribeResponse(groups=[_failed(group_id, error.code) for group_id in request.group_ids])
