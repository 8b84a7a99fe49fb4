"""From what a member has towards its target: one step, as a pure function (Kafka's CurrentAssignmentBuilder).

    STABLE ---------> UNREVOKED_PARTITIONS   it owns what is not in its target: it stays in its epoch, and gives that
      ^  ^                  |                up first. It has done so when it no longer reports those partitions.
      |  +------------------+
      +--> UNRELEASED_PARTITIONS             it is in the epoch of the target, and gets each partition that others
                                             still own when they have released it.

So no partition has two owners: a member gets one only when it is free, and it is free only when its last owner has
shown that it gave it up, or is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.consumer_group.members import CurrentAssignment, MemberState, PartitionEpochs
from kpybroker.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to go: the target assignment's epoch, and the member's part of it.

    `subscribed` has the topics that the member wants now, which may be fewer than when the target was computed.
    """

    epoch: int
    target: Partitions
    subscribed: Collection[TopicId]


IsFree = Callable[[TopicId, int], bool]
"""Whether no member has a partition, neither to use nor to give up."""


def reconcile(
    current: CurrentAssignment,
    goal: Goal,
    is_free: IsFree,
    owned: Partitions | None,
    *,
    has_subscription_changed: bool,
) -> CurrentAssignment:
    """The member's next assignment, or the same one. `owned` is what it reported; None where it did not.

    Raises FENCED_MEMBER_EPOCH for a member in an unknown state that may own partitions.
    """
    match current.state:
        case MemberState.STABLE:
            if current.member_epoch != goal.epoch:
                return _next(current, current.member_epoch, goal, is_free, owned)
            return _drop_unsubscribed(current, goal, owned) if has_subscription_changed else current
        case MemberState.UNREVOKED_PARTITIONS:
            if not _owns(owned, current.pending_revocation):
                return _next(current, current.member_epoch, goal, is_free, owned)
            return _drop_unsubscribed(current, goal, owned) if has_subscription_changed else current
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(current, current.member_epoch, goal, is_free, owned)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin.",
                )
            return _next(current, goal.epoch, goal, is_free, owned)


def _owns(owned: Partitions | None, revoked: PartitionEpochs) -> bool:
    """Whether the member still owns some of these; it does as long as it has not said what it owns."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(revoked.get(topic_id, ())) for topic_id, partitions in owned.items())


def _next(
    current: CurrentAssignment, epoch: int, goal: Goal, is_free: IsFree, owned: Partitions | None
) -> CurrentAssignment:
    """Towards the target; `epoch` is the one that the member stays in while it must give up partitions."""
    kept: dict[TopicId, dict[int, int]] = {}
    revoked: dict[TopicId, dict[int, int]] = {}
    added: dict[TopicId, list[int]] = {}
    waits = False
    for topic_id in {**goal.target, **current.assigned}:
        target = goal.target.get(topic_id, frozenset()) if topic_id in goal.subscribed else frozenset()
        has = current.assigned.get(topic_id, {})
        _put(kept, topic_id, {one: at for one, at in has.items() if one in target})
        _put(revoked, topic_id, {one: at for one, at in has.items() if one not in target})
        missing = target - has.keys()
        # What the member itself was to give up may come back to it: no one else can have it.
        own = current.pending_revocation.get(topic_id, {})
        if free := [one for one in missing if one in own or is_free(topic_id, one)]:
            added[topic_id] = free
        waits = waits or len(free) < len(missing)
    if revoked and _owns(owned, revoked):
        return CurrentAssignment(epoch, current.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    for topic_id, partitions in added.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, goal.epoch))
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return CurrentAssignment(goal.epoch, current.member_epoch, state, kept, {})


def _put(into: dict[TopicId, dict[int, int]], topic_id: TopicId, partitions: dict[int, int]) -> None:
    if partitions:
        into[topic_id] = partitions


def _drop_unsubscribed(current: CurrentAssignment, goal: Goal, owned: Partitions | None) -> CurrentAssignment:
    """Topics that the member does not want any more leave its assignment before there is a new target."""
    dropped = {topic_id: has for topic_id, has in current.assigned.items() if topic_id not in goal.subscribed}
    wants_nothing = not goal.subscribed and not current.pending_revocation
    if not dropped and not wants_nothing:
        return current
    kept = {topic_id: has for topic_id, has in current.assigned.items() if topic_id not in dropped}
    revoked = dict(current.pending_revocation)
    for topic_id, has in dropped.items():
        revoked[topic_id] = {**revoked.get(topic_id, {}), **has}
    if revoked and _owns(owned, revoked):
        return CurrentAssignment(
            current.member_epoch, current.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked
        )
    return replace(current, previous_member_epoch=current.member_epoch, assigned=kept)
