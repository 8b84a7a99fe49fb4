"""A member of a mirror's group: what it commits, and when everything is copied."""

from __future__ import annotations

import pytest

from kpybroker.client.actions.consume import ConsumeOptions
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.transfer.member import MirrorReader
from tests.client.conftest import Run

READS_MAX = 600
"""Each waits for 0.1 s at most."""


@pytest.fixture
def topic(run: Run, name: str) -> str:
    """Two partitions with three records each."""
    run("topic", "create", name, "-p", "2")
    for partition in ("0", "1"):
        assert run("topic", "produce", name, "-p", partition, stdin=b"a\nb\nc\n").code == 0
    return name


def member(bootstrap: str, topic: str, *, ends: bool = True, session_ms: int = 45_000) -> MirrorReader:
    settings = load(Connection(bootstrap, None, (f"session.timeout.ms={session_ms}",)))
    wanted = {(topic, number): Bounds(0, 3) for number in (0, 1)} if ends else {}
    return MirrorReader(settings, ConsumeOptions([topic], group=topic, exit_at_end=ends), wanted)


def committed(run: Run, group: str) -> dict[int, int]:
    (row,) = run("group", "describe", group, "--format", "json").json
    return {one["partition"]: one["current_offset"] for one in row["offsets"] if one["current_offset"] is not None}


def read(reader: MirrorReader, *, until_done: bool = True) -> int:
    """How many records it reads, and marks as copied, until it is done or has some."""
    count = 0
    for _ in range(READS_MAX):
        messages = reader.read(100)
        if messages:
            reader.printed(messages)
        count += len(messages)
        if reader.is_done or (count and not until_done):
            return count
    raise AssertionError(f"{count} records, and no end")


def test_each_batch_is_committed_at_once(run: Run, bootstrap: str, topic: str) -> None:
    reader = member(bootstrap, topic, ends=False)
    count = 0
    while count < 6:
        count += read(reader, until_done=False)
        assert sum(committed(run, topic).values()) == count
    reader.close()
    assert committed(run, topic) == {0: 3, 1: 3}


def test_what_was_read_and_not_copied_is_not_committed(run: Run, bootstrap: str, topic: str) -> None:
    reader = member(bootstrap, topic, ends=False)
    for _ in range(READS_MAX):
        if reader.read(100):
            break
    reader.close()
    again = member(bootstrap, topic)
    assert read(again) == 6
    again.close()


def test_it_is_not_done_while_another_member_holds_partitions(run: Run, bootstrap: str, topic: str) -> None:
    """One that is alive and copies nothing: the end of the own partition is not the end of all."""
    idle = member(bootstrap, topic, ends=False, session_ms=6000)
    while idle._left is None:
        idle.read(1)
    reader = member(bootstrap, topic)
    for _ in range(READS_MAX):
        for message in reader.read(100):
            reader.printed([message])
        idle.consumer.poll(0)
        if reader._own and not reader._left:
            break
    assert len(reader._own) == 1
    assert not reader.is_done
    idle.close()
    assert read(reader) == 3
    assert committed(run, topic) == {0: 3, 1: 3}
    reader.close()
