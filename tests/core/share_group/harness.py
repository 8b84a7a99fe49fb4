"""The harness of consumer groups with what share groups need: their requests, and results of the share coordinator.

After every command the log so far is replayed into a fresh machine, and the budget is what is there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.consumer_group.target import ComputeTarget
from kpybroker.core.consumer_group.values import Surroundings
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import RecordVersions, decode_record, encode_record
from kpybroker.core.share_group.members import SHARE_GROUP_BYTES, member_bytes, partitions_bytes
from kpybroker.core.share_group.records import (
    SHARE_RECORDS,
    ShareCurrentRecord,
    ShareGroupEpochRecord,
    ShareMemberRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitions,
    StatePartitionsRecord,
    TopicStates,
)
from kpybroker.core.share_group.state import ShareGroup
from kpybroker.core.share_group.values import (
    AlteredShareOffsets,
    AlterShareOffsets,
    DeletedShareOffsets,
    DeleteShareOffsets,
    DeleteStates,
    DescribedShareGroup,
    DescribeShareGroup,
    InitializedPartitions,
    InitializeStates,
    ListInitializedPartitions,
    ShareGroupConfig,
    ShareGroupLimits,
    ShareHeartbeat,
    ShareHeartbeatResult,
    ShareSurroundings,
)
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget
from tests.core.consumer_group.harness import ConsumerHarness
from tests.core.group.harness import OWNER, charged_bytes, durable_state
from tests.support.machine_harness import EPOCH_MS


def share_state(machine: GroupMachine) -> dict[str, object]:
    """What the log decides of each share group."""
    return {
        group.group_id: (
            (group.epoch, group.metadata_hash, group.target_epoch, group.states, group.written_up_to),
            dict(group.members),
            dict(group.targets),
            group.subscribed_topics(),
        )
        for group in machine.shares.groups.values()
    }


def share_bytes(machine: GroupMachine) -> int:
    """What the budget must say of share groups, from what is there."""
    size = 0
    for group in machine.shares.groups.values():
        for live in group.live.values():
            member = group.members.get(live.member_id)
            if live.owner == OWNER and member is not None:
                size += member_bytes(member, group.targets.get(live.member_id, {}))
        if group.owner == OWNER:
            size += SHARE_GROUP_BYTES + 2 * len(group.group_id)
            for topics in () if group.states is None else (group.states.initializing, group.states.initialized):
                size += partitions_bytes([topic.partitions for topic in topics.values()])
    return size


class ShareHarness(ConsumerHarness):
    """`orders` are effects whose results have not come yet."""

    def __init__(self) -> None:
        self.share_config = ShareGroupConfig(assignment_interval_ms=0)
        self.share_limits = ShareGroupLimits()
        self.orders: list[InitializeStates | DeleteStates] = []
        super().__init__()

    def new_machine(self) -> GroupMachine:
        return GroupMachine(
            self.config,
            self.budget,
            Surroundings(self.limits, lambda group_id: self.group_config, self.assignors),
            ShareSurroundings(self.share_limits, lambda group_id: self.share_config),
        )

    def check(self) -> None:
        fresh = self._replayed()
        assert durable_state(fresh) == durable_state(self.machine)
        assert share_state(fresh) == share_state(self.machine)
        assert self.budget.total == charged_bytes(self.machine) + share_bytes(self.machine)
        for group in self.machine.shares.groups.values():
            assert self.is_unloaded or group.live.keys() == group.members.keys()
            check_states(group)

    def _replayed(self) -> GroupMachine:
        machine = GroupMachine(self.config)
        self._replay_into(machine)
        return machine

    def _replay_into(self, machine: GroupMachine) -> None:
        for offset, entry in enumerate(self.log):
            assert len(entry) == 3, "no transactions here"
            key, value, producer_id = entry
            record = decode_record(key, value)
            assert record is not None
            machine.replay(record, offset, producer_id)

    def carry_out(self, effect: object) -> None:
        if isinstance(effect, InitializeStates):
            self.orders.append(effect)
            offsets = {
                topic: [f"{index}={offset}" if offset >= 0 else str(index) for index, offset in of_topic.items()]
                for topic, of_topic in effect.start_offsets.items()
            }
            text = " ".join(sorted(f"{self._name(topic)}:{','.join(indexes)}" for topic, indexes in offsets.items()))
            self.output.append(f"initialize {effect.group_id} epoch={effect.state_epoch} {text}")
        elif isinstance(effect, DeleteStates):
            self.orders.append(effect)
            self.output.append(f"delete {effect.group_id} {self.names(effect.partitions)}")
        else:
            super().carry_out(effect)

    def append(self, record: Any, write: Any) -> None:
        if not isinstance(record, SHARE_RECORDS):
            super().append(record, write)
            return
        key, value = encode_record(record, RecordVersions())
        assert decode_record(key, value) == record
        self.machine.replay(record, len(self.log))
        self.log.append((key, value, -1))
        self.output.append(f"log {self.render_share_record(record)}")

    # --- requests

    def ask(self, ticket: str, request: Any) -> None:
        owned = isinstance(request, ShareHeartbeat | AlterShareOffsets)
        super().ask(ticket, replace(request, owner=OWNER) if owned else request)

    def request(self, command: str, name: str, arguments: list[str]) -> object:
        match command:
            case "share":
                return self._share_heartbeat(name, arguments)
            case "describe-share":
                return DescribeShareGroup(name)
            case "initialized":
                return ListInitializedPartitions(name)
            case "alter":
                pairs = (argument.split("=") for argument in arguments)
                return AlterShareOffsets(name, {_partition(where): int(offset) for where, offset in pairs})
            case "forget-offsets":
                return DeleteShareOffsets(name, tuple(arguments))
        return super().request(command, name, arguments)

    def _share_heartbeat(self, group_id: str, arguments: list[str]) -> ShareHeartbeat:
        """`id=` and `epoch=`; a join has topics=t unless it says otherwise."""
        options = dict(argument.split("=", 1) for argument in arguments)
        epoch = int(options["epoch"])
        given = ({"topics": "t"} if epoch == 0 else {}) | options
        return ShareHeartbeat(
            group_id=group_id,
            member_id=given["id"],
            member_epoch=epoch,
            rack_id=given.get("rack"),
            topic_names=frozenset(given["topics"].split("+")) if "topics" in given else None,
            client_id=given.get("client", "c"),
            client_host="/127.0.0.1",
        )

    # --- commands

    def do_made(self, error: str = "NONE") -> None:
        """The share coordinator's oldest result arrives; an error is that of the first partition."""
        effect = self.orders.pop(0)
        topics = effect.start_offsets if isinstance(effect, InitializeStates) else effect.partitions
        first = next((topic, min(indexes)) for topic, indexes in topics.items())
        errors = {} if error == "NONE" else {first: ErrorCode[error]}
        self.run(self.machine.on_states_done(effect, errors, self.now))

    def do_share_config(self, *settings: str) -> None:
        values = {key: int(value) for key, value in (setting.split("=") for setting in settings)}
        self.share_config = replace(self.share_config, **values)

    def do_share_limits(self, *settings: str) -> None:
        values = {key: int(value) for key, value in (setting.split("=") for setting in settings)}
        self.share_limits = replace(self.share_limits, **values)
        self.machine = self.new_machine()
        self._tell_topics()

    def do_computed(self) -> None:
        effect = next(one for one in self.pending if isinstance(one, ComputeTarget))
        self.pending.remove(effect)
        assignment = run_to_end(effect.computation.slices)
        self.run(self.machine.on_target_computed(effect.group_id, effect.computation, assignment, self.now))

    def do_topic_deleted(self, topic: str) -> None:
        """Of a topic that is not among the topics any more, or is another one by now."""
        found = self.topics.by_name(topic)
        for group_id in self.machine.ids():
            topic_id = ZERO_UUID if found is None else found.topic_id
            self.run(self.machine.forget_topic(group_id, topic, topic_id, self.now))

    def do_reload(self, *settings: str) -> None:
        self.resign()
        assert self.budget.total == 0
        self.machine = self.new_machine()
        self._tell_topics()
        self._replay_into(self.machine)
        self.run(run_to_end(self.machine.activate(self.machine.ids(), self.now, WorkBudget())))

    def do_show_share(self, group_id: str) -> None:
        group = self.machine.shares.groups.get(group_id)
        if group is None:
            self.output.append(f"{group_id} does not exist")
            return
        self.output.append(f"{group_id} {group.state.value} epoch={group.epoch} target={group.target_epoch.epoch}")
        for member in group.members.values():
            current = member.current
            self.output.append(f"  {member.member_id}@{current.member_epoch} {self.names(current.assigned)}")
        self.output.append(f"  {self._states(group.states)}")

    # --- to text

    def render(self, result: object) -> str:
        match result:
            case ShareHeartbeatResult(ErrorCode.NONE):
                has = "as before" if result.assignment is None else self.names(result.assignment)
                return f"{result.member_id}@{result.member_epoch} {has}"
            case DescribedShareGroup(ErrorCode.NONE):
                members = "; ".join(
                    f"{one.member_id}@{one.current.member_epoch} {self.names(one.current.assigned)}"
                    for one in result.members
                )
                return (
                    f"{result.state} epoch={result.group_epoch} assignment={result.assignment_epoch} "
                    f"{result.assignor} topics={sorted(result.topic_names.values())} {members}"
                )
            case InitializedPartitions(ErrorCode.NONE):
                return self.names(result.partitions)
            case AlteredShareOffsets(ErrorCode.NONE):
                errors = " ".join(f"{name}-{index}={error.name}" for (name, index), error in result.errors.items())
                return f"altered {errors}".strip()
            case DeletedShareOffsets(ErrorCode.NONE):
                topics = (f"{one.topic_name}={one.error.name}" for one in result.topics)
                return f"forgotten {' '.join(topics)}".strip()
            case (
                ShareHeartbeatResult()
                | DescribedShareGroup()
                | InitializedPartitions()
                | AlteredShareOffsets()
                | DeletedShareOffsets()
            ):
                return f"{result.error.name} {getattr(result, 'message', None)}"
            case _:
                return super().render(result)

    def render_share_record(self, record: Any) -> str:
        head = f"{_TYPES[type(record)]} {getattr(record, 'member_id', '')}".strip()
        value = record.value
        if value is None:
            return f"{head} tombstone"
        match record:
            case ShareMemberRecord():
                return f"{head} topics={'+'.join(sorted(value.topic_names))}"
            case ShareGroupEpochRecord():
                return f"{head} epoch={value.epoch}"
            case ShareTargetEpochRecord():
                return f"{head} epoch={value.epoch} at={value.timestamp_ms - EPOCH_MS}"
            case ShareTargetRecord():
                return f"{head} {self.names(value)}"
            case ShareCurrentRecord():
                epochs = f"@{value.member_epoch} (was {value.previous_member_epoch})"
                return f"{head}{epochs} {self.names(value.assigned)}"
            case _:
                return f"{head} {self._states(value)}"

    def _states(self, states: StatePartitions | None) -> str:
        if states is None:
            return "no states"
        deleting = " ".join(sorted(map(self._name, states.deleting)))
        return (
            f"initializing {self.names(_bare(states.initializing))} initialized {self.names(_bare(states.initialized))}"
            f" deleting [{deleting}]"
        )


_TYPES = {
    ShareMemberRecord: 10,
    ShareGroupEpochRecord: 11,
    ShareTargetEpochRecord: 12,
    ShareTargetRecord: 13,
    ShareCurrentRecord: 14,
    StatePartitionsRecord: 15,
}


def _bare(topics: TopicStates) -> dict[bytes, frozenset[int]]:
    return {topic_id: topic.partitions for topic_id, topic in topics.items()}


def _partition(text: str) -> tuple[str, int]:
    topic, _, index = text.rpartition("-")
    return topic, int(index)


def check_states(group: ShareGroup) -> None:
    """Members have only partitions that are initialized, or were until the states of their topic were deleted."""
    states = group.states or StatePartitions()
    for member in group.members.values():
        for topic_id, partitions in member.current.assigned.items():
            known = states.initialized.get(topic_id)
            assert known is None or partitions <= known.partitions
