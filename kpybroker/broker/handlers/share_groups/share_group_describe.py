"""ShareGroupDescribe 1: state, epochs, members and assignments of share groups (KIP-932).

Refused with UNSUPPORTED_VERSION until `share.version` 1 is finalized, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import group_operations, serves_share_groups
from kpybroker.broker.loop.yielding import YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.assignors.values import Partitions
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.share_group.members import ShareMember
from kpybroker.core.share_group.values import DescribedShareGroup, DescribeShareGroup
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.SHARE_GROUP_DESCRIBE,
    1,
    1,
    {
        1: "state, epochs, members and assignments (KIP-932); UNSUPPORTED_VERSION where `share.version` 1 is not "
        "finalized",
    },
)

HIDDEN = "The group has described topic(s) that the client is not authorized to describe."

Group = ShareGroupDescribeResponse.DescribedGroup


async def handle(
    broker: Broker, request: ShareGroupDescribeRequest, context: RequestContext
) -> ShareGroupDescribeResponse:
    """Each group that this broker coordinates; the refused ones are first, as in Kafka."""
    budget = YieldBudget()
    if not serves_share_groups(broker):
        unserved = (_failed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids)
        return ShareGroupDescribeResponse(groups=await listed(unserved, budget))
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
    return ShareGroupDescribeResponse(groups=refused + described)


async def _describe(broker: Broker, context: RequestContext, group_id: str) -> Group:
    if not group_id:
        return _failed(group_id, ErrorCode.INVALID_GROUP_ID)
    try:
        found: DescribedShareGroup = await broker.groups.ask(DescribeShareGroup(group_id))
    except KafkaError as error:
        return _failed(group_id, error.code, error.code.message)
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


def _member(member: ShareMember, names: Mapping[bytes, str]) -> ShareGroupDescribeResponse.Member:
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.metadata.rack_id,
        member_epoch=member.current.member_epoch,
        client_id=member.metadata.client_id,
        client_host=member.metadata.client_host,
        subscribed_topic_names=sorted(member.metadata.topic_names),
        assignment=_assignment(member.current.assigned, names),
    )


def _assignment(assigned: Partitions, names: Mapping[bytes, str]) -> ShareGroupDescribeResponse.Assignment:
    """Topics that do not exist any more are left out."""
    return ShareGroupDescribeResponse.Assignment(
        topic_partitions=[
            ShareGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id, topic_name=names[topic_id], partitions=sorted(indexes)
            )
            for topic_id, indexes in assigned.items()
            if topic_id in names
        ]
    )


def _failed(group_id: str, error: ErrorCode, message: str | None = None) -> Group:
    return Group(group_id=group_id, error_code=error, error_message=message)


def error_response(
    request: ShareGroupDescribeRequest, context: RequestContext, error: KafkaError
) -> ShareGroupDescribeResponse:
    """The error at each group."""
    return ShareGroupDescribeResponse(groups=[_failed(group_id, error.code) for group_id in request.group_ids])
