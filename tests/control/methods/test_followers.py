"""Followers that are held back: the ISR, the high watermark, and that they catch up once the lever is removed."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from kpybroker.control.levers.handles import handles_of
from kpybroker.wire.errors import ErrorCode
from tests.control.methods.test_topology import refused
from tests.support.brokers.hosted_cluster import HostedCluster, eventually, hosted_cluster


def remove(cluster: HostedCluster, handle_id: int) -> None:
    handles_of(cluster.hosted).remove(handle_id)


@pytest.mark.parametrize("protocol", ["3.9-IV0", "2.6-IV0"])
async def test_the_isr_shrinks_to_what_is_asked_for_and_stays_there(tmp_path: Path, protocol: str) -> None:
    async with hosted_cluster(tmp_path, inter_broker_protocol_version=protocol) as cluster:
        await cluster.create_topic("orders", [0, 1, 2], min_insync_replicas="2")
        shrunk = await cluster.call("shrink_isr", topic="orders", partition=0, to=[0, 1])
        assert cluster[0].replicas.hosted("orders", 0).isr == {0, 1}
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        assert cluster.log_end("orders", broker=2) == 0
        again = await cluster.call("shrink_isr", topic="orders", partition=0, to=[0])
        assert await cluster.produce("orders", b"2", broker=0) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert cluster[0].replicas.hosted("orders", 0).isr == {0}
        described = dict(handles_of(cluster.hosted)[again["id"]].described())
        assert described["shrink_isr"] == {"topic": "orders", "partition": 0, "to": [0]}
        remove(cluster, again["id"])
        await eventually(lambda: cluster[0].replicas.hosted("orders", 0).isr == {0, 1}, "1 is in the ISR again")
        assert await cluster.produce("orders", b"2", broker=0) == ErrorCode.NONE
        remove(cluster, shrunk["id"])
        await eventually(lambda: cluster[0].replicas.hosted("orders", 0).isr == {0, 1, 2}, "2 is in the ISR again")
        await eventually(lambda: cluster.log_end("orders", broker=2) == 2, "2 has caught up")


async def test_what_the_isr_cannot_become_is_refused_and_holds_no_one(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1])
        error = await refused(cluster, "shrink_isr", topic="orders", partition=0, to=[1])
        assert error.cause == "broker 0 leads orders-0"
        error = await refused(cluster, "shrink_isr", topic="orders", partition=0, to=[0, 2])
        assert (error.cause, error.fix) == ("the ISR of orders-0 is 0, 1", "give some of these")
        error = await refused(cluster, "lag_follower", topic="orders", partition=0, broker=0)
        assert (error.cause, error.fix) == ("broker 0 does not follow orders-0", "give one of 1")
        await cluster.call("move_leader", topic="orders", partition=0, to=None)
        error = await refused(cluster, "shrink_isr", topic="orders", partition=0, to=[0])
        assert error.cause == "orders-0 has no leader"
        assert handles_of(cluster.hosted).ids == []
        assert cluster.topology.holds.follower_ends == {}


async def test_the_high_watermark_waits_for_a_follower_that_lags(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        lag = await cluster.call("lag_follower", topic="orders", partition=0, broker=2)
        assert lag["offset"] == 1
        async with trio.open_nursery() as nursery:
            has_responded = trio.Event()

            async def produce() -> None:
                assert await cluster.produce("orders", b"2", broker=0) == ErrorCode.NONE
                has_responded.set()

            nursery.start_soon(produce)
            await eventually(lambda: cluster.log_end("orders", broker=1) == 2, "the other follower has it")
            assert cluster.log_end("orders", broker=2) == 1
            assert cluster.high_watermark("orders", broker=0) == 1
            assert not has_responded.is_set()
            assert b"2" not in await cluster.records("orders", broker=0)
            remove(cluster, lag["id"])
            await has_responded.wait()
        assert cluster.high_watermark("orders", broker=0) == 2
        await eventually(lambda: cluster.log_end("orders", broker=2) == 2, "it has caught up")


async def test_a_follower_gets_as_far_as_the_offset(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1])
        lag = await cluster.call("lag_follower", topic="orders", partition=0, broker=1, offset=3)
        for value in (b"1", b"2", b"3", b"4", b"5"):
            assert await cluster.produce("orders", value, broker=0, acks=1) == ErrorCode.NONE
        await eventually(lambda: cluster.high_watermark("orders", broker=0) == 3, "three records are committed")
        assert cluster.log_end("orders", broker=1) == 3
        remove(cluster, lag["id"])
        await eventually(lambda: cluster.high_watermark("orders", broker=0) == 5, "all are")


async def test_a_follower_that_lags_too_long_leaves_the_isr(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, replica_lag_time_max_ms="200") as cluster:
        await cluster.create_topic("orders", [0, 1])
        await cluster.call("lag_follower", topic="orders", partition=0, broker=1)
        assert await cluster.produce("orders", b"1", broker=0) == ErrorCode.NONE
        assert cluster[0].replicas.hosted("orders", 0).isr == {0}
        await cluster.call("reset")
        await eventually(lambda: cluster[0].replicas.hosted("orders", 0).isr == {0, 1}, "it is in the ISR again")


async def test_a_follower_lags_behind_the_next_leader_too(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        await cluster.call("lag_follower", topic="orders", partition=0, broker=2)
        await cluster.call("move_leader", topic="orders", partition=0, to=1)
        assert await cluster.produce("orders", b"1", broker=1, acks=1) == ErrorCode.NONE
        await eventually(lambda: cluster.log_end("orders", broker=0) == 1, "the other follower has it")
        assert cluster.log_end("orders", broker=2) == 0
