"""Whether there is room for what a request adds to a group, and the response where there is none.

`needed_bytes` is an upper bound. A member that was here before and asks for no more than it has needs nothing, so that
a full budget ends no group that works. The error is COORDINATOR_NOT_AVAILABLE, since Kafka has none for "full" that
clients survive: they look for the coordinator, and try again until there is room.
"""

from __future__ import annotations

from typing import Final

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.consumer_group.members import (
    CONSUMER_GROUP_BYTES,
    ClassicMetadata,
    MemberMetadata,
    metadata_bytes,
)
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import ConsumerHeartbeat, ConsumerHeartbeatResult
from kpybroker.core.group.members import Member
from kpybroker.core.group.sizes import (
    GROUP_BYTES,
    PENDING_MEMBER_BYTES,
    STORED_MEMBER_BYTES,
    member_bytes,
    protocols_bytes,
)
from kpybroker.core.group.state import Group
from kpybroker.core.group.subscription import subscribed_topics
from kpybroker.core.group.values import CommitOffsets, CommitResult, Join, JoinResult, Sync, SyncResult
from kpybroker.core.offsets.store import offset_bytes
from kpybroker.wire.errors import ErrorCode

Growing = Join | Sync | CommitOffsets | ConsumerHeartbeat
"""Requests that may add to a group."""
GROWING: Final = (Join, Sync, CommitOffsets, ConsumerHeartbeat)

FROM_LOG_FACTOR = 4
"""The log has one of the protocols that a member supports: it may have as many again, and is still the same member."""

FULL = ErrorCode.COORDINATOR_NOT_AVAILABLE


def refusal(request: Growing) -> object:
    """The response where there is no room."""
    if isinstance(request, Join):
        return JoinResult(FULL, request.member_id)
    if isinstance(request, Sync):
        return SyncResult(FULL)
    if isinstance(request, ConsumerHeartbeat):
        return ConsumerHeartbeatResult(FULL, FULL.message)
    return CommitResult(dict.fromkeys(request.offsets, FULL))


def charged_owner(group: Group | None, request: Growing) -> Owner:
    """Who will be charged: for a member the client that joins, for the rest the owner of the group."""
    if isinstance(request, Join | ConsumerHeartbeat) or group is None or group.owner == UNOWNED:
        return request.owner
    return group.owner


def needed_bytes(group: Group | None, request: Growing) -> int:
    """How many bytes the request may add."""
    new_group = GROUP_BYTES + len(request.group_id) if group is None else 0
    if isinstance(request, Join):
        return new_group + _join_bytes(group, request)
    if isinstance(request, CommitOffsets):
        return new_group + _commit_bytes(group, request)
    if isinstance(request, ConsumerHeartbeat):
        return _heartbeat_bytes(group, request, new_group)
    if group is None or request.member_id != group.leader_id:
        return 0
    assignments = request.assignments
    size = sum(STORED_MEMBER_BYTES + len(one) + len(assignments.get(one, b"")) for one in group.members)
    return size - group.stored_bytes


def _join_bytes(group: Group | None, request: Join) -> int:
    if not request.member_id and request.require_known_member_id:
        return PENDING_MEMBER_BYTES + 2 * len(request.new_member_id)
    if group is not None and group.consumer is not None and not group.consumer.is_empty:
        return _classic_join_bytes(group.consumer, request)
    known = None if group is None else _known(group, request)
    if known is not None and _asks_for_the_same(known, request):
        return 0
    member_id = request.member_id or request.new_member_id
    names = (member_id, request.group_instance_id, request.client_id, request.client_host)
    counted = request.protocols_size
    size = member_bytes(names, protocols_bytes(request.protocols) if counted < 0 else counted)
    if known is None:
        return size
    return size - (known.size if known.owner != UNOWNED else FROM_LOG_FACTOR * known.size)


def _classic_join_bytes(group: ConsumerGroup, request: Join) -> int:
    """Of a classic member of a consumer group. A static one takes over what its former self had."""
    member_id = request.member_id or request.new_member_id
    known = group.members.get(member_id)
    if request.group_instance_id is not None:
        known = group.static_member(request.group_instance_id) or known
    classic = None if known is None else known.metadata.classic
    if classic is not None and classic.protocols == request.protocols:
        return 0
    said = MemberMetadata(
        instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=(subscribed_topics(request.protocols[0][1]) if request.protocols else None) or frozenset(),
        classic=ClassicMetadata(request.session_timeout_ms, request.protocols),
    )
    return metadata_bytes(member_id, said) - (0 if known is None else metadata_bytes(known.member_id, known.metadata))


def _asks_for_the_same(known: Member, request: Join) -> bool:
    """As most members in most rebalances."""
    return (
        known.protocols == request.protocols
        and known.client_id == request.client_id
        and known.client_host == request.client_host
    )


def _known(group: Group, request: Join) -> Member | None:
    member_id = request.member_id
    if request.group_instance_id is not None:
        member_id = group.static_members.get(request.group_instance_id, member_id)
    return group.members.get(member_id)


def _heartbeat_bytes(group: Group | None, request: ConsumerHeartbeat, new_group: int) -> int:
    """A member that says what it subscribes to, for the first time or again. What it is assigned is never refused."""
    if request.member_epoch < 0 or (request.topic_names is None and request.pattern is None):
        return 0
    consumer = None if group is None else group.consumer
    known = None if consumer is None else consumer.members.get(request.member_id)
    before = MemberMetadata() if known is None else known.metadata
    said = MemberMetadata(
        instance_id=request.instance_id or before.instance_id,
        rack_id=request.rack_id or before.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=before.topic_names if request.topic_names is None else request.topic_names,
        pattern=before.pattern if request.pattern is None else request.pattern,
        server_assignor=request.server_assignor or before.server_assignor,
    )
    member_id = request.member_id or request.new_member_id
    size = metadata_bytes(member_id, said)
    if known is not None:
        return size - metadata_bytes(member_id, before)
    return size + new_group + (CONSUMER_GROUP_BYTES if consumer is None else 0)


def _commit_bytes(group: Group | None, request: CommitOffsets) -> int:
    size = 0
    for partition, value in request.offsets.items():
        current = None if group is None else group.offsets.get(partition)
        size += offset_bytes(value) - (0 if current is None else offset_bytes(current))
    return size
