"""Moving the clock moves what Kafka remembers, timer by timer, and nothing that waits for a client or a peer."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.control.errors import ControlError
from kpybroker.control.hosted import Hosted
from kpybroker.core.group.values import JoinResult
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from tests.support.brokers.hosted import call, controlled, plans, until
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.brokers.transactional import Producer, loaded, read
from tests.support.requests.group_requests import join, stable_member

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


async def advance(hosted: Hosted, ms: int) -> None:
    before = hosted.clock.time_ms()
    assert (await call(hosted, "advance", ms=ms))["now_ms"] >= before + ms


async def with_coordinators(broker: Broker) -> Broker:
    for kind in (0, 1):
        found = await ask(broker, FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]), 4)
        assert found.coordinators[0].error_code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    await until(
        lambda: broker.metadata.contains("__consumer_offsets") and broker.metadata.contains("__transaction_state")
    )
    await loaded(broker)
    return broker


async def heartbeat(broker: Broker, generation: int, member: str = "c-1") -> ErrorCode:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member)
    return ErrorCode((await ask(broker, request, 3)).error_code)


async def commit(broker: Broker, offset: int) -> None:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = OffsetCommitRequest(group_id="g", topics=[topic])
    response = await ask(broker, request, 6)
    assert response.topics[0].partitions[0].error_code == 0


async def produce(hosted: Hosted, *records: dict[str, Any], topic: str = "t") -> None:
    await call(hosted, "produce", topic=topic, records=list(records))


async def values(hosted: Hosted, topic: str = "t") -> list[str]:
    return [record["value"] for record in await call(hosted, "records", topic=topic)]


# --- what follows the clock


async def test_the_clock_says_where_it_is(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        before = time.time() * 1000
        assert abs((await call(hosted, "clock"))["ahead_ms"]) <= 1
        await advance(hosted, DAY)
        now = await call(hosted, "clock")
        after = time.time() * 1000
        assert DAY - (after - before) - 1 <= now["ahead_ms"] <= DAY
        assert before + DAY - (after - before) - 1 <= now["now_ms"] <= after + DAY + 1


async def test_a_member_that_sends_no_heartbeat_is_removed_at_its_session_timeout(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        broker = await with_coordinators(hosted.brokers[0])
        await stable_member(broker)  # its session timeout is 6 s
        await advance(hosted, 5_500)
        assert await heartbeat(broker, 1) is ErrorCode.NONE
        await advance(hosted, 5_500)
        assert await heartbeat(broker, 1) is ErrorCode.NONE
        await advance(hosted, 6_100)
        assert await heartbeat(broker, 1) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_rebalance_ends_at_its_timeout_and_the_waiting_join_gets_its_response(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        broker = await with_coordinators(hosted.brokers[0])
        await stable_member(broker)
        responses: list[JoinResult] = []

        async def second() -> None:
            responses.append(await broker.groups.ask(join(new_id="c-2", session_ms=300_000)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(second)
            await trio.testing.wait_all_tasks_blocked()
            await advance(hosted, 5_000)
            assert responses == []
            await advance(hosted, 56_000)  # c-1 has not joined again: its session is over, and so is the rebalance
        assert responses[0].error is ErrorCode.NONE
        assert responses[0].generation_id == 2


async def test_a_transaction_is_aborted_at_its_timeout(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        broker = await with_coordinators(hosted.brokers[0])
        await create_topic(broker, "t")
        producer = Producer(broker, timeout_ms=60_000)
        assert await producer.init() is ErrorCode.NONE
        assert await producer.add(0) is ErrorCode.NONE
        assert await producer.write(b"a") is ErrorCode.NONE
        await advance(hosted, 55_000)
        assert broker.transactions.describe("x").state == "Ongoing"
        await advance(hosted, 6_000)
        assert broker.transactions.describe("x").state == "CompleteAbort"
        assert await read(broker) == []
        assert await producer.end(True) is ErrorCode.PRODUCER_FENCED


async def test_retention_deletes_what_is_over_when_the_advance_ends(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        await create_topic(hosted.brokers[0], "t", retention_ms=str(HOUR))
        await produce(hosted, {"value": "a"})
        await advance(hosted, HOUR - MINUTE)
        assert await values(hosted) == ["a"]
        await produce(hosted, {"value": "b"})  # in the same segment, which is as old as its newest record
        await advance(hosted, 2 * MINUTE)
        assert await values(hosted) == ["a", "b"]
        await advance(hosted, HOUR)
        assert await values(hosted) == []


async def test_a_producer_is_forgotten_at_its_expiration(tmp_path: Path) -> None:
    async with controlled(tmp_path, producer_id_expiration_ms=str(HOUR)) as (hosted, _):
        broker = await with_coordinators(hosted.brokers[0])
        await create_topic(broker, "t")
        producer = Producer(broker)
        await producer.init()
        await producer.transact(b"a")
        log = broker.logs.get("t", 0)
        assert log is not None
        assert set(log.producers.producers) == {producer.producer_id}
        await advance(hosted, 50 * MINUTE)
        assert set(log.producers.producers) == {producer.producer_id}
        await advance(hosted, 11 * MINUTE)
        assert set(log.producers.producers) == set()


@pytest.mark.not_quick
async def test_records_are_compacted_once_they_are_old_enough(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        await create_topic(
            hosted.brokers[0],
            "t",
            cleanup_policy="compact",
            min_compaction_lag_ms=str(HOUR),
            min_cleanable_dirty_ratio="0.01",
            segment_ms=str(MINUTE),
        )
        for value in ("1", "2"):
            await produce(hosted, {"key": "k", "value": value})
        await advance(hosted, 2 * MINUTE)
        await produce(hosted, {"key": "other", "value": "3"})  # rolls the segment
        await advance(hosted, 30 * MINUTE)
        assert await values(hosted) == ["1", "2", "3"]
        await advance(hosted, 31 * MINUTE)
        assert await values(hosted) == ["2", "3"]


async def test_offsets_expire_with_the_retention_of_offsets(tmp_path: Path) -> None:
    async with controlled(tmp_path, offsets_retention_minutes="60") as (hosted, _):
        broker = await with_coordinators(hosted.brokers[0])
        await create_topic(broker, "t")
        await commit(broker, 7)
        await advance(hosted, 59 * MINUTE)
        assert [one["offset"] for one in await call(hosted, "committed", group="g")] == [7]
        await advance(hosted, 12 * MINUTE)
        assert await call(hosted, "committed", group="g") == []


async def test_idle_connections_are_closed(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        host, port = hosted.brokers[0].bound[0].listener.address[:2]
        async with await trio.open_tcp_stream(host, port) as client:
            await until(lambda: hosted.brokers[0].server.connection_count == 1)
            await advance(hosted, 9 * MINUTE)
            assert hosted.brokers[0].server.connection_count == 1
            await advance(hosted, 3 * MINUTE)
            assert hosted.brokers[0].server.connection_count == 0
            assert await client.receive_some() == b""


# --- what does not


async def test_a_long_poll_goes_on(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        broker = hosted.brokers[0]
        await create_topic(broker, "t")
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=10 * MINUTE,
            min_bytes=1,
            max_bytes=1000,
            topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])],
        )
        responses: list[Any] = []

        async def poll() -> None:
            responses.append(await ask(broker, request, 11))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await trio.testing.wait_all_tasks_blocked()
            await advance(hosted, HOUR)
            assert responses == []
            await produce(hosted, {"value": "a"})
        assert responses[0].responses[0].partitions[0].high_watermark == 1


async def test_a_cluster_stays_together(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No session ends, no request between brokers times out, no follower counts as slow."""
    async with controlled(tmp_path, 3) as (hosted, _):
        await call(hosted, "create_topic", name="t", replication_factor=3)
        await produce(hosted, {"value": "a"})
        epochs = {broker.broker_epoch for broker in hosted.brokers.values()}
        caplog.clear()
        for ms in (MINUTE, DAY):
            await advance(hosted, ms)
            (partition,) = (await call(hosted, "topic", name="t"))["partitions"]
            assert sorted(partition["isr"]) == [0, 1, 2]
        assert {broker.broker_epoch for broker in hosted.brokers.values()} == epochs
        assert not [one for one in caplog.records if "ISR" in one.getMessage() or "xpired" in one.getMessage()]


async def test_a_follower_that_is_behind_leaves_the_isr(tmp_path: Path) -> None:
    async with controlled(tmp_path, 2) as (hosted, _):
        await call(hosted, "create_topic", name="t", replication_factor=2)
        (partition,) = (await call(hosted, "topic", name="t"))["partitions"]
        leader = partition["leader"]
        await call(hosted, "pause", broker=1 - leader)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(produce, hosted, {"value": "a"}))
            log = hosted.brokers[leader].logs.get("t", 0)
            assert log is not None
            await until(lambda: log.log_end_offset == 1)
            await advance(hosted, 31 * SECOND)
            await until(lambda: log.high_watermark == 1)  # acknowledged by the leader alone
        state = partial(hosted.brokers[leader].metadata.partition, "t", 0)
        await until(lambda: getattr(state(), "isr", None) == [leader])


# --- how long it takes, and what is refused


async def test_a_day_takes_a_moment(tmp_path: Path) -> None:
    async with controlled(tmp_path) as (hosted, _):
        for number in range(10):
            await create_topic(hosted.brokers[0], f"t{number}", 3)
        began = time.thread_time()
        await advance(hosted, 25 * HOUR)
        assert time.thread_time() - began < 3  # 0.1 s on the machine it was written on


@pytest.mark.parametrize("ms", [-1, 2**63])
async def test_an_advance_that_makes_no_sense_is_refused(tmp_path: Path, ms: int) -> None:
    async with controlled(tmp_path) as (hosted, _):
        with pytest.raises(ControlError, match="`ms` is"):
            await call(hosted, "advance", ms=ms)


async def test_without_a_channel_there_is_no_clock_to_move(tmp_path: Path) -> None:
    hosted = Hosted(plans(tmp_path), tmp_path)
    with pytest.raises(ControlError, match="run on the machine's clock"):
        await call(hosted, "advance", ms=1)
