"""The harness of groups of any kind with what streams groups need.

No active task has two members, nor any task two copies in one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kpybroker.core.consumer_group.values import Surroundings
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.streams_group.members import CurrentTasks, Endpoint, HeldTasks, TaskEpochs, TaskIds, Tasks
from kpybroker.core.streams_group.records import (
    STREAMS_RECORDS,
    StreamsCurrentRecord,
    StreamsGroupEpochRecord,
    StreamsMemberRecord,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    TopologyRecord,
)
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.streams_group.topics.topology import Subtopology, TopicInfo, Topology
from kpybroker.core.streams_group.values import (
    DescribedStreamsGroup,
    DescribeStreamsGroup,
    StreamsGroupConfig,
    StreamsHeartbeat,
    StreamsHeartbeatResult,
    StreamsSurroundings,
)
from kpybroker.wire.errors import ErrorCode
from tests.core.modern_group.harness import ModernHarness, with_settings
from tests.core.streams_group.topologies import COUNTING, topology
from tests.support.machine_harness import EPOCH_MS

TOPOLOGIES: dict[str, Topology] = {
    "plain": topology(Subtopology("0", ("t",))),
    "newer": topology(Subtopology("0", ("t",)), epoch=1),
    "stateful": topology(Subtopology("0", ("t",), state_changelog_topics=(TopicInfo("store"),))),
    "two": topology(Subtopology("0", ("t",)), Subtopology("1", ("u",))),
    "counting": COUNTING,
    "missing": topology(Subtopology("0", ("nowhere",))),
    "loop": topology(
        Subtopology("0", ("t",), repartition_source_topics=(TopicInfo("a"),)),
    ),
}


class StreamsHarness(ModernHarness):
    """Commands: `streams G id= epoch=`, `describe-streams G`, `streams-config`, `show-streams G`."""

    records = STREAMS_RECORDS
    owned = (StreamsHeartbeat,)

    def __init__(self) -> None:
        self.streams_config = StreamsGroupConfig(assignment_interval_ms=0, initial_rebalance_delay_ms=0)
        self.max_size = 100
        super().__init__()

    def new_machine(self) -> GroupMachine:
        return GroupMachine(
            self.config,
            self.budget,
            Surroundings(self.limits, lambda group_id: self.group_config, self.assignors),
            streams_settings=StreamsSurroundings(self.max_size, lambda group_id: self.streams_config),
        )

    # --- of a kind

    def groups_of(self, machine: GroupMachine) -> list[StreamsGroup]:
        return [group.streams for group in machine.groups.values() if group.streams is not None]

    def state_of(self, group: StreamsGroup) -> object:
        return (
            (group.epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs),
            (group.target_epoch, group.topology, group.written_up_to),
            dict(group.members),
            dict(group.targets),
            group.state,
        )

    def check_group(self, group: StreamsGroup) -> None:
        check_tasks(group)

    def render_own(self, record: Any) -> str:
        return render_streams_record(record)

    # --- requests

    def request(self, command: str, name: str, arguments: list[str]) -> object:
        match command:
            case "streams":
                return self._streams_heartbeat(name, arguments)
            case "describe-streams":
                return DescribeStreamsGroup(name)
        return super().request(command, name, arguments)

    def _streams_heartbeat(self, group_id: str, arguments: list[str]) -> StreamsHeartbeat:
        """`id=` and `epoch=`; a join has topology=plain, and a process of its own unless it says otherwise.

        `active=0:1,2` and `standby=` are what the member runs; without them it does not say, or joins with none.
        """
        options = dict(argument.split("=", 1) for argument in arguments)
        epoch = int(options["epoch"])
        joins = {"topology": "plain", "process": options["id"], "rebalance": "60000"} if epoch == 0 else {}
        given = joins | options
        says = epoch == 0 or "active" in given or "standby" in given
        endpoint = given.get("endpoint")
        return StreamsHeartbeat(
            group_id=group_id,
            member_id=given["id"],
            member_epoch=epoch,
            endpoint_epoch=int(given.get("knows", 0)),
            rebalance_timeout_ms=int(given.get("rebalance", -1)),
            topology=TOPOLOGIES[given["topology"]] if "topology" in given else None,
            active_tasks=tasks_of(given.get("active", "")) if says else None,
            standby_tasks=tasks_of(given.get("standby", "")) if says else None,
            warmup_tasks={} if says else None,
            process_id=given.get("process"),
            endpoint=None if endpoint is None else Endpoint(endpoint, 80),
            shutdown_application="shutdown" in given,
            client_id="c",
            client_host="/127.0.0.1",
        )

    # --- commands

    def do_streams_config(self, *settings: str) -> None:
        self.streams_config = with_settings(self.streams_config, settings)

    def do_max_size(self, size: str) -> None:
        self.max_size = int(size)
        self.renew()

    def do_show_streams(self, group_id: str) -> None:
        group = self.machine.groups.get(group_id)
        streams = None if group is None else group.streams
        if streams is None:
            self.output.append(f"{group_id} is no streams group")
            return
        self.output.append(
            f"{group_id} {streams.state.value} epoch={streams.epoch} target={streams.target_epoch.epoch}"
        )
        for member in streams.members.values():
            self.output.append(f"  {member.member_id}{current_text(member.current)}")

    # --- to text

    def render(self, result: object) -> str:
        match result:
            case StreamsHeartbeatResult(ErrorCode.NONE):
                return render_heartbeat(result)
            case DescribedStreamsGroup(ErrorCode.NONE):
                members = "; ".join(
                    f"{one.member_id}@{one.current.member_epoch} {held_text(one.current.assigned)} -> "
                    f"{tasks_text(result.targets.get(one.member_id, Tasks()))}"
                    for one in result.members
                )
                topology = "configured" if not isinstance(result.topology, Topology) else "as sent"
                head = f"{result.state} epoch={result.group_epoch} assignment={result.assignment_epoch} {topology}"
                return f"{head} {members}".strip()
            case StreamsHeartbeatResult() | DescribedStreamsGroup():
                return f"{result.error.name} {result.message}"
            case _:
                return super().render(result)


def render_heartbeat(result: StreamsHeartbeatResult) -> str:
    parts = [f"{result.member_id}@{result.member_epoch}"]
    parts.append("as before" if result.tasks is None else tasks_text(result.tasks))
    parts += [f"{status.code.name}: {status.detail}" for status in result.statuses or ()]
    if result.to_create:
        parts.append("create " + " ".join(f"{one.name}={one.partitions}" for one in result.to_create.values()))
    if result.endpoints is not None:
        for one in result.endpoints:
            parts.append(f"{one.endpoint.host}={dict(one.active)}+{dict(one.standby)}")
        parts.append(f"endpoints@{result.endpoint_epoch}")
    return " | ".join(parts)


def tasks_of(text: str) -> TaskIds:
    """`0:1,2;1:0`."""
    items = (item.partition(":") for item in filter(None, text.split(";")))
    return {name: frozenset(int(one) for one in filter(None, where.split(","))) for name, _, where in items}


def ids_text(tasks: Mapping[str, Iterable[int]]) -> str:
    return " ".join(f"{name}:{','.join(map(str, sorted(indexes)))}" for name, indexes in sorted(tasks.items()))


def epochs_text(tasks: TaskEpochs) -> str:
    return " ".join(
        f"{name}:{','.join(f'{task}@{epoch}' for task, epoch in sorted(epochs.items()))}"
        for name, epochs in sorted(tasks.items())
    )


def tasks_text(tasks: Tasks) -> str:
    return f"[{ids_text(tasks.active)}]" + (f" standby [{ids_text(tasks.standby)}]" if tasks.standby else "")


def held_text(held: HeldTasks) -> str:
    return f"[{epochs_text(held.active)}]" + (f" standby [{ids_text(held.standby)}]" if held.standby else "")


def current_text(current: CurrentTasks) -> str:
    revokes = "" if current.pending_revocation.is_empty else f" revokes {held_text(current.pending_revocation)}"
    epochs = f"@{current.member_epoch} (was {current.previous_member_epoch})"
    return f"{epochs} {current.state.name} {held_text(current.assigned)}{revokes}"


def render_streams_record(record: Any) -> str:
    head = f"{_TYPES[type(record)]} {getattr(record, 'member_id', '')}".strip()
    value = record.value
    if value is None:
        return f"{head} tombstone"
    match record:
        case StreamsGroupEpochRecord():
            configs = "".join(f" {key}={text}" for key, text in value.assignment_configs)
            return f"{head} epoch={value.epoch} validated={value.validated_topology_epoch}{configs}"
        case StreamsMemberRecord():
            endpoint = "" if value.endpoint is None else f" endpoint={value.endpoint.host}"
            return f"{head} process={value.process_id} topology={value.topology_epoch}{endpoint}"
        case StreamsTargetEpochRecord():
            return f"{head} epoch={value.epoch} at={value.timestamp_ms - EPOCH_MS}"
        case StreamsTargetRecord():
            return f"{head} {tasks_text(value)}"
        case StreamsCurrentRecord():
            return f"{head}{current_text(value)}"
        case _:
            return f"{head} epoch={value.epoch} [{' '.join(value.subtopologies)}]"


_TYPES = {
    StreamsGroupEpochRecord: 17,
    StreamsMemberRecord: 19,
    StreamsTargetEpochRecord: 20,
    StreamsTargetRecord: 21,
    StreamsCurrentRecord: 22,
    TopologyRecord: 23,
}


def check_tasks(group: StreamsGroup) -> None:
    """No active task has two members, and a process has no two copies of a task."""
    active: Counter[tuple[str, int]] = Counter()
    copies: Counter[tuple[str, str, int]] = Counter()
    for member in group.members.values():
        for held in (member.current.assigned, member.current.pending_revocation):
            active.update((name, task) for name, tasks in held.active.items() for task in tasks)
            for kind in (held.active, held.standby):
                copies.update(
                    (member.metadata.process_id, name, task) for name, tasks in kind.items() for task in tasks
                )
    assert all(count == 1 for count in active.values()), "an active task has two members"
    assert all(count == 1 for count in copies.values()), "a process has two copies of a task"
