"""The harness of groups (`tests.core.group.harness`) with what consumer groups need: topics, assignors, patterns.

After every command the log so far is replayed into a fresh machine, and no partition has two owners.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kpybroker.core.assignors.values import Partitions, run_to_end
from kpybroker.core.consumer_group.members import CurrentAssignment, PartitionEpochs
from kpybroker.core.consumer_group.records import (
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.target import ComputeTarget
from kpybroker.core.consumer_group.values import (
    ConsumerGroupLimits,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribeConsumerGroup,
    DescribedConsumerGroup,
    MigrationPolicy,
    ResolvedPattern,
    ResolvePatterns,
    Surroundings,
)
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.migration.embedded import parse_assignment
from kpybroker.core.group.records import GroupRecord, OffsetRecord, RecordVersions, encode_record
from kpybroker.core.group.values import Join, Sync, SyncResult
from kpybroker.core.machine import LogLine
from kpybroker.core.modern_group.values import ModernGroupConfig, TopicMetadata
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kpybroker.wire.yield_budget import WorkBudget
from tests.core.consumer_group.assignors import contiguous, everything_to_first, slow
from tests.core.group.harness import Harness, charged_bytes, durable_state, render, render_record, replayed
from tests.support.machine_harness import EPOCH_MS

NOTHING: Partitions = {}


def topic_id(name: str, incarnation: int = 0) -> bytes:
    return hashlib.blake2b(f"{name}#{incarnation}".encode(), digest_size=16).digest()


class Topics:
    """A version of the metadata."""

    def __init__(self, version: int, topics: Iterable[TopicMetadata]) -> None:
        self.version = version
        self.names = {topic.name: topic for topic in topics}
        self.ids = {topic.topic_id: topic for topic in self.names.values()}

    def by_name(self, name: str) -> TopicMetadata | None:
        return self.names.get(name)

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        return self.ids.get(topic_id)


def pattern_problem(pattern: str) -> str | None:
    return "missing closing )" if pattern.count("(") != pattern.count(")") else None


def matches(pattern: str, name: str) -> bool:
    """A pattern that ends with dot and star by its beginning, any other as a whole."""
    return name.startswith(pattern[:-2]) if pattern.endswith(".*") else name == pattern


def _partitions_of(text: str) -> list[tuple[str, str, list[int]]]:
    items = (item.partition(":") for item in filter(None, text.split(";")))
    return [(name, colon, [int(one) for one in where.split(",")]) for name, colon, where in items]


def classic_assignment(text: str) -> bytes:
    """`t:0,1;u:0` as a leader of the classic protocol says it, and `!` at its end for an assignor's own data."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=where)
            for name, _, where in _partitions_of(text.removesuffix("!"))
        ],
        user_data=b"own" if text.endswith("!") else None,
    )
    return b"\0\1" + encode(message, 1)


def classic_subscription(
    topics: Iterable[str], owned: Mapping[str, Iterable[int]], rack_id: str | None = None
) -> bytes:
    """A subscription of version 3."""
    message = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=sorted(where))
            for topic, where in owned.items()
        ],
        rack_id=rack_id,
    )
    return b"\0\3" + encode(message, 3)


class ConsumerHarness(Harness):
    """`pending` are effects whose results have not come yet."""

    def __init__(self) -> None:
        super().__init__()
        self.group_config = ModernGroupConfig(assignment_interval_ms=0)
        self.limits = ConsumerGroupLimits()
        self.assignors: dict[str, Any] = {"contiguous": contiguous, "first": everything_to_first}
        self.topics = Topics(0, ())
        self.incarnations: dict[str, int] = {}
        self.pending: list[ResolvePatterns | ComputeTarget] = []
        self.fails_every = 0
        self.is_unloaded = False
        self._writes = 0
        self.machine = self.new_machine()
        self.do_topics("t=4", "u=2")

    def new_machine(self) -> GroupMachine:
        return GroupMachine(
            self.config,
            self.budget,
            Surroundings(self.limits, lambda group_id: self.group_config, self.assignors, pattern_problem),
        )

    # --- the shell's part

    def carry_out(self, effect: object) -> None:
        if isinstance(effect, LogLine):
            return
        assert isinstance(effect, ResolvePatterns | ComputeTarget)
        self.pending.append(effect)
        if isinstance(effect, ResolvePatterns):
            self.output.append(f"resolve {effect.group_id} {' '.join(sorted(effect.patterns))} for {effect.rights}")
        else:
            self.output.append(f"compute {effect.group_id} epoch={effect.computation.epoch}")

    def run(self, outcome: Any) -> None:
        if outcome.writes and self.fails_every:
            self._writes += 1
            if self._writes % self.fails_every == 0:
                self.fail_next = ErrorCode.NOT_ENOUGH_REPLICAS
        super().run(outcome)

    def append(self, record: Any, write: Any) -> None:
        if isinstance(record, OffsetRecord) or (isinstance(record, GroupRecord) and not self._has_assignments(record)):
            super().append(record, write)
            return
        key, value = encode_record(record, RecordVersions())
        self.machine.replay(record, len(self.log))
        self.log.append((key, value, -1))
        self.output.append(f"log {self.render_consumer_record(record)}")

    def _has_assignments(self, record: GroupRecord) -> bool:
        """Those of scenarios of classic groups are any text."""
        members = () if record.value is None else record.value.members
        return any(member.assignment[:1] == b"\0" for member in members)

    def check(self) -> None:
        assert durable_state(replayed(self.log)) == durable_state(self.machine)
        assert self.budget.total == charged_bytes(self.machine)
        for group in self.machine.groups.values():
            if group.consumer is not None:
                counts = [count for topic in group.consumer.holders.values() for count in topic.values()]
                assert set(counts) <= {1}, "a partition has two owners"
                assert self.is_unloaded or group.consumer.live.keys() == group.consumer.members.keys()

    # --- requests

    def ask(self, ticket: str, request: Any) -> None:
        super().ask(ticket, request)

    def request(self, command: str, name: str, arguments: list[str]) -> object:
        if command == "hb":
            return self._heartbeat(name, arguments)
        if command == "describe-consumer":
            return DescribeConsumerGroup(name)
        if command == "sync":
            return self._sync(name, arguments)
        if command == "join":
            return self._join(name, arguments)
        return super().request(command, name, arguments)

    def _heartbeat(self, group_id: str, arguments: list[str]) -> ConsumerHeartbeat:
        """`id=` and `epoch=`; a join has topics=t, rebalance=60000 and owns nothing unless it says otherwise."""
        options = dict(argument.split("=", 1) for argument in arguments)
        epoch = int(options["epoch"])
        joins = {"topics": "t", "rebalance": "60000", "owned": ""} if epoch == 0 else {}
        if "pattern" in options:
            joins.pop("topics", None)
        given = joins | options
        return ConsumerHeartbeat(
            group_id=group_id,
            member_id=given.get("id", ""),
            member_epoch=epoch,
            instance_id=given.get("instance"),
            rack_id=given.get("rack"),
            rebalance_timeout_ms=int(given.get("rebalance", -1)),
            topic_names=frozenset(filter(None, given["topics"].split("+"))) if "topics" in given else None,
            pattern=given.get("pattern"),
            server_assignor=given.get("assignor"),
            owned=self.partitions(given["owned"]) if "owned" in given else None,
            client_id=given.get("client", "c"),
            client_host="/127.0.0.1",
            new_member_id="made" if "id" not in given else "",
            rights=given.get("rights", "me"),
        )

    def _sync(self, group_id: str, arguments: list[str]) -> Sync:
        """`assign=a-1=t:0,1/b-2=t:2` from a leader; `assign=a-1:text` for an assignment that is none."""
        given = [one for one in arguments if one.startswith("assign=") and "=" in one[7:]]
        request = super().request("sync", group_id, [one for one in arguments if one not in given])
        assert isinstance(request, Sync)
        if not given:
            return request
        pairs = (item.partition("=") for item in given[0][7:].split("/"))
        assignments = {member_id: classic_assignment(text) for member_id, _, text in pairs}
        return replace(request, assignments=assignments)

    def _join(self, group_id: str, arguments: list[str]) -> Join:
        """`owned=t:0,1` and `rack=r` make its subscriptions such of version 3."""
        options = dict(argument.split("=", 1) for argument in arguments)
        request = super().request("join", group_id, [one for one in arguments if not one.startswith("rights=")])
        assert isinstance(request, Join)
        request = replace(request, rights=options.get("rights", "me"))
        if not options.keys() & {"owned", "rack"}:
            return request
        owned = {name: where for name, _, where in _partitions_of(options.get("owned", ""))}
        protocols = tuple(
            (
                name,
                classic_subscription(
                    decode(ConsumerProtocolSubscription, data[2:], 0).topics, owned, options.get("rack")
                ),
            )
            for name, data in request.protocols
        )
        return replace(request, protocols=protocols)

    def partitions(self, text: str) -> Partitions:
        """`t:0,1;u:0`."""
        found = {}
        for item in filter(None, text.split(";")):
            name, _, indexes = item.partition(":")
            found[self.id_of(name)] = frozenset(map(int, filter(None, indexes.split(","))))
        return found

    def id_of(self, name: str) -> bytes:
        return topic_id(name, self.incarnations.get(name, 0))

    # --- commands

    def do_topics(self, *counts: str) -> None:
        """The topics there are from now on; one that was left out in between is another one when it comes again."""
        wanted = {name: int(count) for name, count in (item.split("=") for item in counts)}
        before = self.topics.names
        for name in before.keys() - wanted.keys():
            self.incarnations[name] = self.incarnations.get(name, 0) + 1
        now = [TopicMetadata(self.id_of(name), name, count) for name, count in wanted.items()]
        self.topics = Topics(self.topics.version + 1, now)
        changed = [name for name in {*before, *wanted} if before.get(name) != self.topics.names.get(name)]
        has_new = any(topic.topic_id not in {one.topic_id for one in before.values()} for topic in now)
        self.machine.on_topics_changed(self.topics, changed, has_new=has_new)

    def do_group_config(self, *settings: str) -> None:
        values = {key: int(value) for key, value in (setting.split("=") for setting in settings)}
        self.group_config = replace(self.group_config, **values)

    def do_config(self, *settings: str) -> None:
        super().do_config(*settings)
        self.machine = self.new_machine()
        self._tell_topics()

    def do_limits(self, *settings: str) -> None:
        for name, value in (setting.split("=") for setting in settings):
            typed: Any = MigrationPolicy(value) if name == "migration_policy" else int(value)
            self.limits = replace(self.limits, **{name: typed})
        self.machine = self.new_machine()
        self._tell_topics()

    def do_assignor(self, name: str, slices: str) -> None:
        """The assignor takes so many slices from now on."""
        self.assignors[name] = slow(int(slices))

    def do_resolve(self, result: str = "") -> None:
        """The oldest search for topics ends; `failed`: without a result."""
        effect = next(one for one in self.pending if isinstance(one, ResolvePatterns))
        self.pending.remove(effect)
        found = {
            pattern: ResolvedPattern(
                frozenset(name for name in self.topics.names if matches(pattern, name)),
                self.topics.version,
                self.now.wall_ms,
            )
            for pattern in effect.patterns
        }
        resolved = None if result == "failed" else found
        self.run(self.machine.on_patterns_resolved(effect.group_id, resolved, self.now))

    def do_computed(self) -> None:
        """The oldest computation of a target ends."""
        effect = next(one for one in self.pending if isinstance(one, ComputeTarget))
        self.pending.remove(effect)
        assignment = run_to_end(effect.computation.slices)
        self.run(self.machine.on_target_computed(effect.group_id, effect.computation, assignment, self.now))

    def do_unload(self) -> None:
        super().do_unload()
        self.is_unloaded = True

    def do_reload(self, *settings: str) -> None:
        """The coordinator moves: unload, and load the log elsewhere."""
        self.resign()
        assert self.budget.total == 0
        self.pending.clear()
        self.machine = self.new_machine()
        loaded = replayed(self.log, self.budget)
        for group in loaded.groups.values():
            if group.consumer is not None:
                group.consumer.shared = self.machine._modern.consumers.shared
                for name in group.consumer._topic_counts:
                    group.consumer.shared.subscribe(group.group_id, name)
        self.machine.groups, self.machine.open_producers = loaded.groups, loaded.open_producers
        self._tell_topics()
        self.run(run_to_end(self.machine.activate(list(self.machine.groups), self.now, WorkBudget())))

    def _tell_topics(self) -> None:
        self.machine.on_topics_changed(self.topics, self.topics.names, has_new=True)

    def do_show(self, group_id: str) -> None:
        group = self.machine.groups.get(group_id)
        if group is None or group.consumer is None:
            super().do_show(group_id)
            return
        consumer = group.consumer
        self.output.append(
            f"{group_id} {consumer.state.value} epoch={consumer.epoch} target={consumer.target_epoch.epoch}"
        )
        for member in consumer.members.values():
            self.output.append(f"  {member.member_id}{self._current(member.current)}")

    # --- to text

    def render(self, result: object) -> str:
        match result:
            case ConsumerHeartbeatResult(ErrorCode.NONE):
                has = "as before" if result.assignment is None else self.names(result.assignment)
                interval = "" if result.heartbeat_interval_ms == 5_000 else f" every {result.heartbeat_interval_ms} ms"
                return f"{result.member_id}@{result.member_epoch} {has}{interval}"
            case ConsumerHeartbeatResult():
                assert (result.member_epoch, result.heartbeat_interval_ms, result.assignment) == (0, 0, None)
                return f"{result.error.name} {result.message}"
            case DescribedConsumerGroup(ErrorCode.NONE):
                members = "; ".join(
                    f"{one.member.member_id}@{one.member.current.member_epoch} "
                    f"{self.names(one.assignment)} -> {self.names(one.target)}"
                    for one in result.members
                )
                return (
                    f"{result.state} epoch={result.group_epoch} assignment={result.assignment_epoch} "
                    f"{result.assignor} topics={sorted(result.topic_names.values())} {members}"
                )
            case DescribedConsumerGroup():
                return f"{result.error.name} {result.message}"
            case SyncResult(ErrorCode.NONE) if result.assignment[:1] == b"\0":
                version, assigned = result.assignment[1], self.assigned(result.assignment)
                return f"synced {result.protocol_type}/{result.protocol_name} v{version} {assigned}"
            case _:
                return render(result)

    def assigned(self, data: bytes) -> str:
        """An assignment in the bytes of the classic protocol."""
        return self.names(parse_assignment(data, self.topics)[0])

    def names(self, partitions: Mapping[bytes, Iterable[int]]) -> str:
        named = sorted((self._name(one), sorted(indexes)) for one, indexes in partitions.items())
        return "[" + " ".join(f"{name}:{','.join(map(str, indexes))}" for name, indexes in named) + "]"

    def _name(self, wanted: bytes) -> str:
        for name in ["t", "u", *self.topics.names, *self.incarnations]:
            for incarnation in range(self.incarnations.get(name, 0) + 1):
                if topic_id(name, incarnation) == wanted:
                    return name if incarnation == self.incarnations.get(name, 0) else f"old-{name}"
        return wanted.hex()[:6]

    def _epochs(self, epochs: PartitionEpochs) -> str:
        named = sorted((self._name(one), sorted(at.items())) for one, at in epochs.items())
        return "[" + " ".join(f"{name}:{','.join(f'{p}@{e}' for p, e in at)}" for name, at in named) + "]"

    def _current(self, current: CurrentAssignment) -> str:
        revoked = f" revokes {self._epochs(current.pending_revocation)}" if current.pending_revocation else ""
        return (
            f"@{current.member_epoch} (was {current.previous_member_epoch}) {current.state.name} "
            f"{self._epochs(current.assigned)}{revoked}"
        )

    def render_consumer_record(self, record: Any) -> str:
        match record:
            case GroupEpochRecord(value=value):
                return "3 tombstone" if value is None else f"3 epoch={value.epoch}"
            case PartitionMetadataRecord(value=value):
                return "4 tombstone" if value is None else "4"
            case MemberRecord(member_id=member_id, value=None):
                return f"5 {member_id} tombstone"
            case MemberRecord(member_id=member_id, value=metadata):
                assert metadata is not None
                instance = f" instance={metadata.instance_id}" if metadata.instance_id else ""
                if metadata.classic is not None:
                    names = ",".join(name for name, _ in metadata.classic.protocols)
                    instance += f" classic={names}/{metadata.classic.session_timeout_ms}"
                pattern = f" pattern={metadata.pattern}" if metadata.pattern else ""
                return f"5 {member_id} topics={'+'.join(sorted(metadata.topic_names))}{pattern}{instance}"
            case TargetEpochRecord(value=value):
                return "6 tombstone" if value is None else f"6 epoch={value.epoch} at={value.timestamp_ms - EPOCH_MS}"
            case TargetRecord(member_id=member_id, value=target):
                return f"7 {member_id} {'tombstone' if target is None else self.names(target)}"
            case CurrentRecord(member_id=member_id, value=current):
                return f"8 {member_id} tombstone" if current is None else f"8 {member_id}{self._current(current)}"
            case PatternRecord(pattern=pattern, value=found):
                topics = "tombstone" if found is None else f"[{' '.join(sorted(found.topic_names))}]"
                return f"16 {pattern} {topics}"
            case GroupRecord(value=group) if group is not None:
                members = " ".join(f"{one.member_id}{self.assigned(one.assignment)}" for one in group.members)
                return (
                    f"2 generation={group.generation_id} {group.protocol_type}/{group.protocol_name} "
                    f"leader={group.leader} since={group.state_timestamp_ms - EPOCH_MS} {members}"
                )
        return render_record(record)
