"""Records of `__share_group_state` in our log, read by DumpLogSegments of Kafka 4.3.1 and by `kpybroker log dump`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from compat_tests.support.command_line import CommandLine
from compat_tests.support.tools import Tools
from kpybroker.core.share_coordinator.values import DeleteState, InitializeState, ReadState, StateBatch, WriteState
from tests.support.brokers.running_broker import create_topic, running_broker

PARTITION = "__share_group_state-0"
KEYS: dict[str, Any] = {
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
    "share_coordinator_snapshot_update_records_per_snapshot": "2",
}
Json = Any


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
            (result,) = await persister.write("grüße:1", [write])
            assert result.error == 0
        await persister.delete("grüße:1", [DeleteState(topic_id, 1)])


def read_by_kafka(directory: Path) -> list[Json]:
    words = ("--share-group-state-decoder", "--deep-iteration", "--files", str(directory / PARTITION / f"{0:020d}.log"))
    out = Tools("4.x", "-").run_main("org.apache.kafka.tools.DumpLogSegments", *words).out
    rows = []
    for line in out.splitlines():
        if " key: " in line:
            key, _, value = line.partition(" key: ")[2].partition(" payload: ")
            rows.append((json.loads(key), json.loads(value) if value.strip() not in ("", "<DELETE>", "null") else None))
    assert rows, out
    return rows


def read_by_us(directory: Path) -> list[Json]:
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
def test_kafkas_tool_and_ours_read_the_same_records(tmp_path: Path) -> None:
    trio.run(write_states, tmp_path)
    theirs, ours = read_by_kafka(tmp_path), read_by_us(tmp_path)
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
