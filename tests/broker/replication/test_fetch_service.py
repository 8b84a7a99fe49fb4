"""Fetches that wait: each gets one response, as soon as there is a reason for it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.steps import Pending
from kpybroker.broker.network.response import Response
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from tests.support.brokers.running_broker import running_broker
from tests.support.storage.batches import NOW_MS, batch

VERSION = 10  # of a consumer that reads from the leader only
HEADER_BYTES = 4 + 4  # size, correlation id


class Fetch:
    """A fetch from the end of a partition, without a session; `responses` has its response, once there is one."""

    def __init__(self, broker: Broker, offset: int, min_bytes: int, max_wait_ms: int) -> None:
        self.offset, self.min_bytes = offset, min_bytes
        self.deadline = trio.current_time() + max_wait_ms / 1000
        asked = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic="t", partitions=[asked])],
        )
        header = encode_request_header(RequestHeader(ApiKey.FETCH, VERSION, 1, "test"))
        self.responses: list[FetchResponse.PartitionData] = []
        self.suspended: Pending[Response] | None = None
        self.ended = 0
        self._take(broker.dispatcher.respond_now(bytearray(header + encode(request, VERSION)), PlainConnectionInfo()))

    def _take(self, outcome: Response | Pending[Response]) -> None:
        if isinstance(outcome, Pending):
            self.suspended = outcome
            assert outcome.wait is not None
            outcome.wait.on_end = self._count_end
            return
        assert outcome.frame is None
        body = outcome.read()
        outcome.sent()
        response = decode(FetchResponse, body[HEADER_BYTES:], VERSION)
        self.suspended = None
        self.responses.append(response.responses[0].partitions[0])

    def _count_end(self) -> None:
        self.ended += 1

    def resume_if_over(self) -> None:
        while self.suspended is not None and (self.ended or self.deadline <= trio.current_time()):
            self.ended = 0
            self._take(self.suspended.resume())

    def close(self) -> None:
        assert self.suspended is not None
        self.suspended.close()
        self.suspended = None


@pytest.mark.parametrize("seed", range(20))
async def test_a_suspended_fetch_ends_once_by_data_by_time_or_by_lost_leadership(
    tmp_path: Path, seed: int, autojump_clock: trio.testing.MockClock
) -> None:
    """Not before `min_bytes` have been appended, unless its time is over or leadership is lost."""
    chance = random.Random(seed)
    async with running_broker(tmp_path, topics=["t"]) as broker:
        partition = broker.replicas.hosted("t", 0)
        log = partition.leader_log()
        fetches: list[Fetch] = []
        size = len(batch(b"x" * 50))
        for _ in range(60):
            match chance.randrange(5):
                case 0 | 1:
                    options = (chance.choice([1, size, 3 * size]), chance.choice([100, 1000, 3000]))
                    fetches.append(Fetch(broker, log.log_end_offset, *options))
                    assert fetches[-1].suspended is not None
                case 2:
                    partition.append(ProducedBatches(bytearray(batch(b"x" * 50)), NOW_MS, 9), 1)
                case 3:
                    await trio.sleep(chance.choice([0.05, 0.5]))
                case 4 if waiting := [fetch for fetch in fetches if fetch.suspended is not None]:
                    gone = chance.choice(waiting)
                    gone.close()  # its connection has ended
                    fetches.remove(gone)
            for fetch in fetches:
                fetch.resume_if_over()
                has_enough = (log.log_end_offset - fetch.offset) * size >= fetch.min_bytes
                is_late = fetch.deadline <= trio.current_time()
                assert bool(fetch.responses) >= (has_enough or is_late)
                assert len(fetch.responses) + (fetch.suspended is not None) == 1
                if fetch.responses and not is_late:
                    assert len(fetch.responses[0].records or b"") >= fetch.min_bytes
        partition.follow(2, 7, [2])
        for fetch in fetches:
            was_waiting = fetch.suspended is not None
            fetch.resume_if_over()
            (response,) = fetch.responses
            assert not was_waiting or response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not partition._sessions  # no session is notified any more
