"""The streams groups (KIP-1071) among those of a machine, and what requests of other protocols mean to them.

As a consumer group, one is the members' side of a `Group`, whose offsets it commits. An empty classic group becomes a
streams group with its first heartbeat, and an empty streams group a classic one with its first JoinGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from kpybroker.core.budget import UNOWNED, StateBudget
from kpybroker.core.consumer_group.values import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribeConsumerGroup,
    DescribedConsumerGroup,
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
    Sync,
    SyncResult,
)
from kpybroker.core.machine import Ticket
from kpybroker.core.modern_group.leaving import pop_due
from kpybroker.core.modern_group.requests import respond
from kpybroker.core.modern_group.shared import Shared
from kpybroker.core.modern_group.values import GroupCounts
from kpybroker.core.streams_group.heartbeat import heartbeat
from kpybroker.core.streams_group.leaving import on_timers, start_rebalance_timer
from kpybroker.core.streams_group.members import StreamsMemberMetadata
from kpybroker.core.streams_group.records import StreamsGroupEpochRecord, StreamsRecord
from kpybroker.core.streams_group.sizes import STREAMS_GROUP_BYTES, metadata_bytes, topology_bytes
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.streams_group.target import on_initial_delay_ended
from kpybroker.core.streams_group.validation import validate
from kpybroker.core.streams_group.values import (
    DescribedStreamsGroup,
    DescribeStreamsGroup,
    StreamsHeartbeat,
    StreamsHeartbeatResult,
    StreamsSurroundings,
)
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.yield_budget import WorkBudget

StreamsRequest = StreamsHeartbeat | DescribeStreamsGroup
STREAMS_REQUESTS: Final = (StreamsHeartbeat, DescribeStreamsGroup)
FULL: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE
NOT_FOUND: Final = ErrorCode.GROUP_ID_NOT_FOUND


class StreamsGroups:
    """What the streams groups of one machine share. A group that has no record yet is `unborn` during its heartbeat:
    the first of its records makes it one of the table's.
    """

    __slots__ = ("_budget", "_settings", "_unborn", "shared")

    def __init__(self, settings: StreamsSurroundings, counts: GroupCounts, budget: StateBudget) -> None:
        self._settings = settings
        self._budget = budget
        self.shared = Shared(counts, budget)
        self._unborn: StreamsGroup | None = None

    # --- requests

    def handle(
        self, step: GroupStep, group: Group | None, request: StreamsRequest, ticket: Ticket, *, is_share: bool
    ) -> None:
        """One request, to a group of any kind or to none. `is_share`: a share group has the id."""
        if isinstance(request, StreamsHeartbeat):
            self._heartbeat(step, group, request, ticket, is_share=is_share)
            return
        streams = None if group is None else group.streams
        if streams is None:
            kind = "not found" if group is None and not is_share else "is not a streams group"
            text = f"Group {request.group_id} {kind}."
            step.reply(ticket, DescribedStreamsGroup(NOT_FOUND, text))
        else:
            step.read(streams.written_up_to, partial(respond, ticket, describe(streams)))

    def _heartbeat(
        self, step: GroupStep, group: Group | None, request: StreamsHeartbeat, ticket: Ticket, *, is_share: bool
    ) -> None:
        self._unborn = None
        try:
            validate(request)
            streams, first = self._group_of(step, group, request, is_share=is_share)
        except KafkaError as error:
            step.reply(ticket, StreamsHeartbeatResult(error.code, error.message))
            return
        is_unborn = group is None or group.streams is not streams
        needed = _heartbeat_bytes(streams, request) + (STREAMS_GROUP_BYTES if is_unborn else 0)
        if request.member_epoch == 0 and needed > 0 and not self._budget.has_room(request.owner, needed):
            step.reply(ticket, StreamsHeartbeatResult(FULL, FULL.message))
            return
        if is_unborn:
            self._unborn = streams
        streams.belongs_to(request.owner)
        if not heartbeat(step, streams, request, ticket, first) and is_unborn:
            streams.release()

    def _group_of(
        self, step: GroupStep, group: Group | None, request: StreamsHeartbeat, *, is_share: bool
    ) -> tuple[StreamsGroup, list[GroupRecord]]:
        """The group of a heartbeat, and what has to be written before it. Raises GROUP_ID_NOT_FOUND."""
        group_id = request.group_id
        if group is not None and group.streams is not None:
            return group.streams, []
        is_classic = group is not None and group.consumer is None
        if is_share or (group is not None and not is_classic):
            raise KafkaError(NOT_FOUND, f"Group {group_id} is not a streams group.")
        if request.member_epoch != 0:
            text = f"{'Streams group' if request.member_epoch > 0 else 'Group'} {group_id} not found."
            raise KafkaError(NOT_FOUND, text if group is None else f"Group {group_id} is not a streams group.")
        if group is None:
            return StreamsGroup(group_id, self.shared, self._settings), []
        if group.state is not GroupState.EMPTY:
            raise KafkaError(NOT_FOUND, f"Group {group_id} is not a streams group.")
        step.info(f"[GroupId {group_id}] Converted the empty classic group to a streams group.")
        return StreamsGroup(group_id, self.shared, self._settings), [GroupRecord(group_id, None)]

    # --- time

    def expire(self, step: GroupStep, groups: Mapping[str, Group]) -> None:
        """Run the timers that are due."""
        due = pop_due(self.shared.timers, step.now.monotonic)
        for streams in of_streams(groups, due):
            ended = due[streams.group_id]
            on_timers(step, streams, ended)
            if any(live is streams.initial for _, live in ended):
                on_initial_delay_ended(step, streams)

    # --- the log

    def replay(self, group: Group, record: StreamsRecord, offset: int) -> None:
        """Apply a record; the first one makes the group a streams group, the tombstone of its epoch ends that."""
        if group.streams is None:
            if record.value is None:
                return
            streams, self._unborn = self._unborn, None
            if streams is None or streams.group_id != group.group_id:
                streams = StreamsGroup(group.group_id, self.shared, self._settings)
            group.belongs_to(streams.owner)
            streams.endpoint_epoch = 0  # as in Kafka, which does not keep what the first heartbeat said of endpoints
            group.begin_modern(streams)
        assert group.streams is not None
        group.streams.written_up_to = offset + 1
        group.streams.replay(record)
        if isinstance(record, StreamsGroupEpochRecord) and record.value is None:
            group.end_modern()

    def activate(self, step: GroupStep, group: StreamsGroup, budget: WorkBudget) -> Iterator[None]:
        """Start the timers of all members, after the whole partition has been replayed. In slices."""
        for member in group.members.values():
            live = group.live_member(member.member_id, UNOWNED)
            group.start_session(live, step.now.monotonic)
            start_rebalance_timer(group, live, member, step.now.monotonic)
            if budget.is_spent():
                yield


def of_streams(groups: Mapping[str, Group], group_ids: Iterable[str]) -> Iterable[StreamsGroup]:
    """Those of the groups that are streams groups."""
    found = (groups.get(group_id) for group_id in group_ids)
    return (group.streams for group in found if group is not None and group.streams is not None)


def describe(group: StreamsGroup) -> DescribedStreamsGroup:
    """The group as it is now."""
    configured = group.configured
    is_ready = configured is not None and configured.is_ready
    return DescribedStreamsGroup(
        error=ErrorCode.NONE,
        state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch.epoch,
        topology=configured if is_ready else group.topology,
        members=tuple(group.members.values()),
        targets=dict(group.targets),
    )


def _heartbeat_bytes(group: StreamsGroup, request: StreamsHeartbeat) -> int:
    """How many bytes a heartbeat that joins may add; one that stays adds only what it is assigned."""
    known = group.members.get(request.member_id)
    said = StreamsMemberMetadata(
        rack_id=request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        process_id=request.process_id or "",
        endpoint=request.endpoint,
        client_tags=request.client_tags or (),
    )
    size = metadata_bytes(request.member_id, said)
    if known is not None:
        size -= metadata_bytes(known.member_id, known.metadata)
    if group.topology is None and request.topology is not None:
        size += topology_bytes(request.topology)
    return size


# --- requests of other protocols


def _refused_join(step: GroupStep, group: Group, request: Join, ticket: Ticket) -> None:
    """An empty group becomes a classic one only with a member that has no id yet."""
    assert group.streams is not None
    if group.streams.is_empty:
        step.reply(ticket, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
    else:
        step.reply(ticket, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID))


def _describe_classic(request: DescribeGroup) -> DescribedGroup:
    text = f"Group {request.group_id} is not a classic group."
    return DescribedGroup(ErrorCode.NONE, state=GroupState.DEAD.value, not_found=text)


def _not_consumer(group_id: str) -> str:
    return f"Group {group_id} is not a consumer group."


_OF_OFFSETS: Final[Mapping[type[Any], Callable[[GroupStep, Group, Any, Ticket], None]]] = {
    Join: _refused_join,
    CommitOffsets: commit_offsets,
    FetchOffsets: fetch_offsets,
    DeleteGroup: lambda step, group, request, ticket: delete_group(step, group, ticket),
    DeleteOffsets: delete_offsets,
}
_REFUSALS: Final[Mapping[type[Any], Callable[[Any], object]]] = {
    Sync: lambda request: SyncResult(ErrorCode.UNKNOWN_MEMBER_ID),
    Heartbeat: lambda request: ErrorCode.UNKNOWN_MEMBER_ID,
    Leave: lambda request: LeaveResult(
        ErrorCode.NONE, tuple((member, ErrorCode.UNKNOWN_MEMBER_ID) for member in request.members)
    ),
    DescribeGroup: _describe_classic,
    ConsumerHeartbeat: lambda request: ConsumerHeartbeatResult(NOT_FOUND, _not_consumer(request.group_id)),
    DescribeConsumerGroup: lambda request: DescribedConsumerGroup(NOT_FOUND, _not_consumer(request.group_id)),
}


def handle_other(step: GroupStep, group: Group, request: Any, ticket: Ticket) -> None:
    """A request that is not of this protocol, to a streams group."""
    if (of_offsets := _OF_OFFSETS.get(type(request))) is not None:
        of_offsets(step, group, request, ticket)
    else:
        step.reply(ticket, _REFUSALS[type(request)](request))
