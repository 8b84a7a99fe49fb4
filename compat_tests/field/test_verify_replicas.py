"""`kpybroker verify-replicas` and ReplicaVerificationTool of 3.9.1: both find a follower whose file was changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.field.era import Running
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.command_line import CommandLine
from kpybroker.wire.records.batch import computed_crc, iter_batches

CRC_OFFSET = 17
"""In a batch of format v2."""
VALUES = [f"value {n}" for n in range(20)]


def change_a_record(log: Path, offset: int) -> None:
    """Another last byte of the batch at this offset, with the checksum that belongs to it."""
    data = bytearray(log.read_bytes())
    for at, header in iter_batches(data):
        if header.base_offset <= offset <= header.last_offset:
            data[at + header.size - 2] ^= 1
            data[at + CRC_OFFSET : at + CRC_OFFSET + 4] = computed_crc(data, at, header).to_bytes(4, "big")
    log.write_bytes(data)


@pytest.mark.wide
def test_a_changed_follower_is_found(cluster: Cluster, name: str, tmp_path: Path) -> None:
    cluster.create(name, "1:2")
    for value in VALUES:
        quick.fill(cluster.bootstrap, name, [value])
    command = CommandLine(cluster.bootstrap)
    (row,) = command.json("verify-replicas", name)
    assert (row["status"], row["from"], row["to"], row["replicas"]) == ("equal", 0, len(VALUES), [1, 2])

    cluster.brokers[2].stop()
    change_a_record(cluster.brokers[2].data_dir / f"{name}-0" / "00000000000000000000.log", 7)
    cluster.brokers[2].start()
    cluster.wait_for_isr(name, {1, 2})
    found = command.run("verify-replicas", name, code=1)
    assert f"{name}-0: replicas 1 and 2 differ at offset 7" in found.err
    # those of 0.8 and 0.10 cannot read from followers any more
    which = ("--topics-include", name, "--report-interval-ms", "500", "--time", "-2")
    tool = Running(cluster.tools.command("replica-verification", *which), tmp_path / "output")
    try:
        assert f"partition {name}-0 has unmatched checksum at offset 7" in tool.wait_for("unmatched checksum")
    finally:
        tool.kill()
