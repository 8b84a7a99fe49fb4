"""A harness for the group state machine (`tests.support.machine_harness`), and the text of its requests and replies.

After every command the log so far is replayed into a fresh machine, whose durable state must equal the live one's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.budget import Owner, StateBudget
from kpybroker.core.consumer_group.members import CONSUMER_GROUP_BYTES, member_bytes
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import (
    GroupRecord,
    OffsetRecord,
    Record,
    RecordVersions,
    StoredGroup,
    decode_record,
    encode_record,
)
from kpybroker.core.group.room import Growing
from kpybroker.core.group.sizes import GROUP_BYTES, stored_bytes
from kpybroker.core.group.values import (
    CommitOffsets,
    CommitResult,
    DeleteGroup,
    DeleteOffsets,
    DeleteOffsetsResult,
    DescribedGroup,
    DescribeGroup,
    FetchOffsets,
    FetchOffsetsResult,
    GroupConfig,
    GroupState,
    Heartbeat,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    LeavingMember,
    Protocols,
    Sync,
    SyncResult,
)
from kpybroker.core.offsets.store import GroupOffsets, offset_bytes
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget
from tests.core.group.durable import consumer_state
from tests.support.machine_harness import EPOCH_MS, MachineHarness

LogEntry = tuple[bytes, bytes | None, int] | tuple[int, bool]
"""Key, value and producer id of a record, or producer id and fate of a marker."""


def subscription(*topics: str) -> bytes:
    """A ConsumerProtocolSubscription, version 0."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


OWNER = Owner(address="10.0.0.1")


def durable_state(machine: GroupMachine) -> dict[str, tuple[StoredGroup | None, GroupOffsets, object]]:
    return {
        group_id: (group.stored, group.offsets, consumer_state(group.consumer))
        for group_id, group in machine.groups.items()
        if group.stored is not None or group.offsets or group.consumer is not None
    }


def replayed(log: Iterable[LogEntry], budget: StateBudget | None = None) -> GroupMachine:
    machine = GroupMachine(GroupConfig(), budget)
    for offset, entry in enumerate(log):
        if len(entry) == 2:
            machine.replay_marker(*entry)
            continue
        key, value, producer_id = entry
        record = decode_record(key, value)
        assert record is not None
        machine.replay(record, offset, producer_id)
    return machine


def charged_bytes(machine: GroupMachine, owner: Owner = OWNER) -> int:
    """What the budget must say, from what is there."""
    size = 0
    for group in machine.groups.values():
        size += sum(member.measure() for member in group.members.values() if member.owner == owner)
        size += sum(pending.size for pending in group.pending_members.values() if pending.owner == owner)
        offsets = [*group.offsets.committed.values()]
        offsets += [one for pending in group.offsets.pending.values() for one in pending.values()]
        assert group.offsets.size == sum(offset_bytes(one.value) for one in offsets)
        if group.consumer is not None:
            for live in group.consumer.live.values():
                member = group.consumer.members.get(live.member_id)
                if live.owner == owner and member is not None:
                    size += member_bytes(member, group.consumer.targets.get(live.member_id, {}))
        if group.owner == owner:
            own = GROUP_BYTES + len(group.group_id) + stored_bytes(group.stored) + group.offsets.size
            own += 0 if group.consumer is None else CONSUMER_GROUP_BYTES
            size += max(own - group._free_bytes, 0)
    return size


def join_of(
    group_id: str, member_id: str, instance_id: str | None, protocols: Protocols, version: int, **fields: Any
) -> Join:
    """The Join that the handler makes of a JoinGroup version; `fields` are the others of `Join`, timeouts at least."""
    given = {"new_member_id": "", "client_id": "c", "protocol_type": "consumer", **fields}
    return Join(
        group_id=group_id,
        member_id=member_id,
        group_instance_id=instance_id,
        client_host="/127.0.0.1",
        protocols=protocols,
        require_known_member_id=version >= 4 and instance_id is None,
        support_skipping_assignment=version >= 9,
        reason="test",
        **given,
    )


class Harness(MachineHarness):
    machine: GroupMachine

    def __init__(self) -> None:
        super().__init__()
        self.config = GroupConfig()
        self.budget = StateBudget()
        self.machine = GroupMachine(self.config, self.budget)
        self.log: list[LogEntry] = []
        self._members = 0

    def append(self, record: Record, write: Any) -> None:
        key, value = encode_record(record, RecordVersions())
        self.machine.replay(record, len(self.log), write.producer_id)
        self.log.append((key, value, write.producer_id))
        transaction = f" txn={write.producer_id}" if write.producer_id >= 0 else ""
        self.output.append(f"log {render_record(record)}{transaction}")

    def render(self, result: object) -> str:
        return render(result)

    def request(self, command: str, name: str, arguments: list[str]) -> object:
        return _REQUESTS[command](self, name, arguments)

    def ask(self, ticket: str, request: Any) -> None:
        super().ask(ticket, replace(request, owner=OWNER) if isinstance(request, Growing) else request)

    def check(self) -> None:
        assert durable_state(replayed(self.log)) == durable_state(self.machine)
        assert self.budget.total == charged_bytes(self.machine)

    def do_config(self, *settings: str) -> None:
        self.config = replace(self.config, **{k: int(v) for k, v in (s.split("=") for s in settings)})
        self.machine = GroupMachine(self.config, self.budget)

    def do_cleanup(self, group_id: str) -> None:
        self.run(self.machine.cleanup(group_id, self.now))

    def do_topic_deleted(self, topic: str, keep: str = "") -> None:
        for group_id in list(self.machine.groups):
            outcome = self.machine.forget_topic(group_id, topic, ZERO_UUID, self.now, keeps_group=bool(keep))
            self.run(outcome)

    def do_marker(self, producer_id: str, fate: str) -> None:
        self.machine.replay_marker(int(producer_id), fate == "commit")
        self.log.append((int(producer_id), fate == "commit"))

    def do_unload(self) -> None:
        self.resign()
        assert self.budget.total == 0
        self.machine = replayed(self.log, self.budget)

    def do_reload(self, *settings: str) -> None:
        """The coordinator moves: unload, and load the log elsewhere, perhaps with other settings."""
        self.do_unload()
        self.config = replace(self.config, **{k: int(v) for k, v in (s.split("=") for s in settings)})
        machine = GroupMachine(self.config, self.budget)
        machine.groups, machine.open_producers = self.machine.groups, self.machine.open_producers
        self.machine = machine
        self.run(run_to_end(machine.activate(list(machine.groups), self.now, WorkBudget())))

    def do_show(self, group_id: str) -> None:
        group = self.machine.groups.get(group_id)
        if group is None:
            self.output.append(f"{group_id} does not exist")
            return
        waiting = sorted([*group.join_tickets.values(), *group.sync_tickets.values()], key=str)
        self.output.append(
            f"{group_id} {group.state.value} generation={group.generation_id} protocol={group.protocol_name} "
            f"leader={group.leader_id} members=[{' '.join(group.members)}] waiting=[{' '.join(map(str, waiting))}]"
        )

    def do_list(self) -> None:
        for row in self.machine.overviews():
            self.output.append(f"{row.group_id} {row.protocol_type or '-'} {row.state} {row.group_type}")

    def next_member(self, name: str) -> str:
        self._members += 1
        return f"{name}-{self._members}"


# --- requests from text


def _options(arguments: list[str]) -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in arguments if "=" in argument)


def _protocols(text: str) -> Protocols:
    """`range/t1+t2,roundrobin/t1`, or `range!text` for metadata that is no subscription."""
    protocols = []
    for item in filter(None, text.split(",")):
        if "!" in item:
            name, _, raw = item.partition("!")
            protocols.append((name, raw.encode()))
        else:
            name, _, topics = item.partition("/")
            protocols.append((name, subscription(*filter(None, topics.split("+")))))
    return tuple(protocols)


def _join(harness: Harness, group_id: str, arguments: list[str]) -> Join:
    """Version 9 unless `v=` is given."""
    options = _options(arguments)
    instance_id, client_id, member_id = options.get("instance"), options.get("client", "c"), options.get("id", "")
    return join_of(
        group_id,
        member_id,
        instance_id,
        _protocols(options.get("protocols", "range/t")),
        int(options.get("v", 9)),
        new_member_id="" if member_id else harness.next_member(instance_id or client_id),
        session_timeout_ms=int(options.get("session", 10_000)),
        rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
        protocol_type=options.get("type", "consumer"),
        client_id=client_id,
    )


def _sync(harness: Harness, group_id: str, arguments: list[str]) -> Sync:
    options = _options(arguments)
    assignments = (item.split(":") for item in filter(None, options.get("assign", "").split(",")))
    return Sync(
        group_id=group_id,
        generation_id=int(options["gen"]),
        member_id=options.get("id", ""),
        group_instance_id=options.get("instance"),
        protocol_type=options.get("type"),
        protocol_name=options.get("name"),
        assignments={member_id: data.encode() for member_id, data in assignments},
    )


def _heartbeat(harness: Harness, group_id: str, arguments: list[str]) -> Heartbeat:
    options = _options(arguments)
    return Heartbeat(group_id, int(options["gen"]), options.get("id", ""), options.get("instance"))


def _leave(harness: Harness, group_id: str, arguments: list[str]) -> Leave:
    """`member`, `/instance` or `member/instance` for each that leaves."""
    members = (argument.partition("/") for argument in arguments)
    return Leave(group_id, tuple(LeavingMember(member, instance or None) for member, _, instance in members))


def _partition(text: str) -> PartitionKey:
    topic, _, index = text.rpartition("-")
    return topic, int(index)


def _commit(harness: Harness, group_id: str, arguments: list[str]) -> CommitOffsets:
    """`topic-0=offset`, `topic-0=offset/metadata`, `topic-0=offset@epoch/metadata`."""
    options = _options(arguments)
    names = ("gen", "id", "instance", "txn", "expire", "v")
    gen, member_id, instance_id, producer_id, expire, version = (options.pop(name, None) for name in names)
    offsets = {}
    for name, text in options.items():
        where, _, metadata = text.partition("/")
        offset, _, epoch = where.partition("@")
        value = OffsetAndMetadata(
            int(offset),
            int(epoch or -1),
            metadata,
            harness.now.wall_ms,
            None if expire is None else harness.now.wall_ms + int(expire),
        )
        offsets[_partition(name)] = value
    producer = int(producer_id or -1)
    commit = CommitOffsets(group_id, member_id or "", instance_id, int(gen or -1), offsets, producer, 0)
    return replace(commit, has_member_epoch=int(version or 9) >= 9)


def _fetch(harness: Harness, group_id: str, arguments: list[str]) -> FetchOffsets:
    options = _options(arguments)
    words = [argument for argument in arguments if "=" not in argument]
    partitions = tuple(_partition(word) for word in words if word not in ("stable", "all"))
    wanted = None if "all" in words else partitions
    return FetchOffsets(group_id, wanted, "stable" in words, options.get("id"), int(options.get("gen", -1)))


_REQUESTS: dict[str, Callable[[Harness, str, list[str]], object]] = {
    "join": _join,
    "sync": _sync,
    "beat": _heartbeat,
    "leave": _leave,
    "commit": _commit,
    "fetch": _fetch,
    "describe": lambda harness, group_id, arguments: DescribeGroup(group_id),
    "delete": lambda harness, group_id, arguments: DeleteGroup(group_id),
    "delete-offsets": lambda harness, group_id, arguments: DeleteOffsets(
        group_id, tuple(_partition(argument) for argument in arguments if argument != "keep"), "keep" in arguments
    ),
}


# --- results to text


def _text(data: bytes) -> str:
    """Assignments are text in scenarios; a subscription shows its topics."""
    if data[:1] == b"\0" and len(data) >= 10:
        count = int.from_bytes(data[2:6], "big")
        names, at = [], 6
        for _ in range(count):
            length = int.from_bytes(data[at : at + 2], "big")
            names.append(data[at + 2 : at + 2 + length].decode())
            at += 2 + length
        return "/" + "+".join(names)
    return data.decode() or '""'


def _partition_name(partition: PartitionKey) -> str:
    return f"{partition[0]}-{partition[1]}"


def render(result: object) -> str:
    match result:
        case JoinResult(ErrorCode.NONE):
            members = " ".join(
                f"{m.member_id}{f'({m.group_instance_id})' if m.group_instance_id else ''}{_text(m.metadata)}"
                for m in result.members
            )
            skip = " skip" if result.skip_assignment else ""
            return (
                f"joined {result.member_id} generation={result.generation_id} leader={result.leader} "
                f"{result.protocol_type}/{result.protocol_name}{skip} members=[{members}]"
            )
        case JoinResult():
            return f"{result.error.name} id={result.member_id or '-'}"
        case SyncResult(ErrorCode.NONE):
            return f"synced {result.protocol_type}/{result.protocol_name} {_text(result.assignment)}"
        case ErrorCode():
            return result.name
        case SyncResult():
            return result.error.name
        case LeaveResult():
            members = " ".join(f"{m.member_id}/{m.group_instance_id or ''}:{e.name}" for m, e in result.members)
            return f"{result.error.name} {members}".strip()
        case CommitResult():
            return " ".join(f"{_partition_name(p)}:{error.name}" for p, error in result.errors.items())
        case FetchOffsetsResult():
            offsets = (
                f"{_partition_name(p)}={o.offset}@{o.leader_epoch}/{o.metadata}"
                if o.error is ErrorCode.NONE
                else f"{_partition_name(p)}:{o.error.name}"
                for p, o in result.offsets.items()
            )
            return " ".join([result.error.name, *offsets])
        case DescribedGroup():
            members = " ".join(
                f"{m.member_id}({m.group_instance_id or ''}) {m.client_id}@{m.client_host} "
                f"{_text(m.metadata)} {_text(m.assignment)};"
                for m in result.members
            )
            what = f"{result.protocol_type or '-'}/{result.protocol_name or '-'}"
            return f"{result.error.name} {result.state or '-'} {what} [{members}]"
        case DeleteOffsetsResult():
            return render_errors(result)
        case _:
            raise AssertionError(f"cannot render {result} with {[field.name for field in fields(result)]}")  # type: ignore[arg-type]


def render_errors(result: DeleteOffsetsResult) -> str:
    partitions = (f"{_partition_name(p)}:{error.name}" for p, error in result.errors.items())
    return " ".join([result.error.name, *partitions])


def render_record(record: Record) -> str:
    match record:
        case OffsetRecord(group_id, partition, None):
            return f"{group_id} {_partition_name(partition)} tombstone"
        case OffsetRecord(group_id, partition, value):
            assert value is not None
            expiry = "" if value.expire_timestamp_ms is None else f" expires={value.expire_timestamp_ms - EPOCH_MS}"
            return (
                f"{group_id} {_partition_name(partition)}={value.offset}@{value.leader_epoch}/{value.metadata}{expiry}"
            )
        case GroupRecord(group_id, None):
            return f"{group_id} tombstone"
        case GroupRecord(group_id, group):
            assert group is not None
            members = " ".join(f"{m.member_id}:{_text(m.assignment)}" for m in group.members)
            return (
                f"{group_id} generation={group.generation_id} {group.protocol_type}/{group.protocol_name} "
                f"leader={group.leader} since={group.state_timestamp_ms - EPOCH_MS} [{members}]"
            )
    raise AssertionError(record)


def stable(harness: Harness, group_id: str) -> bool:
    group = harness.machine.groups.get(group_id)
    return group is not None and group.state is GroupState.STABLE
