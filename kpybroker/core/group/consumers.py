"""The groups of the new protocol (KIP-848) among those of a machine, and what requests of the old one mean to them.

A group is of one kind at a time. An empty classic group becomes a consumer group with its first heartbeat, and an empty
consumer group a classic one with its first JoinGroup. A group with members keeps its kind: as in Kafka with
`group.consumer.migration.policy=disabled`, members of the other protocol are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kpybroker.core.budget import UNOWNED, Owner, StateBudget
from kpybroker.core.consumer_group.describing import describe
from kpybroker.core.consumer_group.heartbeat import heartbeat, write_error
from kpybroker.core.consumer_group.leaving import (
    fence,
    member_or_raise,
    on_timers,
    start_rebalance_timer,
    static_or_raise,
)
from kpybroker.core.consumer_group.members import Member
from kpybroker.core.consumer_group.records import ConsumerRecord, GroupEpochRecord
from kpybroker.core.consumer_group.shared import Shared
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.timers import LiveMember, TimerKind
from kpybroker.core.consumer_group.values import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribeConsumerGroup,
    DescribedConsumerGroup,
    Surroundings,
)
from kpybroker.core.group.committing import commit_offsets, delete_group, delete_offsets, fetch_offsets
from kpybroker.core.group.records import GroupRecord
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import (
    UNKNOWN_MEMBER_ID,
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    DescribedGroup,
    DescribeGroup,
    FetchOffsets,
    GroupState,
    Heartbeat,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    LeavingMember,
    Sync,
    SyncResult,
)
from kpybroker.core.machine import Ticket
from kpybroker.wire.errors import ErrorCode, KafkaError


class Consumers:
    """What the consumer groups of one machine share. A group that has no record yet is `unborn` during its heartbeat:
    the first of its records makes it one of the table's.
    """

    __slots__ = ("_unborn", "shared")

    def __init__(self, surroundings: Surroundings, budget: StateBudget) -> None:
        self.shared = Shared(surroundings, budget)
        self._unborn: tuple[ConsumerGroup, Owner] | None = None

    def heartbeat(self, step: GroupStep, group: Group | None, request: ConsumerHeartbeat, ticket: Ticket) -> None:
        """ConsumerGroupHeartbeat, to a group of either kind, or to none."""
        self._unborn = None
        if group is not None and group.consumer is not None:
            heartbeat(step, group.consumer, request, ticket)
            return
        refusal = _refusal(group, request)
        if refusal is not None:
            step.reply(ticket, ConsumerHeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, refusal))
            return
        first: list[GroupRecord] = []
        if group is not None:
            step.info(f"[GroupId {group.group_id}] Converted the empty classic group to a consumer group.")
            first.append(GroupRecord(group.group_id, None))
        unborn = ConsumerGroup(request.group_id, self.shared)
        self._unborn = (unborn, request.owner)
        heartbeat(step, unborn, request, ticket, first)

    def replay(self, group: Group, record: ConsumerRecord, offset: int) -> None:
        """Apply a record; the first one makes the group a consumer group, the tombstone of its epoch ends that."""
        if group.consumer is None:
            if record.value is None:
                return
            consumer, owner = self._unborn or (None, UNOWNED)
            if consumer is None or consumer.group_id != group.group_id:
                consumer, owner = ConsumerGroup(group.group_id, self.shared), UNOWNED
            self._unborn = None
            group.belongs_to(owner)
            group.begin_consumer(consumer)
        assert group.consumer is not None
        group.consumer.written_up_to = offset + 1
        group.consumer.replay(record)
        if isinstance(record, GroupEpochRecord) and record.value is None:
            group.end_consumer()

    def activate(self, step: GroupStep, group: ConsumerGroup) -> None:
        """Start the timers of all members, after the whole partition has been replayed."""
        for member in group.members.values():
            live = group.live_member(member.member_id, UNOWNED)
            group.start_session(live, step.now.monotonic)
            start_rebalance_timer(group, live, member, step.now.monotonic)

    def expire(self, step: GroupStep, groups: Mapping[str, Group]) -> None:
        """Run the timers that are due."""
        due: defaultdict[str, list[tuple[TimerKind, LiveMember]]] = defaultdict(list)
        for kind, live in self.shared.timers.pop_due(step.now.monotonic):
            due[live.group_id].append((kind, live))
        for consumer in affected(groups, due):
            known = consumer.live
            on_timers(
                step,
                consumer,
                [(kind, live) for kind, live in due[consumer.group_id] if known.get(live.member_id) is live],
            )

    def describe(self, step: GroupStep, group: Group | None, request: DescribeConsumerGroup, ticket: Ticket) -> None:
        """ConsumerGroupDescribe; the response waits for what it shows to be committed."""
        consumer = None if group is None else group.consumer
        if consumer is None:
            text = f"Group {request.group_id} {'not found' if group is None else 'is not a consumer group'}."
            step.reply(ticket, DescribedConsumerGroup(ErrorCode.GROUP_ID_NOT_FOUND, text))
            return
        step.read(consumer.written_up_to, partial(_on_described, describe(consumer), ticket))


def _refusal(group: Group | None, request: ConsumerHeartbeat) -> str | None:
    """Why a heartbeat does not make this group a consumer group; None if it does."""
    group_id = request.group_id
    if request.member_epoch == 0:
        if group is None or group.state is GroupState.EMPTY:
            return None
        return f"Cannot upgrade classic group {group_id} to consumer group because online upgrade is disabled."
    if group is not None:
        return f"Group {group_id} is not a consumer group."
    return f"{'Consumer group' if request.member_epoch > 0 else 'Group'} {group_id} not found."


def _on_described(result: DescribedConsumerGroup, ticket: Ticket, step: GroupStep, error: ErrorCode) -> None:
    step.reply(ticket, result if error is ErrorCode.NONE else DescribedConsumerGroup(write_error(error)))


# --- requests of the old protocol


def _join(step: GroupStep, group: ConsumerGroup, request: Join, ticket: Ticket) -> None:
    error = ErrorCode.UNKNOWN_MEMBER_ID if group.is_empty else ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    step.reply(ticket, JoinResult(error, request.member_id))


def _sync(step: GroupStep, group: ConsumerGroup, request: Sync, ticket: Ticket) -> None:
    step.reply(ticket, SyncResult(_not_classic(group, request)))


def _heartbeat(step: GroupStep, group: ConsumerGroup, request: Heartbeat, ticket: Ticket) -> None:
    step.reply(ticket, _not_classic(group, request))


def _not_classic(group: ConsumerGroup, request: Sync | Heartbeat) -> ErrorCode:
    """The error of a member that is none, or does not use the classic protocol."""
    member = None if request.group_instance_id is None else group.static_member(request.group_instance_id)
    is_fenced = member is not None and member.member_id != request.member_id
    return ErrorCode.FENCED_INSTANCE_ID if is_fenced else ErrorCode.UNKNOWN_MEMBER_ID


def _leave(step: GroupStep, group: ConsumerGroup, request: Leave, ticket: Ticket) -> None:
    """An administrator removes members, or a member of the classic protocol that was one leaves."""
    leaving: dict[str, Member] = {}
    errors: list[tuple[LeavingMember, ErrorCode]] = []
    for one in request.members:
        try:
            member = _leaving_member(group, one)
            leaving[member.member_id] = member
            errors.append((one, ErrorCode.NONE))
        except KafkaError as error:
            errors.append((one, error.code))
    result = LeaveResult(ErrorCode.NONE, tuple(errors))
    if not leaving:
        step.reply(ticket, result)
        return
    step.info(f"[GroupId {group.group_id}] Members {', '.join(leaving)} have left group through LeaveGroup")
    step.write(fence(group, list(leaving.values())), partial(_on_left, result, ticket))


def _leaving_member(group: ConsumerGroup, leaving: LeavingMember) -> Member:
    if leaving.group_instance_id is None:
        return member_or_raise(group, leaving.member_id)
    member_id = leaving.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = group.static_members.get(leaving.group_instance_id, "")
    return static_or_raise(group, member_id, leaving.group_instance_id)


def _on_left(result: LeaveResult, ticket: Ticket, step: GroupStep, error: ErrorCode) -> None:
    step.reply(ticket, result if error is ErrorCode.NONE else LeaveResult(write_error(error)))


def _describe_classic(step: GroupStep, group: ConsumerGroup, request: DescribeGroup, ticket: Ticket) -> None:
    step.reply(ticket, DescribedGroup(ErrorCode.NONE, state=GroupState.DEAD.value))


_OF_MEMBERS: dict[type[Any], Callable[[GroupStep, ConsumerGroup, Any, Ticket], None]] = {
    Join: _join,
    Sync: _sync,
    Heartbeat: _heartbeat,
    Leave: _leave,
    DescribeGroup: _describe_classic,
}
_OF_OFFSETS: dict[type[Any], Callable[[GroupStep, Group, Any, Ticket], None]] = {
    CommitOffsets: commit_offsets,
    FetchOffsets: fetch_offsets,
    DeleteGroup: lambda step, group, request, ticket: delete_group(step, group, ticket),
    DeleteOffsets: delete_offsets,
}


def handle_classic(step: GroupStep, group: Group, request: Any, ticket: Ticket) -> None:
    """A request that is not of the new protocol, to a consumer group."""
    assert group.consumer is not None
    if (of_members := _OF_MEMBERS.get(type(request))) is not None:
        of_members(step, group.consumer, request, ticket)
    else:
        _OF_OFFSETS[type(request)](step, group, request, ticket)


def affected(groups: Mapping[str, Group], group_ids: Iterable[str]) -> Iterable[ConsumerGroup]:
    """Those of the groups that are consumer groups."""
    found = (groups.get(group_id) for group_id in group_ids)
    return (group.consumer for group in found if group is not None and group.consumer is not None)
