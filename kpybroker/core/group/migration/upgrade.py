"""The online upgrade: the first member of the new protocol makes a classic group with members a consumer group.

Its members stay, with what the last generation assigned them, in an epoch that is the generation. Those that wait in a
JoinGroup or SyncGroup are asked to rejoin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kpybroker.core.assignors.values import Partitions
from kpybroker.core.consumer_group.members import ClassicMetadata, CurrentAssignment, Member, MemberMetadata
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.shared import ConsumerShared
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.group.members import Member as FormerMember
from kpybroker.core.group.migration.embedded import Subscription, parse_assignment, parse_subscription
from kpybroker.core.group.rebalance import respond_to_join, respond_to_sync
from kpybroker.core.group.records import GroupRecord, Record
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import CONSUMER_PROTOCOL_TYPE, GroupState, JoinResult, SyncResult
from kpybroker.core.modern_group.records import FIRST_EPOCH, GroupEpoch, TargetEpoch
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError

NO_HASH: Final = 0
"""That of no topics: the joining member finds another one, and takes the group to its next epoch."""


def upgraded(step: GroupStep, group: Group, shared: ConsumerShared) -> tuple[ConsumerGroup, list[Record]]:
    """The consumer group that a classic one will be, with sessions that run, and the records that make it one.

    Raises GROUP_ID_NOT_FOUND where the group stays what it is.
    """
    problem = _problem(group, shared)
    if problem is not None:
        raise _refused(group, problem)
    records = _records(group, shared)
    consumer = ConsumerGroup(group.group_id, shared)
    for member in group.members.values():
        consumer.live_member(member.member_id, member.owner)
    for record in records:
        consumer.replay(record)
    for live in consumer.live.values():
        consumer.start_session(live, step.now.monotonic, consumer.members[live.member_id].metadata.session_timeout_ms)
    step.info(f"[GroupId {group.group_id}] Converted the classic group to a consumer group.")
    return consumer, [GroupRecord(group.group_id, None), *records]


def end_rebalance(step: GroupStep, group: Group) -> None:
    """The members that wait for the present rebalance have to rejoin for the next one."""
    for member_id in list(group.join_tickets):
        respond_to_join(step, group, member_id, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member_id))
    for member_id in list(group.sync_tickets):
        respond_to_sync(step, group, member_id, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))


def _problem(group: Group, shared: ConsumerShared) -> str | None:
    limits = shared.surroundings.limits
    if not limits.migration_policy.allows_upgrade:
        return "online upgrade is disabled"
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or not group.members:
        return "the group does not use the consumer embedded protocol"
    if len(group.members) > limits.max_size:
        return "the group size exceeds the consumer group maximum size"
    if not group.has_common_protocol:
        return "the embedded consumer protocol is malformed"
    return None


def _refused(group: Group, problem: str) -> KafkaError:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group because {problem}."
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)


def _records(group: Group, shared: ConsumerShared) -> list[ConsumerRecord]:
    """All of the group, in the order that Kafka writes."""
    # In the first rebalance there is no generation yet, nor a protocol.
    epoch = max(group.generation_id, FIRST_EPOCH)
    is_common = group.protocol_name is not None and group.protocol_counts[group.protocol_name] == len(group.members)
    protocol = (group.protocol_name if is_common else None) or group.select_protocol()
    parsed = [_parse(group, member, protocol, shared) for member in group.members.values()]
    _add_claims(parsed)
    members = [(_member(one, epoch), one.assigned) for one in parsed]
    names = frozenset[str]().union(*(member.metadata.topic_names for member, _ in members))
    # A rebalance that was not complete is still to come, and a static member that joins may change nothing else.
    metadata_hash = shared.metadata_hash(names) if group.state is GroupState.STABLE else NO_HASH
    group_id = group.group_id
    return [
        *(MemberRecord(group_id, member.member_id, member.metadata) for member, _ in members),
        GroupEpochRecord(group_id, GroupEpoch(epoch, metadata_hash)),
        *(TargetRecord(group_id, member.member_id, target) for member, target in members),
        TargetEpochRecord(group_id, TargetEpoch(epoch)),
        *(CurrentRecord(group_id, member.member_id, member.current) for member, _ in members),
    ]


@dataclass(slots=True)
class _Parsed:
    """A classic member with what its bytes say."""

    former: FormerMember
    subscription: Subscription
    assigned: Partitions


def _parse(group: Group, former: FormerMember, protocol: str, shared: ConsumerShared) -> _Parsed:
    try:
        assigned, has_user_data = parse_assignment(former.assignment, shared.topics)
        subscription = parse_subscription(former.metadata(protocol), shared.topics)
    except ProtocolError as error:
        raise _refused(group, "the embedded consumer protocol is malformed") from error
    if has_user_data:
        advice = "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade"
        raise _refused(group, f"an unsupported custom assignor is in use. {advice}")
    return _Parsed(former, subscription, assigned)


def _add_claims(parsed: Iterable[_Parsed]) -> None:
    """What cooperative members said that they read from, and no one is assigned, they still have.

    One rebalance that interrupts another drops all assignments; and a member may not have its latest one yet. Kafka
    takes such partitions for free, and may give them to another member at once. Those that a member has no more, it
    does not name when it rejoins.
    """
    held = {(topic_id, index) for one in parsed for topic_id, indexes in one.assigned.items() for index in indexes}
    for one in sorted(parsed, key=lambda one: one.subscription.generation_id, reverse=True):
        assigned = dict(one.assigned)
        for topic_id, indexes in one.subscription.owned.items():
            if claimed := frozenset(index for index in indexes if (topic_id, index) not in held):
                assigned[topic_id] = assigned.get(topic_id, frozenset()) | claimed
                held |= {(topic_id, index) for index in claimed}
        one.assigned = assigned


def _member(parsed: _Parsed, epoch: int) -> Member:
    former, subscription = parsed.former, parsed.subscription
    metadata = MemberMetadata(
        instance_id=former.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=former.client_id,
        client_host=former.client_host,
        topic_names=subscription.topic_names,
        rebalance_timeout_ms=former.rebalance_timeout_ms,
        classic=ClassicMetadata(former.session_timeout_ms, former.protocols),
    )
    assigned = {topic_id: dict.fromkeys(sorted(indexes), epoch) for topic_id, indexes in parsed.assigned.items()}
    current = CurrentAssignment(member_epoch=epoch, previous_member_epoch=epoch, assigned=assigned)
    return Member(former.member_id, metadata, current)
