"""The share groups of one machine, by group id: the way in.

Share groups have no offsets of their own, and are never groups of another kind; so they have their own table. A group
that has no record yet is `unborn` during the request that makes it: the first of its records puts it into the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from kpybroker.core.assignors.simple_assignor import SIMPLE_ASSIGNOR
from kpybroker.core.assignors.values import TopicId
from kpybroker.core.budget import UNOWNED, StateBudget
from kpybroker.core.machine import Step, Ticket
from kpybroker.core.modern_group.leaving import pop_due
from kpybroker.core.modern_group.members import partitions_bytes
from kpybroker.core.modern_group.requests import respond
from kpybroker.core.modern_group.shared import Shared
from kpybroker.core.modern_group.values import GroupCounts, Topics
from kpybroker.core.share_group.heartbeat import heartbeat
from kpybroker.core.share_group.initializing import forget_topics
from kpybroker.core.share_group.leaving import on_timers
from kpybroker.core.share_group.members import SHARE_GROUP_BYTES, ShareMemberMetadata, metadata_bytes
from kpybroker.core.share_group.offsets import alter, delete, delete_offsets
from kpybroker.core.share_group.records import ShareGroupEpochRecord, ShareRecord
from kpybroker.core.share_group.state import ShareGroup
from kpybroker.core.share_group.values import (
    AlteredShareOffsets,
    AlterShareOffsets,
    DeletedShareOffsets,
    DeleteShareOffsets,
    DescribedShareGroup,
    DescribeShareGroup,
    InitializedPartitions,
    ListInitializedPartitions,
    ShareHeartbeat,
    ShareHeartbeatResult,
    ShareSurroundings,
)
from kpybroker.core.share_group.waiting import Waiting
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget

FULL = ErrorCode.COORDINATOR_NOT_AVAILABLE
"""Kafka has no error for a full memory that clients survive: they look for the coordinator, and try again."""

ShareRequest = ShareHeartbeat | DescribeShareGroup | ListInitializedPartitions | AlterShareOffsets | DeleteShareOffsets
SHARE_REQUESTS: Final = (
    ShareHeartbeat,
    DescribeShareGroup,
    ListInitializedPartitions,
    AlterShareOffsets,
    DeleteShareOffsets,
)


class ShareGroups:
    """`groups` has those with a record in the log."""

    __slots__ = ("_budget", "_settings", "_unborn", "_waiting", "groups", "shared")

    def __init__(self, settings: ShareSurroundings, counts: GroupCounts, budget: StateBudget) -> None:
        self._settings = settings
        self._budget = budget
        self.shared = Shared(counts, budget)
        self.groups: dict[str, ShareGroup] = {}
        self._unborn: ShareGroup | None = None
        self._waiting = Waiting()

    # --- requests

    def handle(self, step: Step[Any], request: ShareRequest, ticket: Ticket, is_other_kind: bool) -> None:
        """One request. `is_other_kind`: a group that is no share group has the id."""
        group = None if is_other_kind else self.groups.get(request.group_id)
        missing = f"Group {request.group_id} {'is not a share group' if is_other_kind else 'not found'}."
        match request:
            case ShareHeartbeat():
                self._heartbeat(step, group, request, ticket, missing if is_other_kind else None)
            case AlterShareOffsets():
                self._alter(step, group, request, ticket, missing if is_other_kind else None)
            case ListInitializedPartitions():
                _list_initialized(step, group, ticket)
            case DescribeShareGroup():
                if group is None:
                    step.reply(ticket, DescribedShareGroup(ErrorCode.GROUP_ID_NOT_FOUND, missing))
                else:
                    step.read(group.written_up_to, partial(respond, ticket, describe(group)))
            case DeleteShareOffsets():
                if group is None:
                    step.reply(ticket, DeletedShareOffsets(ErrorCode.GROUP_ID_NOT_FOUND, missing))
                else:
                    delete_offsets(step, group, request, ticket, self._waiting)

    def delete(self, step: Step[Any], group: ShareGroup, ticket: Ticket) -> None:
        """DeleteGroups of a share group."""
        delete(step, group, ticket, self._waiting)

    def _heartbeat(
        self, step: Step[Any], group: ShareGroup | None, request: ShareHeartbeat, ticket: Ticket, other: str | None
    ) -> None:
        self._unborn = None
        if group is None and (other is not None or request.member_epoch != 0):
            text = f"{'Share group' if request.member_epoch > 0 else 'Group'} {request.group_id} not found."
            step.reply(ticket, ShareHeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, other or text))
            return
        needed = _heartbeat_bytes(group, request)
        if needed > 0 and not self._budget.has_room(request.owner, needed):
            step.reply(ticket, ShareHeartbeatResult(FULL, FULL.message))
            return
        if group is not None:
            group.belongs_to(request.owner)
            heartbeat(step, group, request, ticket)
            return
        unborn = self._unborn = ShareGroup(request.group_id, self.shared, self._settings)
        unborn.belongs_to(request.owner)
        if not heartbeat(step, unborn, request, ticket):
            unborn.release()

    def _alter(
        self, step: Step[Any], group: ShareGroup | None, request: AlterShareOffsets, ticket: Ticket, other: str | None
    ) -> None:
        self._unborn = None
        if other is not None:
            step.reply(ticket, AlteredShareOffsets(ErrorCode.GROUP_ID_NOT_FOUND, other))
            return
        needed = partitions_bytes([[index] for _, index in request.offsets])
        if not self._budget.has_room(request.owner, needed + (SHARE_GROUP_BYTES if group is None else 0)):
            step.reply(ticket, AlteredShareOffsets(FULL, FULL.message))
            return
        if group is None:
            group = self._unborn = ShareGroup(request.group_id, self.shared, self._settings)
        group.belongs_to(request.owner)
        alter(step, group, request, ticket, self._waiting)
        if group is self._unborn and not step.outcome.writes:
            group.release()

    # --- time and topics

    def expire(self, step: Step[Any]) -> None:
        """End the sessions that are due."""
        for group_id, due in pop_due(self.shared.timers, step.now.monotonic).items():
            if (group := self.groups.get(group_id)) is not None:
                on_timers(step, group, due)

    def on_topics_changed(self, topics: Topics, changed: Iterable[str], *, has_new: bool) -> None:
        """There is new metadata, in which some topics were made, altered or deleted."""
        for group_id in self.shared.update_topics(topics, changed, has_new=has_new):
            if (group := self.groups.get(group_id)) is not None:
                group.topics_changed()

    def forget_topic(self, step: Step[Any], group_id: str, topic: str, topic_id: TopicId) -> None:
        """The topic was deleted; `topic_id` is that of the topic that has its name by now, or zeros."""
        group = self.groups.get(group_id)
        if group is None or group.states is None:
            return
        states = group.states
        by_name = {
            found
            for topics in (states.initializing, states.initialized)
            for found, named in topics.items()
            if named.name == topic and found != topic_id
        }
        forget_topics(step, group, by_name | {one for one in states.deleting if self.shared.topics.by_id(one) is None})

    # --- the log

    def replay(self, record: ShareRecord, offset: int) -> None:
        """Apply a record; the first one makes the group, the tombstone of its epoch ends it."""
        group = self.groups.get(record.group_id)
        if group is None:
            if record.value is None:
                return
            group, self._unborn = self._unborn, None
            if group is None or group.group_id != record.group_id:
                group = ShareGroup(record.group_id, self.shared, self._settings)
            self.groups[record.group_id] = group
        group.written_up_to = offset + 1
        group.replay(record)
        if isinstance(record, ShareGroupEpochRecord) and record.value is None:
            del self.groups[record.group_id]
            group.release()

    def activate(self, step: Step[Any], group: ShareGroup, budget: WorkBudget) -> Iterator[None]:
        """Start the sessions of all members, after the whole partition has been replayed. In slices."""
        group.states_written_at = step.now.monotonic
        for member_id in group.members:
            group.start_session(group.live_member(member_id, UNOWNED), step.now.monotonic)
            if budget.is_spent():
                yield

    def unload(self, step: Step[Any]) -> None:
        """Leadership is lost."""
        self._waiting.refuse_all(step)
        for group in self.groups.values():
            group.release()
        self.groups.clear()


def describe(group: ShareGroup) -> DescribedShareGroup:
    """The group as it is now."""
    by_id = group.shared.topics.by_id
    topic_ids = {topic_id for member in group.members.values() for topic_id in member.current.assigned}
    return DescribedShareGroup(
        error=ErrorCode.NONE,
        state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch.epoch,
        assignor=SIMPLE_ASSIGNOR,
        members=tuple(group.members.values()),
        topic_names={topic_id: topic.name for topic_id in topic_ids if (topic := by_id(topic_id)) is not None},
    )


def _list_initialized(step: Step[Any], group: ShareGroup | None, ticket: Ticket) -> None:
    if group is None:
        step.reply(ticket, InitializedPartitions(ErrorCode.NONE))
        return
    initialized = {} if group.states is None else group.states.initialized
    partitions = {topic_id: topic.partitions for topic_id, topic in initialized.items()}
    step.read(group.written_up_to, partial(respond, ticket, InitializedPartitions(ErrorCode.NONE, partitions)))


def _heartbeat_bytes(group: ShareGroup | None, request: ShareHeartbeat) -> int:
    """How many bytes the heartbeat may add: of a member that says what it subscribes to."""
    if request.member_epoch < 0 or request.topic_names is None:
        return 0
    known = None if group is None else group.members.get(request.member_id)
    said = ShareMemberMetadata(request.rack_id, request.client_id, request.client_host, request.topic_names)
    size = metadata_bytes(request.member_id, said)
    if known is not None:
        return size - metadata_bytes(request.member_id, known.metadata)
    return size + (SHARE_GROUP_BYTES if group is None else 0)
