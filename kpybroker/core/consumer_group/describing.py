"""ConsumerGroupDescribe: a group with its members, what they have, and what they are to have."""

from __future__ import annotations

from collections import defaultdict

from kpybroker.core.assignors.values import TopicId
from kpybroker.core.consumer_group.members import Member
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import DescribedConsumerGroup, DescribedConsumerMember
from kpybroker.wire.errors import ErrorCode


def describe(group: ConsumerGroup) -> DescribedConsumerGroup:
    """The group as it is now."""
    names: dict[TopicId, str] = {}
    return DescribedConsumerGroup(
        error=ErrorCode.NONE,
        state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch.epoch,
        assignor=group.preferred_assignor(),
        members=tuple(_member(group, member, names) for member in group.members.values()),
        topic_names=names,
    )


def _member(group: ConsumerGroup, member: Member, names: dict[TopicId, str]) -> DescribedConsumerMember:
    has: defaultdict[TopicId, set[int]] = defaultdict(set)
    for epochs in (member.current.assigned, member.current.pending_revocation):
        for topic_id, partitions in epochs.items():
            has[topic_id].update(partitions)
    target = group.targets.get(member.member_id, {})
    for topic_id in (*has, *target):
        if topic_id not in names and (topic := group.shared.topics.by_id(topic_id)) is not None:
            names[topic_id] = topic.name
    return DescribedConsumerMember(
        member,
        {topic_id: tuple(sorted(partitions)) for topic_id, partitions in has.items() if topic_id in names},
        {topic_id: tuple(sorted(partitions)) for topic_id, partitions in target.items() if topic_id in names},
    )
