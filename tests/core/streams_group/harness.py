"""The harness of consumer groups with what streams groups need.

After every command the log so far is replayed into a fresh machine, the budget is what is there, and no active task has
two members, nor any task two copies in one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.consumer_group.values import Surroundings
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import RecordVersions, decode_record, encode_record
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
from kpybroker.core.streams_group.sizes import group_bytes, member_bytes
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
from kpybroker.wire.yield_budget import WorkBudget
from tests.core.consumer_group.harness import ConsumerHarness
from tests.core.group.harness import OWNER, charged_bytes, durable_state
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


def streams_state(machine: GroupMachine) -> dict[str, object]:
    """What the log decides of each streams group."""
    return {
        group.group_id: (
            (group.epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs),
            (group.target_epoch, group.topology, group.written_up_to),
            dict(group.members),
            dict(group.targets),
            group.state,
        )
        for group in groups_of(machine)
    }


def groups_of(machine: GroupMachine) -> list[StreamsGroup]:
    return [group.streams for group in machine.groups.values() if group.streams is not None]


def streams_bytes(machine: GroupMachine) -> int:
    """What the budget must say of streams groups, from what is there."""
    size = 0
    for group in groups_of(machine):
        for live in group.live.values():
            member = group.members.get(live.member_id)
            if live.owner == OWNER and member is not None:
                size += member_bytes(member, group.target_of(live.member_id))
        if group.owner == OWNER:
            size += group_bytes(group.topology)
    return size


class StreamsHarness(ConsumerHarness):
    """Commands: `streams G id= epoch=`, `describe-streams G`, `streams-config`, `show-streams G`."""

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

    def check(self) -> None:
        fresh = GroupMachine(self.config)
        self._replay_into(fresh)
        assert durable_state(fresh) == durable_state(self.machine)
        assert streams_state(fresh) == streams_state(self.machine)
        assert self.budget.total == charged_bytes(self.machine) + streams_bytes(self.machine)
        for group in groups_of(self.machine):
            assert self.is_unloaded or group.live.keys() == group.members.keys()
            check_tasks(group)

    def _replay_into(self, machine: GroupMachine) -> None:
        for offset, entry in enumerate(self.log):
            assert len(entry) == 3, "no transactions here"
            key, value, producer_id = entry
            record = decode_record(key, value)
            assert record is not None
            machine.replay(record, offset, producer_id)

    def append(self, record: Any, write: Any) -> None:
        if not isinstance(record, STREAMS_RECORDS):
            super().append(record, write)
            return
        key, value = encode_record(record, RecordVersions())
        assert decode_record(key, value) == record
        self.machine.replay(record, len(self.log))
        self.log.append((key, value, -1))
        self.output.append(f"log {render_streams_record(record)}")

    # --- requests

    def ask(self, ticket: str, request: Any) -> None:
        super().ask(ticket, replace(request, owner=OWNER) if isinstance(request, StreamsHeartbeat) else request)

    def request(self, command: str, name: str, arguments: list[str]) -> object:
        match command:
            case "streams":
                return self._streams_heartbeat(name, arguments)
            case "describe-streams":
                return DescribeStreamsGroup(name)
        return super().request(command, name, arguments)

    def _streams_heartbeat(self, group_id: str, arguments: list[str]) -> StreamsHeartbeat:
        """`id=` and `epoch=`; a join has topology=plain, and a process of its own unless it says otherwise.

        `active=0:1,2` and `standby=` are what the member runs; without them, it does not say.
        """
        options = dict(argument.split("=", 1) for argument in arguments)
        epoch = int(options["epoch"])
        joins = {"topology": "plain", "process": options["id"], "rebalance": "60000"} if epoch == 0 else {}
        given = joins | options
        says = "active" in given or "standby" in given
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
        values = {key: int(value) for key, value in (setting.split("=") for setting in settings)}
        self.streams_config = replace(self.streams_config, **values)

    def do_max_size(self, size: str) -> None:
        self.max_size = int(size)
        self.machine = self.new_machine()
        self._tell_topics()

    def do_reload(self, *settings: str) -> None:
        self.resign()
        assert self.budget.total == 0
        self.machine = self.new_machine()
        self._tell_topics()
        self._replay_into(self.machine)
        self.run(run_to_end(self.machine.activate(self.machine.ids(), self.now, WorkBudget())))

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
