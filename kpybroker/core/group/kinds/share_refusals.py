"""What requests of other protocols get from a share group: as in Kafka 4, that there is no group of their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kpybroker.core.consumer_group.values import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribeConsumerGroup,
    DescribedConsumerGroup,
)
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import (
    UNKNOWN_MEMBER_ID,
    CommitOffsets,
    CommitResult,
    DeleteOffsets,
    DeleteOffsetsResult,
    DescribedGroup,
    DescribeGroup,
    FetchedOffset,
    FetchOffsets,
    FetchOffsetsResult,
    GroupState,
    Heartbeat,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    Sync,
    SyncResult,
)
from kpybroker.core.machine import Ticket
from kpybroker.wire.errors import ErrorCode

NOT_FOUND: Final = ErrorCode.GROUP_ID_NOT_FOUND


def refused_by_share_group(step: GroupStep, request: Any, ticket: Ticket) -> None:
    """Reply to a request of another protocol, but DeleteGroups, which is for groups of every kind."""
    step.reply(ticket, _REPLIES[type(request)](request))


def _not_consumer(group_id: str) -> str:
    return f"Group {group_id} is not a consumer group."


def _described(request: DescribeGroup) -> DescribedGroup:
    text = f"Group {request.group_id} is not a classic group."
    return DescribedGroup(ErrorCode.NONE, state=GroupState.DEAD.value, not_found=text)


_REPLIES: Final[Mapping[type[Any], Callable[[Any], object]]] = {
    Join: lambda request: JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID),
    Sync: lambda request: SyncResult(ErrorCode.UNKNOWN_MEMBER_ID),
    Heartbeat: lambda request: ErrorCode.UNKNOWN_MEMBER_ID,
    Leave: lambda request: LeaveResult(
        ErrorCode.NONE, tuple((member, ErrorCode.UNKNOWN_MEMBER_ID) for member in request.members)
    ),
    CommitOffsets: lambda request: CommitResult(dict.fromkeys(request.offsets, NOT_FOUND)),
    FetchOffsets: lambda request: FetchOffsetsResult(
        ErrorCode.NONE, {partition: FetchedOffset() for partition in request.partitions or ()}
    ),
    DescribeGroup: _described,
    DeleteOffsets: lambda request: DeleteOffsetsResult(NOT_FOUND),
    ConsumerHeartbeat: lambda request: ConsumerHeartbeatResult(NOT_FOUND, _not_consumer(request.group_id)),
    DescribeConsumerGroup: lambda request: DescribedConsumerGroup(NOT_FOUND, _not_consumer(request.group_id)),
}
