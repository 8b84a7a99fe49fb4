"""What a broker makes of a disk that fails: refusals, an offline directory, and what is there after a crash."""

from __future__ import annotations

from pathlib import Path

import trio

from kpybroker.control.levers.handles import handles_of
from kpybroker.wire.errors import ErrorCode
from tests.control.methods.test_topology import refused
from tests.support.brokers.hosted_cluster import HostedCluster, eventually, hosted_cluster


async def wait_hits(cluster: HostedCluster, handle_id: int, count: int) -> None:
    with trio.fail_after(60):
        await handles_of(cluster.hosted)[handle_id].hits.wait(count)


async def test_a_full_disk_refuses_appends_until_there_is_space(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await cluster.create_topic("orders", [0])
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        full = await cluster.call("disk_fault", kind="full", after=20)
        assert await cluster.produce("orders", b"2", broker=0) == ErrorCode.KAFKA_STORAGE_ERROR
        assert b"1" in await cluster.records("orders", broker=0)
        await wait_hits(cluster, full["id"], 1)
        handles_of(cluster.hosted).remove(full["id"])
        assert await cluster.produce("orders", b"2", broker=0) == ErrorCode.NONE
        assert cluster.log_end("orders", broker=0) == 2


async def test_an_io_error_takes_the_directory_offline_until_the_broker_starts_again(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 2, log_dirs=f"{tmp_path}/{{}}/a,{tmp_path}/{{}}/b") as cluster:
        await cluster.create_topic("orders", [0, 1])
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        path = "orders-0/*.log"
        failure = await cluster.call("disk_fault", kind="eio", broker=0, path=path, operations=["write"], times=1)
        assert await cluster.produce("orders", b"2", broker=0) == ErrorCode.KAFKA_STORAGE_ERROR
        await wait_hits(cluster, failure["id"], 1)
        assert await cluster.leader("orders", other_than=0) == 1
        assert await cluster.produce("orders", b"2", broker=1) == ErrorCode.NONE
        assert len(cluster[0].logs.dirs.live) == 1
        await cluster.call("broker_down", broker=0)
        await cluster.call("broker_up", broker=0)
        await eventually(lambda: cluster.state("orders")[2] == {0, 1}, "the broker in the ISR again")
        assert cluster.log_end("orders", broker=0) == 2


async def test_a_broker_without_any_directory_is_down_and_can_be_started_again(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 2) as cluster:
        await cluster.create_topic("orders", [0, 1])
        await cluster.call("disk_fault", kind="eio", broker=0, path="*.log", operations=["write"], times=1)
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.KAFKA_STORAGE_ERROR
        await eventually(lambda: 0 not in cluster.hosted.brokers, "the broker has ended")
        assert await cluster.leader("orders") == 1
        await cluster.call("broker_up", broker=0)
        await eventually(lambda: cluster.state("orders")[2] == {0, 1}, "the broker in the ISR again")


async def crash(cluster: HostedCluster) -> None:
    await cluster.call("broker_down", broker=0, how="kill")
    await cluster.call("broker_up", broker=0)
    assert await cluster.leader("orders") == 0


async def test_a_kill_loses_nothing_and_a_crash_before_the_fsync_what_was_not_synced(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await cluster.create_topic("orders", [0])
        for value in (b"1", b"2"):
            assert await cluster.produce("orders", value, broker=0) == ErrorCode.NONE
        await crash(cluster)
        assert cluster.log_end("orders", broker=0) == 2
        await cluster[0].replicas.hosted("orders", 0).flush(2)
        lossy = await cluster.call("disk_fault", kind="crash_before_fsync")
        for value in (b"3", b"4"):
            assert await cluster.produce("orders", value, broker=0) == ErrorCode.NONE
        await cluster[0].replicas.hosted("orders", 0).flush(4)
        assert await cluster.produce("orders", b"5", broker=0) == ErrorCode.NONE
        await crash(cluster)
        await wait_hits(cluster, lossy["id"], 1)
        assert cluster.log_end("orders", broker=0) == 4
        assert await cluster.produce("orders", b"5", broker=0) == ErrorCode.NONE


async def test_nothing_acknowledged_is_lost_where_every_message_is_synced(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await cluster.create_topic("orders", [0], flush_messages="1")
        await cluster.call("disk_fault", kind="crash_before_fsync")
        for number in range(1, 6):
            assert await cluster.produce("orders", b"%d" % number, broker=0) == ErrorCode.NONE
            await crash(cluster)
            assert cluster.log_end("orders", broker=0) == number


async def test_recovery_cuts_a_torn_write(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await cluster.create_topic("orders", [0])
        torn = await cluster.call("disk_fault", kind="torn_write", path="orders-0/*.log")
        for value in (b"1", b"2", b"3"):
            assert await cluster.produce("orders", value, broker=0) == ErrorCode.NONE
        await crash(cluster)
        await wait_hits(cluster, torn["id"], 1)
        assert cluster.log_end("orders", broker=0) == 2
        assert b"3" not in await cluster.records("orders", broker=0)


async def test_an_acknowledgement_waits_for_a_slow_fsync(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await cluster.create_topic("orders", [0], flush_messages="1")
        slow = await cluster.call("disk_fault", kind="slow_fsync", delay_ms=60_000, path="*.log")
        async with trio.open_nursery() as nursery:
            has_responded = trio.Event()

            async def produce() -> None:
                assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
                has_responded.set()

            nursery.start_soon(produce)
            await wait_hits(cluster, slow["id"], 1)
            assert cluster.log_end("orders", broker=0) == 1
            assert not has_responded.is_set()
            assert await cluster.records("orders", broker=0) == b""  # the loop goes on
            handles_of(cluster.hosted).remove(slow["id"])
            await has_responded.wait()


async def test_a_fault_is_described_and_reset_removes_it(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await cluster.create_topic("orders", [0])
        made = await cluster.call("disk_fault", kind="eio", path="*.log", operations=["sync"], after=2, times=1)
        described = dict(handles_of(cluster.hosted)[made["id"]].described())
        assert described["disk"]["operations"] == ["sync"]
        assert (described["id"], described["hits"]) == (made["id"], 0)
        await cluster.call("reset")
        assert handles_of(cluster.hosted).ids == []
        assert cluster.topology.levers(0).files.faults == ()


WRONG: list[tuple[dict[str, object], str, str]] = [
    ({"kind": "full", "delay_ms": 5}, "full takes no `delay_ms`", "leave it out; it is for slow_fsync"),
    ({"kind": "torn_write", "after": 5}, "torn_write takes no `after`", "leave it out; it is for full and eio"),
    ({"kind": "eio", "operations": ["writ"]}, "there is no operation `writ`", "did you mean `write`?"),
    ({"kind": "slow_fsync"}, "without `delay_ms`", "give milliseconds"),
    ({"kind": "eio", "times": 0}, "out of range", "a `times` of 1 or more"),
    ({"kind": "ful"}, "`kind`", '"full"'),
    ({"kind": "full", "broker": 3}, "there is no broker 3", "name one of 0"),
]


async def test_wrong_arguments_are_refused_with_what_is_right(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        for arguments, cause, fix in WRONG:
            error = await refused(cluster, "disk_fault", **arguments)
            assert cause in error.cause
            assert fix in error.fix
        assert handles_of(cluster.hosted).ids == []
