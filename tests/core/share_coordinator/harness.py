"""A harness for the share coordinator's state machine: a clock to advance and a log that can fail.

Commands, one a line; a KEY is `group/topic/partition`, with a topic of a number, and the topics below 10 have three
partitions; numbers that are left out are -1:

    TICKET: init KEY [epoch=N] [start=N]              TICKET: delete KEY
    TICKET: read KEY [leader=N]                       TICKET: summary KEY [leader=N]
    TICKET: write KEY [epoch=N] [leader=N] [start=N] [done=N] [FIRST-LAST:STATE:COUNT...]
    after MS    cold    gone TOPIC                    the clock, and what the shell does by it
    hold, release [ERROR], fail ERROR                 the high watermark stops and moves on; the next append fails
    redundant                                         up to which offset the log is redundant
    reload                                            another coordinator loads the log

After every command the log so far, and what is left of it without the redundant part, are replayed into fresh machines,
whose states must equal the live one's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.share_coordinator.machine import ShareCoordinatorConfig, ShareCoordinatorMachine, StateRequest
from kpybroker.core.share_coordinator.records import (
    ShareRecord,
    ShareSnapshot,
    ShareState,
    decode_record,
    encode_record,
)
from kpybroker.core.share_coordinator.values import (
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    SharePartitionKey,
    StateBatch,
    StateResult,
    SummaryResult,
    WriteState,
)
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget
from tests.support.machine_harness import EPOCH_MS, MachineHarness

CONFIG = ShareCoordinatorConfig(updates_per_snapshot=3, cold_snapshot_interval_ms=1_000)
LogEntry = tuple[int, bytes, bytes | None]


def replayed(log: Iterable[LogEntry]) -> ShareCoordinatorMachine:
    machine = ShareCoordinatorMachine(CONFIG)
    for offset, key, value in log:
        record = decode_record(key, value)
        assert record is not None
        machine.replay(record, offset)
    return machine


def durable_state(machine: ShareCoordinatorMachine) -> dict[SharePartitionKey, ShareState]:
    return {key: tracked.state for key, tracked in machine.states.items()}


class Harness(MachineHarness):
    machine: ShareCoordinatorMachine

    def __init__(self) -> None:
        super().__init__()
        self.machine = ShareCoordinatorMachine(CONFIG)
        self.log: list[LogEntry] = []

    def append(self, record: ShareRecord, write: Any) -> None:
        self.machine.replay(record, len(self.log))
        self.output.append(f"log {len(self.log)} {render_record(record)}")
        self.log.append((len(self.log), *encode_record(record)))

    def render(self, result: object) -> str:
        return render(result)

    def request(self, command: str, name: str, arguments: list[str]) -> StateRequest:
        return request(command, name, arguments)

    def check(self) -> None:
        state = durable_state(self.machine)
        assert durable_state(replayed(self.log)) == state
        kept = self.log[self.machine.redundant_offset or 0 :]
        assert durable_state(replayed(kept)) == state

    # --- commands

    def do_cold(self) -> None:
        self.run(self.machine.snapshot_cold(self.now))

    def do_gone(self, topic: str) -> None:
        self.run(self.machine.delete_topics({_topic_id(topic)}, self.now))

    def do_redundant(self) -> None:
        self.output.append(f"redundant before {self.machine.redundant_offset}")

    def do_reload(self) -> None:
        self.resign()
        self.machine = replayed(self.log)
        self.run(run_to_end(self.machine.activate(self.machine.ids(), self.now, WorkBudget())))


# --- requests from text


def _topic_id(text: str) -> bytes:
    return int(text).to_bytes(16, "big")


def request(command: str, name: str, arguments: list[str]) -> StateRequest:
    group, topic, partition = name.split("/")
    numbers = {key: int(value) for key, value in (one.split("=") for one in arguments if "=" in one)}
    batches = [_batch(one) for one in arguments if "=" not in one]
    of = (_topic_id(topic), int(partition))
    asked: InitializeState | ReadState | WriteState | DeleteState
    match command:
        case "init":
            asked = InitializeState(*of, numbers.get("epoch", -1), numbers.get("start", -1))
        case "read" | "summary":
            asked = ReadState(*of, numbers.get("leader", -1))
        case "write":
            epoch, leader, start, done = (numbers.get(each, -1) for each in ("epoch", "leader", "start", "done"))
            asked = WriteState(*of, epoch, leader, start, done, tuple(batches))
        case _:
            asked = DeleteState(*of)
    return StateRequest(group, asked, 3 if int(topic) < 10 else 0, is_summary=command == "summary")


def _batch(text: str) -> StateBatch:
    return StateBatch(*map(int, text.replace("-", ":").split(":")))


# --- results to text


def _batches(batches: Iterable[StateBatch]) -> str:
    return f"[{' '.join(f'{first}-{last}:{state}:{count}' for first, last, state, count in batches)}]"


def render(result: object) -> str:
    assert isinstance(result, StateResult | ReadResult | SummaryResult)
    if result.error is not ErrorCode.NONE:
        return f"{result.error.name} {result.error_message}"
    match result:
        case ReadResult():
            return f"epoch={result.state_epoch} start={result.start_offset} {_batches(result.state_batches)}"
        case SummaryResult():
            return (
                f"epoch={result.state_epoch} leader={result.leader_epoch} start={result.start_offset} "
                f"done={result.delivery_complete_count}"
            )
    return "ok"


def render_record(record: ShareRecord) -> str:
    key = f"{record.key.group_id}/{int.from_bytes(record.key.topic_id, 'big')}/{record.key.partition}"
    if not isinstance(record, ShareSnapshot):
        return (
            f"update {key} #{record.snapshot_epoch} leader={record.leader_epoch} start={record.start_offset} "
            f"done={record.delivery_complete_count} {_batches(record.batches)}"
        )
    state = record.state
    if state is None:
        return f"tombstone {key}"
    return (
        f"snapshot {key} #{state.snapshot_epoch} epoch={state.state_epoch} leader={state.leader_epoch} "
        f"start={state.start_offset} done={state.delivery_complete_count} {_batches(state.batches)} "
        f"created={state.create_timestamp_ms - EPOCH_MS} written={state.write_timestamp_ms - EPOCH_MS}"
    )
