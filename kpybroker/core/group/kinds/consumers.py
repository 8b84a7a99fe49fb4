"""The groups of the new protocol (KIP-848) among those of a machine, and what requests of the old one mean to them.

A group is of one kind at a time. An empty classic group becomes a consumer group with its first heartbeat, and an empty
consumer group a classic one with its first JoinGroup. What a group with members does is in `migration`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from kpybroker.core.budget import UNOWNED, Owner, StateBudget
from kpybroker.core.consumer_group.describing import describe
from kpybroker.core.consumer_group.heartbeat import heartbeat
from kpybroker.core.consumer_group.leaving import fence, on_timers, start_rebalance_timer, static_or_raise
from kpybroker.core.consumer_group.members import Member
from kpybroker.core.consumer_group.records import ConsumerRecord, GroupEpochRecord
from kpybroker.core.consumer_group.shared import ConsumerShared
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribeConsumerGroup,
    DescribedConsumerGroup,
    Surroundings,
)
from kpybroker.core.group.committing import commit_offsets, delete_group, delete_offsets, fetch_offsets
from kpybroker.core.group.migration.classic_members import heartbeat as classic_heartbeat
from kpybroker.core.group.migration.classic_members import join, sync
from kpybroker.core.group.migration.downgrade import Successor, downgrade
from kpybroker.core.group.migration.upgrade import end_rebalance, upgraded
from kpybroker.core.group.records import GroupRecord, Record
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
)
from kpybroker.core.machine import Ticket
from kpybroker.core.modern_group.leaving import pop_due
from kpybroker.core.modern_group.requests import member_or_raise, respond
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.yield_budget import WorkBudget


class Consumers:
    """What the consumer groups of one machine share. A group that has no record yet is `unborn` during its heartbeat:
    the first of its records makes it one of the table's. When one ends that is to be a classic group, its `successor`
    waits for the next record.
    """

    __slots__ = ("_successor", "_unborn", "shared")

    def __init__(self, surroundings: Surroundings, budget: StateBudget) -> None:
        self.shared = ConsumerShared(surroundings, budget)
        self.shared.downgrade = downgrade
        self._unborn: tuple[ConsumerGroup, Owner] | None = None
        self._successor: Successor | None = None

    def heartbeat(self, step: GroupStep, group: Group | None, request: ConsumerHeartbeat, ticket: Ticket) -> None:
        """ConsumerGroupHeartbeat, to a group of either kind, or to none."""
        self._unborn = None
        if group is not None and group.consumer is not None:
            heartbeat(step, group.consumer, request, ticket)
            return
        try:
            unborn, first = _new_group(step, group, request, self.shared)
        except KafkaError as error:
            step.reply(ticket, ConsumerHeartbeatResult(error.code, error.message))
            return
        self._unborn = (unborn, request.owner)
        if not heartbeat(step, unborn, request, ticket, first):
            unborn.release()
        elif group is not None:
            end_rebalance(step, group)

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
            group.begin_modern(consumer)
        assert group.consumer is not None
        group.consumer.written_up_to = offset + 1
        group.consumer.replay(record)
        if isinstance(record, GroupEpochRecord) and record.value is None:
            successor = group.consumer.successor
            self._successor = successor if isinstance(successor, Successor) else None
            group.end_modern()

    def begin_successor(self, group: Group, record: GroupRecord) -> None:
        """The record of a classic group is in the log: it may be the successor of a consumer group."""
        successor, self._successor = self._successor, None
        if successor is not None and successor.stored is record.value:
            successor.begin(group)

    def has_successor(self, group: Group) -> bool:
        """Whether the next record is that of the classic group that takes the place of a consumer group."""
        return self._successor is not None and self._successor.group_id == group.group_id

    def activate(self, step: GroupStep, group: ConsumerGroup, budget: WorkBudget) -> Iterator[None]:
        """Start the timers of all members, after the whole partition has been replayed. In slices."""
        for member in group.members.values():
            live = group.live_member(member.member_id, UNOWNED)
            group.start_session(live, step.now.monotonic, member.metadata.session_timeout_ms)
            start_rebalance_timer(group, live, member, step.now.monotonic)
            if budget.is_spent():
                yield

    def expire(self, step: GroupStep, groups: Mapping[str, Group]) -> None:
        """Run the timers that are due."""
        due = pop_due(self.shared.timers, step.now.monotonic)
        for consumer in affected(groups, due):
            on_timers(step, consumer, due[consumer.group_id])

    def describe(self, step: GroupStep, group: Group | None, request: DescribeConsumerGroup, ticket: Ticket) -> None:
        """ConsumerGroupDescribe; the response waits for what it shows to be committed."""
        consumer = None if group is None else group.consumer
        if consumer is None:
            text = f"Group {request.group_id} {'not found' if group is None else 'is not a consumer group'}."
            step.reply(ticket, DescribedConsumerGroup(ErrorCode.GROUP_ID_NOT_FOUND, text))
            return
        step.read(consumer.written_up_to, partial(respond, ticket, describe(consumer)))


def _new_group(
    step: GroupStep, group: Group | None, request: ConsumerHeartbeat, shared: ConsumerShared
) -> tuple[ConsumerGroup, list[Record]]:
    """The consumer group that a heartbeat makes, and what has to be written before it. Raises GROUP_ID_NOT_FOUND."""
    group_id = request.group_id
    if request.member_epoch != 0:
        text = f"{'Consumer group' if request.member_epoch > 0 else 'Group'} {group_id} not found."
        if group is not None:
            text = f"Group {group_id} is not a consumer group."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
    if group is None:
        return ConsumerGroup(group_id, shared), []
    if group.state is not GroupState.EMPTY:
        return upgraded(step, group, shared)
    step.info(f"[GroupId {group_id}] Converted the empty classic group to a consumer group.")
    return ConsumerGroup(group_id, shared), [GroupRecord(group_id, None)]


# --- requests of the old protocol


def _join(step: GroupStep, group: ConsumerGroup, request: Join, ticket: Ticket) -> None:
    if group.is_empty:
        step.reply(ticket, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
    else:
        join(step, group, request, ticket)


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
    step.write(fence(step, group, list(leaving.values())), partial(respond, ticket, result))


def _leaving_member(group: ConsumerGroup, leaving: LeavingMember) -> Member:
    if leaving.group_instance_id is None:
        return member_or_raise(group, leaving.member_id)
    member_id = leaving.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = group.static_members.get(leaving.group_instance_id, "")
    return static_or_raise(group, member_id, leaving.group_instance_id)


def _describe_classic(step: GroupStep, group: ConsumerGroup, request: DescribeGroup, ticket: Ticket) -> None:
    text = f"Group {request.group_id} is not a classic group."
    step.reply(ticket, DescribedGroup(ErrorCode.NONE, state=GroupState.DEAD.value, not_found=text))


_OF_MEMBERS: dict[type[Any], Callable[[GroupStep, ConsumerGroup, Any, Ticket], None]] = {
    Join: _join,
    Sync: sync,
    Heartbeat: classic_heartbeat,
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
