"""How members go: they leave, or their session ends. The group goes to its next epoch, and others get what they had."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from kpybroker.core.machine import Step
from kpybroker.core.modern_group.leaving import Due, fence_members, group_tombstones, member_tombstones, session_reason
from kpybroker.core.modern_group.records import GroupEpoch, RecordClasses
from kpybroker.core.modern_group.requests import member_or_raise
from kpybroker.core.share_group.members import ShareMember
from kpybroker.core.share_group.records import (
    ShareCurrentRecord,
    ShareGroupEpochRecord,
    ShareMemberRecord,
    ShareRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitionsRecord,
)
from kpybroker.core.share_group.state import ShareGroup
from kpybroker.core.share_group.values import ShareHeartbeat

CLASSES: Final = RecordClasses(ShareMemberRecord, ShareCurrentRecord, ShareTargetRecord, ShareTargetEpochRecord)


def leave(step: Step[Any], group: ShareGroup, request: ShareHeartbeat) -> list[ShareRecord]:
    """The records of a heartbeat with epoch -1. Raises UNKNOWN_MEMBER_ID."""
    member = member_or_raise(group, request.member_id)
    step.info(f"[GroupId {group.group_id}] Member {member.member_id} left the share group.")
    return fence(group, [member])


def fence(group: ShareGroup, members: Sequence[ShareMember]) -> list[ShareRecord]:
    """Remove members; the group goes to its next epoch."""
    left = group.subscribed_topics([member.metadata for member in members])
    epoch = GroupEpoch(group.next_epoch, group.shared.metadata_hash(left))
    tombstones = member_tombstones(CLASSES, group.group_id, [member.member_id for member in members])
    return [*tombstones, ShareGroupEpochRecord(group.group_id, epoch)]


def tombstones(group: ShareGroup) -> list[ShareRecord]:
    """What removes the whole group."""
    group_id = group.group_id
    last = [StatePartitionsRecord(group_id, None), ShareGroupEpochRecord(group_id, None)]
    return group_tombstones(CLASSES, group_id, group.members, group.targets, last)


def on_timers(step: Step[Any], group: ShareGroup, due: Due) -> None:
    """Sessions have ended: fence their members."""
    fence_members(step, group, due, lambda kind, live, member: session_reason(kind), partial(fence, group))
