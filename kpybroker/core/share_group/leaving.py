"""How members go: they leave, or their session ends. The group goes to its next epoch, and others get what they had."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kpybroker.core.consumer_group.leaving import FENCED_AT_ONCE, RETRY_S
from kpybroker.core.consumer_group.records import GroupEpoch
from kpybroker.core.consumer_group.timers import LiveMember, TimerKind
from kpybroker.core.machine import Step
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
from kpybroker.wire.errors import ErrorCode, KafkaError


def member_or_raise(group: ShareGroup, member_id: str) -> ShareMember:
    """The member. Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def leave(step: Step[Any], group: ShareGroup, member_id: str) -> list[ShareRecord]:
    """The records of a heartbeat with epoch -1. Raises UNKNOWN_MEMBER_ID."""
    member = member_or_raise(group, member_id)
    step.info(f"[GroupId {group.group_id}] Member {member_id} left the share group.")
    return fence(group, [member])


def fence(group: ShareGroup, members: Sequence[ShareMember]) -> list[ShareRecord]:
    """Remove members; the group goes to its next epoch. Kafka cannot load another order."""
    group_id = group.group_id
    records: list[ShareRecord] = []
    for member in members:
        records += [
            ShareCurrentRecord(group_id, member.member_id, None),
            ShareTargetRecord(group_id, member.member_id, None),
            ShareMemberRecord(group_id, member.member_id, None),
        ]
    left = group.subscribed_topics([member.metadata for member in members])
    epoch = GroupEpoch(group.next_epoch, group.shared.metadata_hash(left))
    return [*records, ShareGroupEpochRecord(group_id, epoch)]


def group_tombstones(group: ShareGroup) -> list[ShareRecord]:
    """What removes the whole group; Kafka cannot load another order."""
    group_id = group.group_id
    return [
        *(ShareCurrentRecord(group_id, member_id, None) for member_id in group.members),
        *(
            ShareTargetRecord(group_id, member_id, None)
            for member_id in dict.fromkeys([*group.members, *group.targets])
        ),
        ShareTargetEpochRecord(group_id, None),
        *(ShareMemberRecord(group_id, member_id, None) for member_id in group.members),
        StatePartitionsRecord(group_id, None),
        ShareGroupEpochRecord(group_id, None),
    ]


def on_sessions_ended(step: Step[Any], group: ShareGroup, due: Sequence[LiveMember]) -> None:
    """Fence their members, in one batch; above `FENCED_AT_ONCE`, the others are due again at once: in the next one."""
    ended = [live for live in due if live.member_id in group.members]
    for live in ended[FENCED_AT_ONCE:]:
        group.shared.timers.start(TimerKind.SESSION, live, step.now.monotonic)
    fenced = ended[:FENCED_AT_ONCE]
    for live in fenced:
        step.info(
            f"[GroupId {group.group_id}] Member {live.member_id} fenced from the group "
            "because the member session expired."
        )
    if fenced:
        records = fence(group, [group.members[live.member_id] for live in fenced])
        step.write(records, partial(_on_fenced, group, fenced))


def _on_fenced(group: ShareGroup, fenced: Sequence[LiveMember], step: Step[Any], error: ErrorCode) -> None:
    for live in fenced if error is not ErrorCode.NONE else ():
        if group.live.get(live.member_id) is live:
            group.shared.timers.start(TimerKind.SESSION, live, step.now.monotonic + RETRY_S)
