"""The harness of groups of any kind with what share groups need: their requests, results of the share coordinator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.consumer_group.target import ComputeTarget
from kpybroker.core.consumer_group.values import Surroundings
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.modern_group.values import ModernGroupConfig
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
    ShareGroupLimits,
    ShareHeartbeat,
    ShareHeartbeatResult,
    ShareSurroundings,
)
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from tests.core.modern_group.harness import ModernHarness, with_settings
from tests.support.machine_harness import EPOCH_MS


class ShareHarness(ModernHarness):
    """`orders` are effects whose results have not come yet."""

    records = SHARE_RECORDS
    owned = (ShareHeartbeat, AlterShareOffsets)

    def __init__(self) -> None:
        self.share_config = ModernGroupConfig(assignment_interval_ms=0)
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

    # --- of a kind

    def groups_of(self, machine: GroupMachine) -> Iterable[ShareGroup]:
        return machine.shares.groups.values()

    def state_of(self, group: ShareGroup) -> object:
        return (
            (group.epoch, group.metadata_hash, group.target_epoch, group.states, group.written_up_to),
            dict(group.members),
            dict(group.targets),
            group.subscribed_topics(),
        )

    def check_group(self, group: ShareGroup) -> None:
        check_states(group)

    def render_own(self, record: Any) -> str:
        return self.render_share_record(record)

    # --- the shell's part

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

    # --- requests

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
        self.share_config = with_settings(self.share_config, settings)

    def do_share_limits(self, *settings: str) -> None:
        self.share_limits = with_settings(self.share_limits, settings)
        self.renew()

    def do_computed(self) -> None:
        effect = next(one for one in self.pending if isinstance(one, ComputeTarget))
        self.pending.remove(effect)
        assignment = run_to_end(effect.computation.slices)
        self.run(self.machine.on_target_computed(effect.group_id, effect.computation, assignment, self.now))

    def do_topic_deleted(self, topic: str, keep: str = "") -> None:
        """Of a topic that is not among the topics any more, or is another one by now."""
        found = self.topics.by_name(topic)
        for group_id in self.machine.ids():
            topic_id = ZERO_UUID if found is None else found.topic_id
            outcome = self.machine.forget_topic(group_id, topic, topic_id, self.now, keeps_group=bool(keep))
            self.run(outcome)

    def do_show_share(self, group_id: str) -> None:
        group = self.machine.shares.groups.get(group_id)
        if group is None:
            self.output.append(f"{group_id} does not exist")
            return
        self.output.append(f"{group_id} {group.state.value} epoch={group.epoch} target={group.target_epoch.epoch}")
        for member in group.members.values():
            current = member.current
            self.output.append(f"  {member.member_id}@{current.member_epoch} {self.names(current.assigned)}")
        self.output.append(f"  {self._states_text(group.states)}")

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
                return f"{head} {self._states_text(value)}"

    def _states_text(self, states: StatePartitions | None) -> str:
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
