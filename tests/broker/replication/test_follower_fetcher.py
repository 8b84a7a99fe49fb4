"""What a fetcher does with its leader's responses, and what it asks for next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.peers.connection import Request
from kpybroker.broker.replication.follower_fetcher import LOOK_EVERY_S, FollowerFetcher
from kpybroker.core.replication.follower import FetchState, FollowerLog, initial_state
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.log.log import Log
from kpybroker.wire.codec import decode_from, encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import parse_request_header
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from tests.support.brokers.running_broker import create_topic, running_broker
from tests.support.network.memory_transport import MemoryStream, Pipe
from tests.support.storage.batches import batch

KEY = TopicPartition("t", 0)


async def followed_topic(broker: Broker, *, partitions: int = 1, **config: str) -> bytes:
    """The id of a new topic `t`, of which this broker has followers only."""
    topic_id = await create_topic(broker, "t", partitions=partitions, **config)
    for index in range(partitions):
        broker.replicas.hosted("t", index).follow(1, 1, [1, 0])
    return topic_id


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_after_a_stale_response_the_leader_sends_everything_again(tmp_path: Path, is_replaced: bool) -> None:
    """The leader assumes that its high watermark is known, and would not send it in this session again."""
    async with running_broker(tmp_path) as broker:
        topic_id = await followed_topic(broker)
        fetcher = broker.replicas.fetchers.new_fetcher(1, 0)
        session = fetcher._endpoint.session
        asked = FetchState("t", 0, topic_id, leader_epoch=0, fetch_offset=0)
        fetcher.follow(asked)
        assert fetcher._ask() is not None
        data = FetchResponse.PartitionData(partition_index=0, high_watermark=0, log_start_offset=0, records=b"")
        topics = [FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=[data])]
        assert session.take_response(0, session_id=5)
        if is_replaced:
            fetcher.follow(FetchState("t", 0, topic_id, leader_epoch=1, fetch_offset=0))
        response = FetchResponse(session_id=5, responses=topics)
        await run_to_end(fetcher._take(response))
        following = session.request(session.partitions, 17)
        assert following is not None
        assert (following[0].session_id, following[0].session_epoch) == (5, 0 if is_replaced else 1)
        assert bool(following[0].topics) == is_replaced


class Asked(NamedTuple):
    """What a fetch asks of the one partition; None if it does not name it, because nothing has changed."""

    correlation_id: int
    fetch_offset: int | None
    last_fetched_epoch: int | None


class Leader:
    """The other end of a fetcher's connection, played by the test."""

    def __init__(self, stream: MemoryStream, topic_id: bytes) -> None:
        self._stream = stream
        self._topic_id = topic_id

    async def asked(self) -> Asked:
        size = int.from_bytes(await self._receive(4), "big")
        frame = await self._receive(size)
        header = parse_request_header(frame)
        request, _ = decode_from(FetchRequest, frame, header.body_offset, header.api_version)
        named = [partition for topic in request.topics for partition in topic.partitions]
        if not named:
            return Asked(header.correlation_id, None, None)
        return Asked(header.correlation_id, named[0].fetch_offset, named[0].last_fetched_epoch)

    async def respond(self, asked: Asked, data: FetchResponse.PartitionData | None) -> None:
        topics = (
            [] if data is None else [FetchResponse.FetchableTopicResponse(topic_id=self._topic_id, partitions=[data])]
        )
        body = encode(FetchResponse(session_id=5, responses=topics), 17)
        frame = asked.correlation_id.to_bytes(4, "big") + b"\0" + body
        await self._stream.send_parts([len(frame).to_bytes(4, "big") + frame])

    async def _receive(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            buffer = bytearray(size - len(data))
            received = await self._stream.receive_into(memoryview(buffer))
            assert received, "the fetcher has closed its connection"
            data += buffer[:received]
        return data


@asynccontextmanager
async def following(directory: Path) -> AsyncIterator[tuple[Leader, FollowerFetcher, Log]]:
    """A fetcher at work on an empty log."""
    async with running_broker(directory) as broker:
        topic_id = await followed_topic(broker)
        own_log = broker.replicas.hosted("t", 0).online_log()
        fetcher = broker.replicas.fetchers.new_fetcher(1, 0)
        there, back = Pipe(65536), Pipe(65536)
        fetcher._endpoint._connection._stream = MemoryStream(back, there, ("me", 1), ("leader", 2))
        leader = Leader(MemoryStream(there, back, ("leader", 2), ("me", 1)), topic_id)
        begin(fetcher, topic_id, range(1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetcher.run)
            yield leader, fetcher, own_log
            fetcher.end()


def records(base_offset: int, *values: bytes, index: int = 0) -> FetchResponse.PartitionData:
    stored = batch(*values, base_offset=base_offset, partition_leader_epoch=0)
    return FetchResponse.PartitionData(
        partition_index=index, high_watermark=base_offset, log_start_offset=0, records=bytes(stored)
    )


async def test_what_the_leader_sends_is_appended_and_the_next_fetch_asks_for_more(tmp_path: Path) -> None:
    async with following(tmp_path) as (leader, _, own_log):
        asked = await leader.asked()
        assert asked.fetch_offset == 0
        await leader.respond(asked, records(0, b"a", b"b", b"c"))
        asked = await leader.asked()
        assert (asked.fetch_offset, own_log.log_end_offset, own_log.high_watermark) == (3, 3, 0)
        await leader.respond(asked, None)
        asked = await leader.asked()
        assert asked.fetch_offset is None  # nothing is new
        await leader.respond(asked, records(3, b"d"))
        asked = await leader.asked()
        assert (asked.fetch_offset, own_log.log_end_offset, own_log.high_watermark) == (4, 4, 3)


async def test_where_the_logs_diverge_its_own_is_truncated(tmp_path: Path) -> None:
    async with following(tmp_path) as (leader, _, own_log):
        await leader.respond(await leader.asked(), records(0, b"a", b"b"))
        await leader.respond(await leader.asked(), records(2, b"c"))
        asked = await leader.asked()
        assert asked.fetch_offset == 3
        diverging = FetchResponse.EpochEndOffset(epoch=0, end_offset=2)
        await leader.respond(asked, FetchResponse.PartitionData(partition_index=0, diverging_epoch=diverging))
        asked = await leader.asked()
        assert (asked.fetch_offset, own_log.log_end_offset) == (2, 2)


async def test_a_leader_that_does_not_know_yet_that_it_leads_is_asked_again_soon(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    refusal = FetchResponse.PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    async with following(tmp_path) as (leader, _, own_log):
        waits = []
        asked = await leader.asked()
        for _ in range(3):
            await leader.respond(asked, refusal)
            refused_at = trio.current_time()
            forgotten = await leader.asked()  # the fetch without it
            assert forgotten.fetch_offset is None
            await leader.respond(forgotten, None)
            asked = await leader.asked()
            assert asked.fetch_offset == 0
            waits.append(round(trio.current_time() - refused_at, 3))
        assert waits == [0.01, 0.02, 0.04]
        await leader.respond(asked, records(0, b"a"))
        await leader.asked()
        assert own_log.log_end_offset == 1


def begin(fetcher: FollowerFetcher, topic_id: bytes, indexes: range) -> None:
    """Follow these partitions of `t` from their beginning."""
    for index in indexes:
        beginning = initial_state("t", index, topic_id, 0, FollowerLog(0, 0, 0), truncates_on_fetch=True)
        fetcher.follow(beginning)


class Named(NamedTuple):
    """What a fetch asks for: offset and log start of each partition it names, and the partitions it forgets."""

    positions: dict[int, tuple[int, int]]
    forgotten: list[int]


def named(request: Request | None) -> Named:
    assert request is not None
    message: FetchRequest = request.message
    partitions = [partition for topic in message.topics for partition in topic.partitions]
    positions = {p.partition: (p.fetch_offset, p.log_start_offset) for p in partitions}
    return Named(positions, [index for topic in message.forgotten_topics_data for index in topic.partitions])


def after_response(
    fetcher: FollowerFetcher, topic_id: bytes, *data: FetchResponse.PartitionData, session_id: int = 5
) -> Request | None:
    """What it asks for next."""
    topic = FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=list(data))
    return fetcher._on_response(FetchResponse(session_id=session_id, responses=[topic]))


async def test_after_a_response_only_the_partitions_it_named_are_looked_at(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Except if a partition is added, removed or fails, and twice a second, for changes without a notification."""
    async with running_broker(tmp_path) as broker:
        topic_id = await followed_topic(broker, partitions=4)
        fetcher = broker.replicas.fetchers.new_fetcher(1, 0)

        def grown(index: int, *values: bytes) -> Named:
            data = records(fetcher.partitions[TopicPartition("t", index)].fetch_offset, *values, index=index)
            return named(after_response(fetcher, topic_id, data))

        begin(fetcher, topic_id, range(3))
        assert named(fetcher._ask()) == ({0: (0, 0), 1: (0, 0), 2: (0, 0)}, [])
        assert grown(1, b"a", b"b") == ({1: (2, 0)}, [])
        assert named(after_response(fetcher, topic_id)) == ({}, [])

        moved = broker.replicas.hosted("t", 1).online_log()
        moved.update_high_watermark(2)
        assert moved.increment_log_start_offset(1)
        assert grown(2, b"c") == ({2: (1, 0)}, [])
        await trio.sleep(LOOK_EVERY_S)
        assert named(after_response(fetcher, topic_id)) == ({1: (2, 1)}, [])

        begin(fetcher, topic_id, range(3, 4))
        assert grown(2, b"d") == ({2: (2, 0), 3: (0, 0)}, [])
        fetcher.leave(TopicPartition("t", 0))
        assert named(after_response(fetcher, topic_id)) == ({}, [0])

        refusal = FetchResponse.PartitionData(partition_index=2, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert after_response(fetcher, topic_id, refusal) is None
        assert fetcher._unfinished is not None
        await fetcher._unfinished
        assert named(fetcher._ask()) == ({}, [2])


async def test_a_throttled_partition_waits_once_its_rate_is_used_up(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Also if the responses before let the fetcher look only at what had grown."""
    async with running_broker(tmp_path) as broker:
        topic_id = await followed_topic(broker, partitions=2, follower_replication_throttled_replicas="1:0")
        broker.config.dynamic_broker["follower.replication.throttled.rate"] = "1"
        fetcher = broker.replicas.fetchers.new_fetcher(1, 0)
        begin(fetcher, topic_id, range(2))

        def grown(index: int, high_watermark: int) -> Named:
            data = records(fetcher.partitions[TopicPartition("t", index)].fetch_offset, b"a", index=index)
            data.high_watermark = high_watermark
            return named(after_response(fetcher, topic_id, data))

        assert named(fetcher._ask()) == ({0: (0, 0), 1: (0, 0)}, [])
        assert grown(0, 1) == ({0: (1, 0)}, [])
        assert grown(1, 100) == ({}, [1])  # far behind, and over its rate
        assert grown(0, 2) == ({0: (2, 0)}, [])


async def test_what_cannot_be_appended_is_asked_for_again_later(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await followed_topic(broker, partitions=2)
        fetcher = broker.replicas.fetchers.new_fetcher(1, 0)
        begin(fetcher, topic_id, range(2))
        assert named(fetcher._ask()) == ({0: (0, 0), 1: (0, 0)}, [])
        damaged = records(0, b"a", index=1)
        assert damaged.records is not None
        damaged.records = bytes(damaged.records[:-1]) + b"\xff"
        assert named(after_response(fetcher, topic_id, damaged)) == ({}, [1])


async def test_a_topic_that_gets_its_id_is_asked_for_by_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await followed_topic(broker)
        fetcher = broker.replicas.fetchers.new_fetcher(1, 0)
        begin(fetcher, bytes(16), range(1))
        first = fetcher._ask()
        assert first is not None
        assert (first.version, first.message.topics[0].topic) == (12, "t")
        fetcher.set_topic_id(KEY, topic_id)
        following = after_response(fetcher, topic_id)
        assert following is not None
        assert (following.message.session_epoch, following.message.topics[0].topic_id) == (0, topic_id)
        assert following.version > 12


async def test_a_leader_without_sessions_gets_all_partitions_each_time(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await followed_topic(broker, partitions=2)
        fetcher = broker.replicas.fetchers.new_fetcher(1, 0)
        begin(fetcher, topic_id, range(2))
        assert named(fetcher._ask()) == ({0: (0, 0), 1: (0, 0)}, [])
        following = after_response(fetcher, topic_id, records(0, b"a", index=1), session_id=0)
        assert named(following) == ({0: (0, 0), 1: (1, 0)}, [])


async def test_a_fenced_epoch_ends_the_fetching(tmp_path: Path) -> None:
    fenced = FetchResponse.PartitionData(partition_index=0, error_code=ErrorCode.FENCED_LEADER_EPOCH)
    async with following(tmp_path) as (leader, fetcher, _):
        await leader.respond(await leader.asked(), fenced)
        assert (await leader.asked()).fetch_offset is None
        assert not fetcher.partitions
