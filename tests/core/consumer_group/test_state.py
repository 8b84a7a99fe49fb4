"""A consumer group from its log: any mix of records, without an error; the later one counts; nothing is left behind."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.budget import Owner, StateBudget
from kpybroker.core.consumer_group.leaving import tombstones as consumer_tombstones
from kpybroker.core.consumer_group.members import GONE, CurrentAssignment, MemberMetadata
from kpybroker.core.consumer_group.records import (
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.shared import ConsumerShared
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import (
    ConsumerGroupState,
    ConsumerHeartbeat,
    ResolvedPattern,
    Surroundings,
)
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import GroupRecord, Record, StoredGroup
from kpybroker.core.group.step import GroupOutcome
from kpybroker.core.group.values import GroupConfig
from kpybroker.core.machine import Now
from kpybroker.core.modern_group.records import NO_TARGET, GroupEpoch, TargetEpoch
from kpybroker.core.modern_group.timers import LiveMember
from kpybroker.wire.yield_budget import WorkBudget
from tests.core.consumer_group.assignors import contiguous
from tests.core.group.durable import consumer_state
from tests.core.group.logs.random_records import ALL_RECORDS
from tests.support.examples import examples

TOPIC = b"1" * 16
NOW = Now(1_000, 1.0)


def new_group() -> ConsumerGroup:
    return ConsumerGroup("g", ConsumerShared(Surroundings(), StateBudget()))


def machine_of(records: list[Record]) -> GroupMachine:
    machine = GroupMachine(GroupConfig(), None, Surroundings(assignors={"contiguous": contiguous}))
    for offset, record in enumerate(records):
        machine.replay(record, offset)
    return machine


def derived(group: ConsumerGroup) -> object:
    """What follows from the records, counted again."""
    members = group.members.values()
    holders: dict[bytes, Counter[int]] = {}
    for member in members:
        for epochs in (member.current.assigned, member.current.pending_revocation):
            for topic_id, partitions in epochs.items():
                for partition in partitions:
                    holders.setdefault(topic_id, Counter())[partition] += 1
    topics = Counter(name for member in members for name in member.metadata.topic_names)
    topics.update(name for resolved in group.patterns.values() for name in resolved.topic_names)
    return (
        holders,
        topics,
        Counter(member.metadata.pattern for member in members if member.metadata.pattern),
        Counter(one.metadata.server_assignor for one in members if one.metadata.server_assignor is not None),
    )


@given(st.lists(ALL_RECORDS, max_size=30))
@settings(max_examples=examples(150))
def test_any_mix_of_records_is_replayed_and_counted(records: list[Record]) -> None:
    machine = machine_of(records)
    subscribed: dict[str, set[str]] = {}
    for group_id, group in machine.groups.items():
        consumer = group.consumer
        if consumer is None:
            continue
        assert group.stored is None
        counted = (consumer.holders, consumer._topic_counts, consumer.pattern_counts, consumer.assignors)
        assert counted == derived(consumer)
        for instance_id, member_id in consumer.static_members.items():
            assert consumer.members[member_id].metadata.instance_id == instance_id
        for name in consumer._topic_counts:
            subscribed.setdefault(name, set()).add(group_id)
    assert machine._modern.consumers.shared.groups_by_topic == subscribed


@given(st.lists(ALL_RECORDS, max_size=30))
@settings(max_examples=examples(100))
def test_what_any_mix_left_can_be_served_and_deleted(records: list[Record]) -> None:
    machine = machine_of(records)
    run_to_end(machine.activate(machine.ids(), NOW, WorkBudget()))
    request = ConsumerHeartbeat("g", "new", 0, topic_names=frozenset("t"), rebalance_timeout_ms=5, owned={})
    group = machine.groups.get("g")
    is_classic = group is not None and group.consumer is None and not group.is_empty
    append(machine, machine.handle(request, "ticket", NOW))
    group = machine.groups.get("g")
    assert is_classic or (group is not None and group.consumer is not None and "new" in group.consumer.members)
    if group is not None and group.consumer is not None:
        for record in consumer_tombstones(group.consumer):
            machine.replay(record, 1_000)
        assert group.consumer is None
        assert "g" not in machine.groups or group.offsets


def append(machine: GroupMachine, outcome: GroupOutcome) -> None:
    """As a coordinator with one replica does it."""
    for write in outcome.writes:
        for offset, record in enumerate(write.records, 100):
            machine.replay(record, offset)


def test_the_later_kind_counts() -> None:
    """A Kafka 3.9 does not know consumer groups, and may have served the group in between; or it was converted."""
    consumer: list[Record] = [MemberRecord("g", "m", MemberMetadata()), GroupEpochRecord("g", GroupEpoch(3))]
    classic: list[Record] = [GroupRecord("g", StoredGroup("consumer", 2, None, None, 5, ()))]
    group = machine_of([*consumer, *classic]).groups["g"]
    assert group.consumer is None
    assert group.stored is not None
    group = machine_of([*classic, *consumer]).groups["g"]
    assert group.stored is None
    assert group.consumer is not None
    assert group.consumer.epoch == 3
    assert "g" not in machine_of([*consumer, GroupRecord("g", None)]).groups


def test_tombstones_of_what_is_not_there_are_passed_over() -> None:
    tombstones: list[Record] = [
        CurrentRecord("g", "m", None),
        TargetRecord("g", "m", None),
        MemberRecord("g", "m", None),
        TargetEpochRecord("g", None),
        PatternRecord("g", "t.*", None),
        GroupEpochRecord("g", None),
    ]
    assert not machine_of(tombstones).groups


def test_after_compaction_an_assignment_may_come_before_its_member() -> None:
    group = new_group()
    group.replay(CurrentRecord("g", "m", CurrentAssignment(3, 2, assigned={TOPIC: {0: 3}})))
    group.replay(TargetRecord("g", "m", {TOPIC: frozenset((0,))}))
    group.replay(MemberRecord("g", "m", MemberMetadata(instance_id="i", topic_names=frozenset("t"))))
    member = group.static_member("i")
    assert member is not None
    assert member.current.member_epoch == 3
    assert not group.is_free(TOPIC, 0)
    group.replay(CurrentRecord("g", "m", None))
    assert group.members["m"].current == GONE
    assert group.is_free(TOPIC, 0)


def test_a_member_goes_with_its_own_tombstone_even_without_the_others() -> None:
    group = new_group()
    empty = consumer_state(group)
    group.replay(CurrentRecord("g", "m", CurrentAssignment(3, 2, assigned={TOPIC: {0: 3}})))
    group.replay(TargetRecord("g", "m", {TOPIC: frozenset((0,))}))
    group.replay(
        MemberRecord("g", "m", MemberMetadata("i", topic_names=frozenset("t"), pattern="u", server_assignor="s"))
    )
    group.replay(MemberRecord("g", "m", None))
    assert consumer_state(group) == empty


def test_states() -> None:
    group = new_group()
    states = [group.state]
    group.replay(MemberRecord("g", "m", MemberMetadata()))
    group.replay(GroupEpochRecord("g", GroupEpoch(2)))
    states.append(group.state)
    group.replay(TargetEpochRecord("g", TargetEpoch(2)))
    states.append(group.state)
    group.replay(CurrentRecord("g", "m", CurrentAssignment(2, 1)))
    states.append(group.state)
    group.replay(TargetEpochRecord("g", None))
    assert group.target_epoch == NO_TARGET
    assert states == [
        ConsumerGroupState.EMPTY,
        ConsumerGroupState.ASSIGNING,
        ConsumerGroupState.RECONCILING,
        ConsumerGroupState.STABLE,
    ]


def test_topics_of_a_group_as_if_members_came_and_went() -> None:
    group = new_group()
    both = MemberMetadata(topic_names=frozenset("t"), pattern="u.*")
    group.replay(MemberRecord("g", "m", both))
    group.replay(PatternRecord("g", "u.*", ResolvedPattern(frozenset(("u1", "t")), 1, 1)))
    assert group.subscribed_topics() == {"t", "u1"}
    assert group.subscribed_topics([both]) == frozenset()
    assert group.subscribed_topics([both], MemberMetadata(pattern="u.*")) == {"t", "u1"}
    assert group.subscribed_topics([both], MemberMetadata(topic_names=frozenset("v"))) == {"v"}
    assert group.is_subscribed_to("u1")
    assert not group.is_subscribed_to("v")


def test_a_member_is_charged_for_what_it_has() -> None:
    budget = StateBudget()
    group = ConsumerGroup("g", ConsumerShared(Surroundings(), budget))
    owner = Owner(address="10.0.0.1")
    live: LiveMember = group.live_member("m", owner)
    group.replay(MemberRecord("g", "m", MemberMetadata()))
    empty = budget.held(owner)
    assert empty > 0
    group.replay(CurrentRecord("g", "m", CurrentAssignment(2, 1, assigned={TOPIC: {0: 2, 1: 2}})))
    assert budget.held(owner) > empty
    group.replay(MemberRecord("g", "m", None))
    assert budget.held(owner) == 0
    assert live.is_gone
