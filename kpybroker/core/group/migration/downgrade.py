"""The online downgrade: a consumer group whose last member of the new protocol goes becomes a classic group.

The classic group is planned first, and takes the place of the consumer group when the record of it is in the log: at
once, so that no request meets something in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from kpybroker.core.budget import UNOWNED
from kpybroker.core.consumer_group.leaving import tombstones as consumer_tombstones
from kpybroker.core.consumer_group.members import Member, held
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.group.members import Member as ClassicMember
from kpybroker.core.group.migration.embedded import encode_assignment
from kpybroker.core.group.rebalance import prepare_rebalance, restart_session
from kpybroker.core.group.records import GroupRecord, Record, StoredGroup
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import CONSUMER_PROTOCOL_TYPE, GroupState


@dataclass(frozen=True, slots=True)
class Successor:
    """The classic group that takes the place of a consumer group when `stored` is in the log."""

    group_id: str
    stored: StoredGroup
    begin: Callable[[Group], None]


def downgrade(step: GroupStep, group: ConsumerGroup, leaving: Sequence[Member]) -> list[Record] | None:
    """The records that make the group a classic one, without the members that go; None if it stays what it is."""
    group.successor = None
    gone = {member.member_id for member in leaving}
    left = [member for member in group.members.values() if member.member_id not in gone]
    if not left or not may_downgrade(step, group, left, len(left)):
        return None
    planned = _plan(step, group, left)
    if not planned.has_common_protocol:
        return None
    reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
    return _convert(step, group, planned, reason)


def downgrade_with(
    step: GroupStep, group: ConsumerGroup, former: Member, joining: Member, group_epoch: int
) -> list[Record] | None:
    """The same where a static member of the classic protocol takes the place of the last one of the new protocol.

    Without a rebalance if the target is that of the epoch that the group would have now, and no member has any way left
    to it. (Kafka asks for the first only.)
    """
    group.successor = None
    others = [member for member in group.members.values() if member.member_id != former.member_id]
    planned = _plan(step, group, [*others, joining])
    if not planned.has_common_protocol:
        return None
    epoch = group.target_epoch.epoch
    is_settled = epoch == group_epoch and all(member.current.is_reconciled_to(epoch) for member in (*others, joining))
    stale = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
    renamed = {former.member_id: joining.member_id}
    return _convert(step, group, planned, None if is_settled else stale, renamed=renamed)


def may_downgrade(step: GroupStep, group: ConsumerGroup, left: Iterable[Member], size: int) -> bool:
    """Whether only classic members are left, and a classic group of that size is allowed."""
    if any(member.metadata.classic is None for member in left):
        return False
    if not group.shared.surroundings.limits.migration_policy.allows_downgrade:
        problem = "the online downgrade is disabled"
    elif size > step.config.group_max_size:
        problem = "its group size is greater than classic group max size"
    else:
        return True
    step.info(f"Cannot downgrade consumer group {group.group_id} to classic group because {problem}.")
    return False


def _plan(step: GroupStep, group: ConsumerGroup, members: Sequence[Member]) -> Group:
    """The classic group, stable; each member is assigned what it has, or must give up and may not have given up yet.

    Kafka assigns them their targets: a member may get what another one still reads, by a SyncGroup after a move of the
    coordinator, or by an upgrade before all have rejoined. Where all have reached their targets, it is the same.
    """
    planned = Group(group.group_id)
    members = _distinct(members)
    for member in members:
        metadata, live = member.metadata, group.live.get(member.member_id)
        assert metadata.classic is not None
        planned.add(
            ClassicMember(
                member_id=member.member_id,
                group_instance_id=metadata.instance_id,
                client_id=metadata.client_id,
                client_host=metadata.client_host,
                rebalance_timeout_ms=metadata.rebalance_timeout_ms,
                session_timeout_ms=metadata.classic.session_timeout_ms,
                protocols=metadata.classic.protocols,
                owner=UNOWNED if live is None else live.owner,
            )
        )
    if not planned.has_common_protocol:
        return planned
    planned.state, planned.state_timestamp_ms = GroupState.STABLE, step.now.wall_ms
    planned.protocol_type, planned.protocol_name = CONSUMER_PROTOCOL_TYPE, planned.select_protocol()
    planned.generation_id = group.epoch
    for member in members:
        one, has = planned.members[member.member_id], held(member.current)
        one.assignment = encode_assignment(has, group.shared.topics, one.metadata(planned.protocol_name))
    return planned


def _distinct(members: Sequence[Member]) -> list[Member]:
    """Of several members with one instance id the last: only an odd log has such."""
    by_instance = {member.metadata.instance_id: member for member in members}
    return [
        member
        for member in members
        if member.metadata.instance_id is None or by_instance[member.metadata.instance_id] is member
    ]


def _convert(
    step: GroupStep,
    group: ConsumerGroup,
    planned: Group,
    reason: str | None,
    renamed: dict[str, str] | None = None,
) -> list[Record]:
    """With a reason, the group rebalances at once."""
    stored = planned.to_stored({member_id: member.assignment for member_id, member in planned.members.items()})
    later = GroupStep(step.now, step.config, step.timers, step.counts)
    group.successor = Successor(group.group_id, stored, partial(_begin, later, planned, reason))
    step.info(f"[GroupId {group.group_id}] Converted the consumer group to a classic group. {reason or ''}".rstrip())
    return [*consumer_tombstones(group, renamed or {}), GroupRecord(group.group_id, stored)]


def _begin(step: GroupStep, planned: Group, reason: str | None, group: Group) -> None:
    """The record is in the log. No one waits in the group yet, so that there is nothing to do for the shell."""
    group.state, group.state_timestamp_ms = planned.state, planned.state_timestamp_ms
    group.protocol_type, group.protocol_name = planned.protocol_type, planned.protocol_name
    group.generation_id = planned.generation_id
    for member in planned.members.values():
        group.add(member)
        restart_session(step, group, member)
    group.subscribed_topics = group.compute_subscribed_topics()
    if reason is not None:
        prepare_rebalance(step, group, reason)
    assert not step.outcome.replies
    assert not step.outcome.writes
