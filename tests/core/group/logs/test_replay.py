"""Any log is loaded, never with an error; its groups are those of Kafka 4.3.1, and members can go on in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from kpybroker.core.consumer_group.members import (
    GONE,
    NEW_ASSIGNMENT,
    NEW_METADATA,
    ClassicMetadata,
    CurrentAssignment,
    Member,
    MemberMetadata,
    MemberState,
    without_epochs,
)
from kpybroker.core.consumer_group.records import (
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import CONSUMER_GROUP_TYPE, ConsumerHeartbeat, DescribeConsumerGroup
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import (
    GroupRecord,
    Record,
    RecordVersions,
    StoredGroup,
    StoredMember,
    decode_record,
    encode_record,
)
from kpybroker.core.group.state import Group
from kpybroker.core.group.values import DeleteGroup, DescribeGroup, FetchOffsets, GroupConfig, Heartbeat, Sync
from kpybroker.core.modern_group.members import LEAVE_GROUP_EPOCH
from kpybroker.core.modern_group.records import GroupEpoch
from kpybroker.core.offsets.store import CommittedOffset
from kpybroker.wire.errors import ErrorCode, ProtocolError
from tests.core.consumer_group.clients import GROUP, Client
from tests.core.consumer_group.harness import ConsumerHarness, classic_subscription
from tests.core.group.harness import LogEntry, charged_bytes, durable_state, join_of, replayed
from tests.core.group.logs.kafka_replay import GONE as KAFKA_GONE
from tests.core.group.logs.kafka_replay import KafkasGroup, KafkasGroups, KafkasMember
from tests.core.group.logs.mixed_logs import MIXED_LOGS
from tests.support.examples import examples

LONGEST_SESSION_MS = 2**31 + 60_000
ROUNDS_MAX = 12


def loaded(log: Iterable[LogEntry]) -> GroupMachine:
    """As a coordinator loads it: what cannot be read is passed over."""
    machine = GroupMachine(GroupConfig())
    for offset, entry in enumerate(log):
        if len(entry) == 2:
            machine.replay_marker(*entry)
            continue
        key, value, producer_id = entry
        try:
            record = decode_record(key, value)
        except ProtocolError:
            continue
        if record is not None:
            machine.replay(record, offset, producer_id)
    return machine


def loaded_by_kafka(log: Iterable[LogEntry]) -> KafkasGroups:
    groups = KafkasGroups()
    for offset, entry in enumerate(log):
        if len(entry) == 2:
            groups.marker(*entry)
        else:
            groups.replay(offset, *entry)
    return groups


# --- ours and Kafka's in the same words


def our_offset(offset: CommittedOffset) -> object:
    value = offset.value
    expires = -1 if value.expire_timestamp_ms is None else value.expire_timestamp_ms
    return (
        offset.record_offset,
        (value.offset, value.leader_epoch, value.metadata, value.commit_timestamp_ms, expires, value.topic_id),
    )


def kafkas_offset(offset: tuple[int, Any]) -> object:
    at, value = offset
    said = (value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp)
    return at, (*said, bytes(value.topic_id))


def our_generation(stored: StoredGroup) -> object:
    members = [
        (
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.rebalance_timeout_ms,
            one.session_timeout_ms,
            one.subscription,
            one.assignment,
        )
        for one in stored.members
    ]
    said = (stored.protocol_type, stored.generation_id, stored.protocol_name, stored.leader)
    return *said, stored.state_timestamp_ms, members


def kafkas_generation(value: Any) -> object:
    members = [
        (
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            one.session_timeout if one.rebalance_timeout == -1 else one.rebalance_timeout,
            one.session_timeout,
            bytes(one.subscription),
            bytes(one.assignment),
        )
        for one in value.members
    ]
    return value.protocol_type, value.generation, value.protocol, value.leader, value.current_state_timestamp, members


def our_member(member: Member) -> object:
    said = member.metadata
    metadata: object = None
    if said != NEW_METADATA:
        classic = None if said.classic is None else (said.classic.session_timeout_ms, said.classic.protocols)
        of_client = (said.instance_id, said.rack_id, said.client_id, said.client_host)
        metadata = (
            *of_client,
            said.topic_names,
            said.pattern,
            said.rebalance_timeout_ms,
            said.server_assignor,
            classic,
        )
    current = member.current
    if current in (GONE, NEW_ASSIGNMENT):
        return metadata, None if current == NEW_ASSIGNMENT else KAFKA_GONE
    said_current = (current.member_epoch, current.previous_member_epoch, int(current.state))
    return metadata, (*said_current, current.assigned, current.pending_revocation)


def kafkas_member(member: KafkasMember) -> object:
    said = member.metadata
    metadata: object = None
    if said is not None:
        classic = said.classic_member_metadata
        if classic is not None:
            protocols = tuple((one.name, bytes(one.metadata)) for one in classic.supported_protocols)
            classic = (classic.session_timeout_ms, protocols) if protocols else None
        of_client = (said.instance_id, said.rack_id, said.client_id, said.client_host)
        wanted = (frozenset(said.subscribed_topic_names), said.subscribed_topic_regex)
        metadata = (*of_client, *wanted, said.rebalance_timeout_ms, said.server_assignor, classic)
    current = member.current
    if current is None or current is KAFKA_GONE:
        return metadata, current
    state = current.state if current.state in (0, 1, 2) else 127
    parts = (current.assigned_partitions, current.partitions_pending_revocation)
    epochs = (_epochs(part, max(current.member_epoch, 0)) for part in parts)
    return metadata, (current.member_epoch, current.previous_member_epoch, state, *epochs)


def _epochs(topics: Any, default: int) -> object:
    found = {}
    for topic in topics:
        given = topic.assignment_epochs
        if given is None or len(given) != len(topic.partitions):
            given = [default] * len(topic.partitions)
        found[bytes(topic.topic_id)] = dict(zip(topic.partitions, given, strict=True))
    return found


def our_group(group: ConsumerGroup) -> object:
    return (
        (group.epoch, group.metadata_hash, (group.target_epoch.epoch, group.target_epoch.timestamp_ms)),
        {member_id: our_member(member) for member_id, member in group.members.items()},
        group.targets,
        {text: (one.topic_names, one.version, one.timestamp_ms) for text, one in group.patterns.items()},
        group.has_partition_metadata,
    )


def kafkas_group(group: KafkasGroup) -> object:
    return (
        (group.epoch, group.metadata_hash, group.target),
        {member_id: kafkas_member(member) for member_id, member in group.members.items()},
        {
            member_id: {bytes(one.topic_id): frozenset(one.partitions) for one in target.topic_partitions}
            for member_id, target in group.targets.items()
        },
        {text: (frozenset(one.topics), one.version, one.timestamp) for text, one in group.patterns.items()},
        group.has_partition_metadata,
    )


def ours(machine: GroupMachine) -> object:
    groups = machine.groups
    return (
        {name: our_generation(one.stored) for name, one in groups.items() if one.stored is not None},
        {name: our_group(one.consumer) for name, one in groups.items() if one.consumer is not None},
        {
            (name, *partition): our_offset(offset)
            for name, one in groups.items()
            for partition, offset in one.offsets.committed.items()
        },
        {
            (producer_id, name, *partition): our_offset(offset)
            for name, one in groups.items()
            for producer_id, offsets in one.offsets.pending.items()
            for partition, offset in offsets.items()
        },
    )


def kafkas(groups: KafkasGroups) -> object:
    return (
        {name: kafkas_generation(value) for name, value in groups.classic.items()},
        {name: kafkas_group(group) for name, group in groups.consumer.items()},
        {where: kafkas_offset(offset) for where, offset in groups.offsets.items()},
        {
            (producer_id, *where): kafkas_offset(offset)
            for producer_id, offsets in groups.pending.items()
            for where, offset in offsets.items()
        },
    )


@given(MIXED_LOGS)
@settings(max_examples=examples(300), derandomize=True)
def test_any_log_is_loaded_to_what_kafka_makes_of_it(log: list[LogEntry]) -> None:
    """Where Kafka throws, and serves none of the partition's groups, the later record counts."""
    assert ours(loaded(log)) == kafkas(loaded_by_kafka(log))


CLASSIC = GroupRecord(GROUP, StoredGroup("consumer", 4, "range", None, 9, ()))
EPOCH = GroupEpochRecord(GROUP, GroupEpoch(3))
CURRENT = CurrentRecord(GROUP, "m", CurrentAssignment(3, 2))
TARGET = TargetRecord(GROUP, "m", {b"1" * 16: frozenset((0,))})
STATIC = StoredMember("a", "i", "c", "/h", 9, 9, b"", b"")
SPOILT = "spoilt"
"""In place of a record: the next one has a value that cannot be read."""


@pytest.mark.parametrize(
    ("records", "thrown", "is_now"),
    [
        ((CLASSIC, EPOCH), "a record of a consumer group in a classic one", CONSUMER_GROUP_TYPE),
        ((CLASSIC, GroupEpochRecord(GROUP, None)), "a tombstone of a consumer group in a classic one", "classic"),
        ((EPOCH, CURRENT, MemberRecord(GROUP, "m", None)), "the end of a member that has an assignment", "consumer"),
        ((EPOCH, TARGET, TargetEpochRecord(GROUP, None)), "the end of a target that is not empty", "consumer"),
        ((EPOCH, CURRENT, GroupEpochRecord(GROUP, None)), "the end of a group that is not empty", None),
        (
            (
                GroupRecord(
                    GROUP, StoredGroup("consumer", 4, "range", "a", 9, (STATIC, replace(STATIC, member_id="b")))
                ),
            ),
            "two members with one instance id",
            "classic",
        ),
        ((EPOCH, SPOILT, CURRENT), "ConsumerGroupCurrentMemberAssignmentValue cannot be read", "consumer"),
        # And two that Kafka takes: a group of one kind becomes one of the other.
        ((EPOCH, CURRENT, TARGET, CLASSIC), None, "classic"),
        ((EPOCH, CURRENT, TARGET, GroupRecord(GROUP, None)), None, None),
    ],
)
def test_where_kafka_throws_the_rest_is_loaded(
    records: tuple[Record | str, ...], thrown: str | None, is_now: str | None
) -> None:
    log: list[LogEntry] = []
    for before, record in zip((None, *records), records, strict=False):
        if not isinstance(record, str):
            key, value = encode_record(record, RecordVersions())
            log.append((key, b"\0\x63" if before == SPOILT else value, -1))
    assert loaded_by_kafka(log).thrown == ([] if thrown is None else [thrown])
    loaded = Loaded(readable(log))
    group = loaded.harness.machine.groups.get(GROUP)
    assert (None if group is None else group.overview().group_type) == is_now
    if thrown == "two members with one instance id":
        assert group is not None
        assert (list(group.members), group.static_members) == (["b"], {"i": "b"})
    loaded.harness.advance(LONGEST_SESSION_MS)
    loaded.members_come()


def test_a_group_with_one_instance_id_twice_becomes_a_classic_one() -> None:
    """Of two classic members with one instance id the last stays, when the only other member leaves."""
    classic = ClassicMetadata(45_000, (("range", classic_subscription("t", {})),))
    metadata = MemberMetadata(instance_id="i", rebalance_timeout_ms=60_000, topic_names=frozenset("t"), classic=classic)
    records: list[Record] = [EPOCH, MemberRecord(GROUP, "new", MemberMetadata(topic_names=frozenset("t")))]
    records += [MemberRecord(GROUP, name, metadata) for name in ("a", "b")]
    records += [CurrentRecord(GROUP, name, CurrentAssignment(3, 2)) for name in ("new", "a", "b")]
    loaded = Loaded([(*encode_record(record, RecordVersions()), -1) for record in records])
    assert loaded.ask(ConsumerHeartbeat(GROUP, "new", LEAVE_GROUP_EPOCH)).error is ErrorCode.NONE
    group = loaded.harness.machine.groups[GROUP]
    assert group.consumer is None
    assert (list(group.members), group.static_members) == (["b"], {"i": "b"})


# --- what is loaded can be served


def readable(log: Iterable[LogEntry]) -> list[LogEntry]:
    """Without what a coordinator passes over."""

    def is_read(entry: LogEntry) -> bool:
        if len(entry) == 2:
            return True
        try:
            return decode_record(entry[0], entry[1]) is not None
        except ProtocolError:
            return False

    return [entry for entry in log if is_read(entry)]


class QuietHarness(ConsumerHarness):
    """Without texts: an odd log has bytes that are none."""

    def append(self, record: Any, write: Any) -> None:
        self.machine.replay(record, len(self.log), write.producer_id)
        self.log.append((*encode_record(record, RecordVersions()), write.producer_id))

    def render(self, result: object) -> str:
        return type(result).__name__


class Loaded:
    """A coordinator that has loaded a log, with the topics `t` and `u`, and members that were in it."""

    def __init__(self, log: list[LogEntry]) -> None:
        self.harness = QuietHarness()
        self.harness.do_config("group_initial_rebalance_delay_ms=0")
        self.harness.log = log
        self.harness.do_reload()
        self.tickets = 0

    def begin(self, request: object) -> str:
        self.tickets += 1
        ticket = f"t{self.tickets}"
        self.harness.ask(ticket, request)
        return ticket

    def ask(self, request: object) -> Any:
        ticket = self.begin(request)
        return self.harness.replies[ticket]

    def agrees_with_its_log(self) -> None:
        harness = self.harness
        assert durable_state(replayed(harness.log)) == durable_state(harness.machine)
        assert harness.budget.total == charged_bytes(harness.machine)

    # --- those who were there before

    def members_go_on(self, group: Group) -> None:
        """Each says what the log knows of it."""
        if group.consumer is None:
            for member in list(group.members.values()):
                self._classic_member_goes_on(group.group_id, group.generation_id, member.member_id)
            return
        for of_new in list(group.consumer.members.values()):
            metadata, epoch = of_new.metadata, of_new.current.member_epoch
            if metadata.classic is not None:
                self._classic_member_goes_on(group.group_id, epoch, of_new.member_id, metadata.instance_id)
            elif epoch > 0:
                self._member_goes_on(group.consumer, of_new)

    def _member_goes_on(self, group: ConsumerGroup, member: Member) -> None:
        owned, epoch = without_epochs(member.current.assigned), member.current.member_epoch
        instance_id = member.metadata.instance_id
        result = self.ask(ConsumerHeartbeat(group.group_id, member.member_id, epoch, instance_id, owned=owned))
        is_fenced = instance_id is not None and group.static_members.get(instance_id) != member.member_id
        is_odd = member.current.state is MemberState.UNKNOWN and owned
        assert result.error in (
            {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID}
            if is_fenced
            else {ErrorCode.FENCED_MEMBER_EPOCH if is_odd else ErrorCode.NONE}
        ), result

    def _classic_member_goes_on(
        self, group_id: str, generation_id: int, member_id: str, instance_id: str | None = None
    ) -> None:
        self.ask(Heartbeat(group_id, generation_id, member_id, instance_id))
        self.begin(Sync(group_id, generation_id, member_id, instance_id, None, None, {}))
        protocols = (("range", classic_subscription("t", {})),)
        self.begin(
            join_of(group_id, member_id, instance_id, protocols, 9, session_timeout_ms=45_000, rebalance_timeout_ms=9)
        )

    # --- those who come

    def members_come(self) -> None:
        clients = [Client(f"new{who}", "i" if who == 2 else None, frozenset("tu")) for who in range(3)]
        for _ in range(ROUNDS_MAX):
            for client in clients:
                client.give_up()
                client.receive(self.ask(client.heartbeat(says_owned=True)))
            self.harness.advance(1_001)
            self.harness.check()
        has = [(topic, one) for client in clients for topic, parts in client.owned.items() for one in parts]
        assert len(has) == len(set(has)) == sum(topic.partition_count for topic in self.harness.topics.names.values())
        for client in clients:
            left = ConsumerHeartbeat(GROUP, client.member_id, LEAVE_GROUP_EPOCH, client.instance_id)
            assert self.ask(left).error is ErrorCode.NONE


@given(MIXED_LOGS)
@settings(max_examples=examples(100), derandomize=True)
def test_members_go_on_in_whatever_was_loaded(log: list[LogEntry]) -> None:
    """Those of before, as far as the log knows them; and when their sessions have ended, new ones share all topics."""
    loaded = Loaded(readable(log))
    loaded.agrees_with_its_log()
    for group in list(loaded.harness.machine.groups.values()):
        overview = group.overview()
        loaded.ask(DescribeGroup(group.group_id))
        described = loaded.ask(DescribeConsumerGroup(group.group_id))
        assert (described.error is ErrorCode.NONE) == (overview.group_type == CONSUMER_GROUP_TYPE)
        loaded.ask(FetchOffsets(group.group_id, None, require_stable=False))
        loaded.members_go_on(group)
        loaded.agrees_with_its_log()
    loaded.harness.advance(LONGEST_SESSION_MS)
    loaded.agrees_with_its_log()
    for group in loaded.harness.machine.groups.values():
        assert group.is_empty, group.overview()
    loaded.members_come()
    assert loaded.ask(DeleteGroup(GROUP)) is ErrorCode.NONE
    loaded.harness.do_reload()
    left = loaded.harness.machine.groups.get(GROUP)
    assert left is None or left.overview().protocol_type == ""
