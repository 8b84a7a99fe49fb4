"""`kpybroker verify-replicas` on three brokers: equal logs, a changed file, a damaged one, a broker that is away."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.command_line import CommandLine
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from kpybroker.wire.records.batch import computed_crc, iter_batches

pytestmark = pytest.mark.wide
CRC_AT = 17
"""In a batch of format v2."""
VALUES = [f"value {n}" for n in range(20)]
CHANGED_AT = 7


def write(cluster: Cluster, topic: str) -> None:
    """A batch for each value."""
    for value in VALUES:
        quick.fill(cluster.bootstrap, topic, [value])


@contextmanager
def changed(cluster: Cluster, broker_id: int, topic: str, *, is_sealed: bool) -> Iterator[None]:
    """Another byte in the record at CHANGED_AT in this broker's file; sealed with the checksum that belongs to it."""
    broker = cluster.brokers[broker_id]
    log = broker.data_dir / f"{topic}-0" / "00000000000000000000.log"
    broker.stop()
    before = log.read_bytes()
    data = bytearray(before)
    for at, header in iter_batches(data):
        if header.base_offset <= CHANGED_AT <= header.last_offset:
            data[at + header.size - 2] ^= 1
            if is_sealed:
                data[at + CRC_AT : at + CRC_AT + 4] = computed_crc(data, at, header).to_bytes(4, "big")
    log.write_bytes(data)
    broker.start()
    cluster.wait_for_isr(topic, {1, 2, 3})
    try:
        yield
    finally:
        broker.stop()
        log.write_bytes(before)
        broker.start()


def test_a_changed_follower_is_found(cluster: Cluster, name: str, tmp_path: Path) -> None:
    """With its right checksum only a comparison finds it, ours and Kafka's tool; put back, all are equal."""
    cluster.create(name, "1:2:3,2:3:1")
    write(cluster, name)
    assert statuses(cluster, name) == ["equal", "equal"]
    with changed(cluster, 3, name, is_sealed=True):
        found = CommandLine(cluster.bootstrap).run("verify-replicas", name, code=1)
        assert found.err.splitlines()[0] == f"kpybroker: {name}-0: replicas 1 and 3 differ at offset {CHANGED_AT}"
        assert found.err.splitlines()[1].startswith("fix: compare the files: kpybroker log dump")
        assert statuses(cluster, name, code=1) == ["failed", "equal"]
        assert "unmatched checksum" in kafkas_verdict(cluster, name, tmp_path / "verdict")
    cluster.wait_for_isr(name, {1, 2, 3})
    assert statuses(cluster, name) == ["equal", "equal"]


def statuses(cluster: Cluster, topic: str, code: int = 0) -> list[str]:
    rows = CommandLine(cluster.bootstrap).json("verify-replicas", topic, code=code)
    assert {row["to"] for row in rows} <= {0, len(VALUES)}
    return [row["status"] for row in rows]


def kafkas_verdict(cluster: Cluster, topic: str, file: Path) -> str:
    """What ReplicaVerificationTool of 3.9.1 prints until it reports a difference; it does not end by itself."""
    where = ("--topics-include", topic, "--time", "-2", "--report-interval-ms", "500")
    command = Tools("3.9.1", cluster.bootstrap).command("replica-verification", *where)
    with file.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        return eventually(lambda: file.read_text() if "unmatched" in file.read_text() else None, "a verdict")
    finally:
        process.kill()
        process.wait()


def test_a_damaged_file_is_found(cluster: Cluster, name: str) -> None:
    """The broker itself reads it only when it is asked to."""
    cluster.create(name, "1:2:3")
    write(cluster, name)
    with changed(cluster, 2, name, is_sealed=False):
        found = CommandLine(cluster.bootstrap).run("verify-replicas", name, code=1).err
        assert f"{name}-0: replica 2 after offset " in found
        assert f"the batch at offset {CHANGED_AT} is corrupt" in found


def test_a_broker_that_is_away(cluster: Cluster, name: str) -> None:
    """What it has is not compared, and that is an error; other partitions are."""
    cluster.create(name, "1:2,3:2,1:3")
    write(cluster, name)
    cluster.brokers[2].stop()
    command = CommandLine(cluster.brokers[1].bootstrap)
    rows = command.json("verify-replicas", name, "--timeout", "5", code=1)
    assert [row["status"] for row in rows] == ["failed", "failed", "equal"]
    cluster.brokers[2].start()
    cluster.wait_for_isr(name, {1, 2})
    assert statuses(cluster, name) == ["equal"] * 3


def test_names_that_are_not_there(cluster: Cluster, name: str) -> None:
    command = CommandLine(cluster.bootstrap)
    assert f"no topic matches no-{name}*" in command.run("verify-replicas", f"no-{name}*", code=1).err
    assert command.run("verify-replicas", code=2).err.startswith("kpybroker: Missing argument 'TOPIC...'")
