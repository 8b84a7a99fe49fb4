"""States of share partitions next to Kafka 4.3.1: the state machine and its own class, our log and its tool.

Both machines get the same scripts, and give the same responses, the same records byte for byte, and the same offset up
to which the log is redundant. Neighbours of one state, which Kafka may leave as two batches, are one before the
comparison. Records of one write are in the order of a hash map in Kafka's: ours are put into it, so that the offsets
agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from confluent_kafka import AcknowledgeType, ShareConsumer

from compat_tests.conftest import StartBroker
from compat_tests.deps import ROOT
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.groups.serving import group_broker
from compat_tests.support.tools import Tools, program_command, run_process
from compat_tests.support.waiting import eventually
from kpybroker.broker.loop.steps import run_to_end
from kpybroker.core.machine import Now
from kpybroker.core.share_coordinator.batches import combine
from kpybroker.core.share_coordinator.machine import (
    Result,
    ShareCoordinatorConfig,
    ShareCoordinatorMachine,
    ShareOutcome,
    StateRequest,
)
from kpybroker.core.share_coordinator.records import ShareRecord, ShareUpdate, decode_record, encode_record
from kpybroker.core.share_coordinator.values import (
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    StateBatch,
    SummaryResult,
    WriteState,
)
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.running_broker import create_topic, running_broker

STATES = ROOT / "compat_tests" / "workers" / "ShareStates.java"
SCRIPTS, STEPS = 60, 150
PARTITIONS = 3
FIRST_UNKNOWN_TOPIC = 10
Asked = InitializeState | ReadState | WriteState | DeleteState
PARTITION = "__share_group_state-0"
KEYS: dict[str, Any] = {
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
    "share_coordinator_snapshot_update_records_per_snapshot": "2",
}
Json = Any


def script(random: Random) -> Iterator[str]:
    """For few share partitions, so that they are written often, and few offsets, so that they overlap."""
    yield f"new {random.choice([0, 1, 3, 10])} {random.choice([1, 50, 400])}"
    time = 1_000_000
    for _ in range(STEPS):
        time += random.randrange(40)
        yield f"time {time}"
        yield _command(random)


def _command(random: Random) -> str:
    kind = random.choices(
        ["write", "read", "init", "summary", "delete", "cold", "gone"], weights=[60, 15, 8, 8, 3, 5, 1]
    )[0]
    if kind == "cold":
        return "cold"
    topic = random.choices([1, 2, FIRST_UNKNOWN_TOPIC], weights=[20, 20, 1])[0]
    if kind == "gone":
        return f"gone {topic}"
    partition = random.choices([0, 1, 2, -1, 3], weights=[20, 10, 10, 1, 1])[0]
    where = f"{kind} {random.choice(['g', 'grüße:1'])} {topic} {partition}"
    start = random.choice([-1, -1, -1, random.randrange(40)])
    match kind:
        case "init":
            return f"{where} {random.randrange(-1, 4)} {start}"
        case "read" | "summary":
            return f"{where} {random.randrange(-1, 6)}"
        case "write":
            epochs = (
                f"{random.choice([-1, 3, 3, random.randrange(4)])} {random.choice([-1, 5, 5, random.randrange(6)])}"
            )
            return f"{where} {epochs} {start} {random.randrange(-1, 30)} {_batches(random)}"
    return where


def _batches(random: Random) -> str:
    found = []
    for _ in range(random.choice([0, 1, 1, 2, 5])):
        first = random.randrange(60)
        last = first + random.choice([0, 1, random.randrange(20)])
        found.append(f"{first}-{last}:{random.choice([0, 2, 4])}:{random.randrange(1, 4)}")
    return ",".join(found) or "-"


class Ours:
    """Our state machine, with the commands of ShareStates.java."""

    def __init__(self) -> None:
        self.machine = ShareCoordinatorMachine(ShareCoordinatorConfig())
        self.now = Now(0, 0)
        self.offset = 0
        self.keys: list[str] = []

    def perform(self, line: str, kafka: str) -> str:
        """`kafka` is the response to the same command: the order of the records in it is taken from there."""
        self.keys = [record.partition("=")[0] for record in kafka.split(" | ")[1].split()] if " | " in kafka else []
        command, *words = line.split(" ")
        match command:
            case "new":
                self.machine = ShareCoordinatorMachine(ShareCoordinatorConfig(int(words[0]), int(words[1])))
                self.offset = 0
                return "ok"
            case "time":
                self.now = Now(int(words[0]), 0)
                return "ok"
            case "cold":
                return self.done("cold", self.machine.snapshot_cold(self.now))
            case "gone":
                return self.done("gone", self.machine.delete_topics({topic_id(words[0])}, self.now))
        group, topic, partition = words[0], int(words[1]), int(words[2])
        request = StateRequest(
            group,
            _asked(command, topic_id(words[1]), partition, words[3:]),
            PARTITIONS if topic < FIRST_UNKNOWN_TOPIC else 0,
            is_summary=command == "summary",
        )
        return self.done("", self.machine.handle(request, "ticket", self.now))

    def done(self, response: str, outcome: ShareOutcome) -> str:
        records, settled = [], []
        for write in outcome.writes:
            for record in sorted(write.records, key=self._place):
                key, value = encode_record(record)
                records.append(f"{key.hex()}={'' if value is None else value.hex()}")
                self.machine.replay(record, self.offset)
                self.offset += 1
            settled.append(write.done)
        settled += [read.done for read in outcome.reads]
        for done in settled:
            for ticket, result in self.machine.settle(done, ErrorCode.NONE, self.now).replies:
                assert ticket == "ticket"
                response = _shown(result)
        return f"{response} | {' '.join(records)} | {self.machine.redundant_offset or '-'}"

    def _place(self, record: ShareRecord) -> int:
        key = encode_record(record)[0].hex()
        assert key in self.keys, f"Kafka does not write {record}"
        return self.keys.index(key)


def topic_id(number: str) -> bytes:
    return (1).to_bytes(8, "big") + int(number).to_bytes(8, "big")


def _asked(command: str, topic: bytes, partition: int, words: list[str]) -> Asked:
    match command:
        case "init":
            return InitializeState(topic, partition, int(words[0]), int(words[1]))
        case "read" | "summary":
            return ReadState(topic, partition, int(words[0]))
        case "write":
            epoch, leader, start, done = map(int, words[:4])
            return WriteState(topic, partition, epoch, leader, start, done, tuple(_parsed(words[4])))
    return DeleteState(topic, partition)


def _parsed(batches: str) -> Iterator[StateBatch]:
    for batch in batches.split(",") if batches not in ("-", "") else ():
        yield StateBatch(*map(int, batch.replace("-", ":").split(":")))


def _shown(result: object) -> str:
    assert isinstance(result, Result)
    fields = [str(int(result.error)), result.error_message or "null"]
    if isinstance(result, ReadResult):
        batches = ",".join(f"{one.first}-{one.last}:{one[2]}:{one[3]}" for one in result.state_batches)
        fields += [str(result.state_epoch), str(result.start_offset), batches]
    elif isinstance(result, SummaryResult):
        numbers = (result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count)
        fields += map(str, numbers)
    return ";".join(fields)


def compared(line: str) -> str:
    """A line, with neighbours of one state as one batch, and messages of errors as whether there is one."""
    if " | " not in line:
        return line
    response, records, redundant = line.split(" | ")
    fields = response.split(";")
    if len(fields) > 1 and fields[1] != "null" and not fields[1].endswith(("number.", "not allowed.")):
        fields[1] = "Kafka's words for this error"
    if len(fields) == 5:
        merged = combine((), list(_parsed(fields[4])), -1)
        fields[4] = ",".join(f"{one.first}-{one.last}:{one[2]}:{one[3]}" for one in merged)
    return f"{';'.join(fields)} | {' '.join(_merged(one) for one in records.split())} | {redundant}"


def _merged(record: str) -> str:
    key, value = (bytes.fromhex(one) for one in record.split("="))
    decoded = decode_record(key, value or None)
    assert decoded is not None
    again = encode_record(decoded)
    assert again == (key, value or None), "what Kafka writes is read and written again as it is"
    if isinstance(decoded, ShareUpdate):
        return str(replace(decoded, batches=combine((), decoded.batches, -1)))
    state = decoded.state
    return f"{decoded.key} {state and replace(state, batches=combine((), state.batches, -1))}"


def ask_kafka(commands: Iterable[str]) -> list[str]:
    """One line for each command."""
    asked = list(commands)
    program = program_command("4.x", STATES, ["-Dfile.encoding=UTF-8"])
    lines = run_process(program, "\n".join(asked) + "\n").out.splitlines()
    assert len(lines) == len(asked)
    return lines


@pytest.mark.wide
def test_the_same_scripts_write_the_same_records() -> None:
    commands = [command for seed in range(SCRIPTS) for command in script(Random(seed))]
    ours = Ours()
    for command, kafka in zip(commands, ask_kafka(commands), strict=True):
        assert compared(ours.perform(command, kafka)) == compared(kafka), command


# --- the log


async def write_states(directory: Path) -> None:
    """Both types of records, a snapshot by count, a tombstone."""
    async with running_broker(directory, **KEYS) as broker:
        topic_id = await create_topic(broker, "orders", 2)
        persister = broker.coordinators.share_persister
        await persister.initialize("grüße:1", [InitializeState(topic_id, 0, 1, 7), InitializeState(topic_id, 1, 1)])
        await persister.read("grüße:1", [ReadState(topic_id, 0, 3)])
        for first in (7, 20, 11):
            batches = (StateBatch(first, first + 3, 2, 1), StateBatch(first + 4, first + 4, 0, 2))
            write = WriteState(topic_id, 0, 1, 3, -1, 4, batches)
            (result,) = await run_to_end(persister.write("grüße:1", [write]))
            assert result.error == 0
        await persister.delete("grüße:1", [DeleteState(topic_id, 1)])


def dumped_by_kafka(directory: Path) -> list[Json]:
    words = ("--share-group-state-decoder", "--deep-iteration", "--files", str(directory / PARTITION / f"{0:020d}.log"))
    out = Tools("4.x", "-").run_main("org.apache.kafka.tools.DumpLogSegments", *words).out
    rows = []
    for line in out.splitlines():
        if " key: " in line:
            key, _, value = line.partition(" key: ")[2].partition(" payload: ")
            rows.append((json.loads(key), json.loads(value) if value.strip() not in ("", "<DELETE>", "null") else None))
    assert rows, out
    return rows


def dumped_by_us(directory: Path) -> list[Json]:
    """In the words of DumpLogSegments."""
    out = CommandLine("-").run("log", "dump", "--records", "--output", "json", str(directory / PARTITION)).lines
    rows = [row for row in map(json.loads, out) if row["type"] == "record"]
    return [
        (
            {"type": str(row["key"]["version"]), "data": row["key"]["data"]},
            row["value"] and {"version": str(row["value"]["version"]), "data": row["value"]["data"]},
        )
        for row in rows
    ]


@pytest.mark.wide
def test_kafkas_tool_and_ours_show_the_same_records(tmp_path: Path) -> None:
    trio.run(write_states, tmp_path)
    theirs, ours = dumped_by_kafka(tmp_path), dumped_by_us(tmp_path)
    assert theirs == ours
    assert [(key["type"], value is None) for key, value in ours] == [
        ("0", False),
        ("0", False),
        ("1", False),
        ("1", False),
        ("0", False),
        ("1", False),
        ("0", True),
    ]


# --- a broker that is killed


def acknowledged(bootstrap: str, kinds: Mapping[str, AcknowledgeType]) -> set[str]:
    """What a member of confluent-kafka gets until it has as many records as there are `kinds`, each acknowledged so."""
    seen: set[str] = set()
    consumer = ShareConsumer(
        {"bootstrap.servers": bootstrap, "group.id": "work", "share.acknowledgement.mode": "explicit"}
    )
    consumer.subscribe(["jobs"])

    def has_all() -> bool:
        for message in consumer.poll(0.2):
            assert message.error() is None
            seen.add(message.value().decode())
            consumer.acknowledge(message, kinds.get(message.value().decode(), AcknowledgeType.ACCEPT))
        assert set(consumer.commit_sync().values()) <= {None}
        return len(seen) >= len(kinds)

    eventually(has_all, f"{len(kinds)} records")
    consumer.close()
    return seen


@pytest.mark.wide
def test_what_was_acknowledged_before_a_kill_stays_so(own_broker: StartBroker) -> None:
    """What was accepted or rejected is not sent again, and what was released is."""
    broker = group_broker(own_broker)
    quick.create_topic(broker.bootstrap, "jobs", 1)
    reset = ("--entity-type", "groups", "--entity-name", "work", "--add-config", "share.auto.offset.reset=earliest")
    Tools("4.x", broker.bootstrap).run("configs", "--alter", *reset)
    quick.fill(broker.bootstrap, "jobs", [f"job-{number}" for number in range(6)], 0)
    kinds = [*[AcknowledgeType.ACCEPT] * 3, AcknowledgeType.REJECT, *[AcknowledgeType.RELEASE] * 2]
    assert len(acknowledged(broker.bootstrap, {f"job-{number}": kind for number, kind in enumerate(kinds)})) == 6
    broker.kill()
    broker.start()
    quick.fill(broker.bootstrap, "jobs", ["job-6"], 0)
    left = {"job-4", "job-5", "job-6"}
    assert acknowledged(broker.bootstrap, dict.fromkeys(left, AcknowledgeType.ACCEPT)) == left
