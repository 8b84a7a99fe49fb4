"""What clients ask about groups whose protocol or feature level changes, as plays: each request with its version.

A play is a generator that is sent the response to each request. It is played to a broker here, and was played to Kafka
4.3.1; `shown` has of a response what both must agree on. Groups `g`, `e` and `n`, and a topic `t` with two partitions,
are there to be used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from kpybroker.wire.codec import encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kpybroker.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kpybroker.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kpybroker.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kpybroker.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kpybroker.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kpybroker.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

Step = tuple[Any, int]
"""A request and its version."""
Play = Generator[Step, Any, None]

GROUPS = ("g", "e", "n")
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
SUBSCRIPTION = b"\0\1" + encode(ConsumerProtocolSubscription(topics=["t"]), 1)
ASSIGNMENT = b"\0\0\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
"""Both partitions of `t`."""


# --- requests


def beat(group_id: str, member_id: str, epoch: int) -> Step:
    """A heartbeat that says nothing new; -1 leaves."""
    return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch), 1


def enter(group_id: str, member_id: str) -> Step:
    """The first heartbeat."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        topic_partitions=[],
        subscribed_topic_names=["t"],
    )
    return request, 1


def join(group_id: str, member_id: str = "") -> Step:
    """JoinGroup of the classic protocol."""
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=5_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )
    return request, 9


def sync(group_id: str, member_id: str, generation_id: int, *, leads: bool) -> Step:
    """SyncGroup; a leader that is alone assigns itself everything."""
    own = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=ASSIGNMENT)
    request = SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[own] if leads else [],
    )
    return request, 5


def classic_beat(group_id: str, member_id: str, generation_id: int) -> Step:
    """Heartbeat of the classic protocol."""
    return HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=generation_id), 4


def leave(group_id: str, member_id: str) -> Step:
    """LeaveGroup, which serves both protocols."""
    return LeaveGroupRequest(group_id=group_id, members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)]), 5


def commit(group_id: str, member_id: str, epoch: int, offset: int, version: int = 9) -> Step:
    """OffsetCommit for the first partition."""
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    return request, version


def fetch(group_id: str, member_id: str | None = None, epoch: int = -1) -> Step:
    """OffsetFetch for the first partition."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
    )
    return OffsetFetchRequest(groups=[group]), 9


def finalize(level: int, upgrade_type: int, *, validate_only: bool = False) -> Step:
    """UpdateFeatures for `group.version`."""
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="group.version", max_version_level=level, upgrade_type=upgrade_type
    )
    return UpdateFeaturesRequest(feature_updates=[update], timeout_ms=60_000, validate_only=validate_only), 2


def listed() -> Step:
    """ListGroups with types."""
    return ListGroupsRequest(), 5


# --- responses

_SHOWN: dict[type[Any], Callable[[Any], Any]] = {
    ConsumerGroupHeartbeatResponse: lambda r: [
        r.error_code,
        # What is not served has a text here, and none in Kafka.
        None if r.error_code == ErrorCode.UNSUPPORTED_VERSION else r.error_message,
        r.member_epoch,
        r.heartbeat_interval_ms,
    ],
    ConsumerGroupDescribeResponse: lambda r: [
        [g.error_code, g.error_message, g.group_state, g.group_epoch, len(g.members)] for g in r.groups
    ],
    UpdateFeaturesResponse: lambda r: [r.error_code, r.error_message],
    ListGroupsResponse: lambda r: sorted([g.group_id, g.group_state, g.group_type, g.protocol_type] for g in r.groups),
    DescribeGroupsResponse: lambda r: [
        [g.error_code, g.group_state, g.protocol_type, len(g.members)] for g in r.groups
    ],
    OffsetFetchResponse: lambda r: [
        [g.error_code, [[p.error_code, p.committed_offset] for topic in g.topics for p in topic.partitions]]
        for g in r.groups
    ],
    OffsetCommitResponse: lambda r: [p.error_code for topic in r.topics for p in topic.partitions],
    JoinGroupResponse: lambda r: [r.error_code, r.generation_id, r.leader == r.member_id, len(r.members)],
    SyncGroupResponse: lambda r: [r.error_code, len(r.assignment)],
    LeaveGroupResponse: lambda r: [r.error_code, [member.error_code for member in r.members]],
    HeartbeatResponse: lambda r: r.error_code,
    DeleteGroupsResponse: lambda r: [[result.group_id, result.error_code] for result in r.results],
}


def shown(response: Any) -> Any:
    """What of a response is the same for every broker."""
    return _SHOWN[type(response)](response)


# --- plays


def joined(group_id: str) -> Generator[Step, Any, tuple[str, int]]:
    """A classic member joins; returns its id and generation."""
    response = yield join(group_id)
    response = yield join(group_id, response.member_id)
    return response.member_id, response.generation_id


def downgrade() -> Play:
    """`group.version` falls while there are consumer groups, one with a member and one without, and rises again."""
    yield enter("g", "m1")
    yield enter("e", "e1")
    yield commit("g", "m1", 2, 7)
    yield commit("e", "e1", 2, 8)
    yield beat("e", "e1", -1)
    yield listed()
    yield finalize(0, SAFE_DOWNGRADE, validate_only=True)
    yield finalize(0, UPGRADE)
    yield finalize(0, SAFE_DOWNGRADE)
    yield from _members_of_a_lost_protocol()
    yield from _classic_members_of_what_is_left()
    yield finalize(1, UPGRADE)
    yield beat("g", "m1", 2)
    yield enter("g", "m1")
    yield enter("e", "e1")
    yield ConsumerGroupDescribeRequest(group_ids=["e"]), 1
    yield fetch("g")
    yield fetch("e")
    yield finalize(0, UNSAFE_DOWNGRADE)
    yield DeleteGroupsRequest(groups_names=["g", "e"]), 2
    yield finalize(1, UPGRADE)


def _members_of_a_lost_protocol() -> Play:
    yield beat("g", "m1", 2)
    yield enter("n", "n1")
    yield beat("g", "m1", -1)
    yield ConsumerGroupDescribeRequest(group_ids=["g", "e", "none"]), 1
    yield listed()
    yield ListGroupsRequest(types_filter=["consumer"]), 5
    yield DescribeGroupsRequest(groups=["g", "e"]), 5
    yield fetch("g")
    yield fetch("g", "m1", 2)
    yield fetch("g", "m1", 1)
    yield commit("g", "m1", 2, 9)
    yield commit("g", "m1", 2, 9, version=8)
    yield commit("g", "", -1, 10)
    yield commit("e", "", -1, 10)


def _classic_members_of_what_is_left() -> Play:
    member_id, generation_id = yield from joined("g")
    yield listed()
    yield classic_beat("g", member_id, generation_id)
    yield sync("g", member_id, generation_id, leads=False)
    yield leave("g", member_id)
    yield DeleteGroupsRequest(groups_names=["g"]), 2
    member_id, _ = yield from joined("e")
    yield listed()
    yield leave("e", member_id)
    yield listed()
    yield leave("g", "m1")
    yield listed()


def migration() -> Play:
    """Both ways of a group between the protocols, with members in it and without: what a policy allows."""
    member_id, generation_id = yield from joined("g")
    yield sync("g", member_id, generation_id, leads=True)
    yield commit("g", member_id, generation_id, 7)
    yield enter("g", "m1")
    yield classic_beat("g", member_id, generation_id)
    yield listed()
    yield leave("g", member_id)
    yield enter("g", "m1")
    yield listed()
    yield fetch("g")
    yield enter("n", "n1")
    classic = yield join("n")
    yield join("n", classic.member_id)
    yield beat("n", "n1", -1)
    yield listed()
    yield leave("n", classic.member_id)
    yield listed()
    yield from joined("n")
    yield listed()
    yield enter("e", "e1")
    yield beat("e", "e1", -1)
    yield from joined("e")
    yield listed()
