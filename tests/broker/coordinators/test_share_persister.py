"""The persister of share states: whom it asks, and what it asks again. Coordinators here and elsewhere are scripted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.coordinators.share_messages import INITIALIZE, WRITE
from kpybroker.broker.coordinators.share_persister import ATTEMPTS, ShareStatePersister
from kpybroker.broker.loop.steps import Steps, run_to_end
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.core.share_coordinator.values import (
    InitializeState,
    SharePartitionKey,
    StateBatch,
    StateResult,
    WriteState,
    coordinator_key,
)
from kpybroker.core.topic_names import SHARE_GROUP_STATE_TOPIC_NAME
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.fake_broker import FakeClock
from tests.support.brokers.host import FakeHost

TOPIC_ID = bytes(15) + b"\1"
HERE, ELSEWHERE = 1, 2


@pytest.fixture
def clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


class Metadata:
    """Leaders of the partitions of the topic, once it exists; brokers of which `alive` has the ids."""

    def __init__(self, leaders: Sequence[int]) -> None:
        self.leaders = list(leaders)
        self.alive = {HERE, ELSEWHERE}

    def contains(self, topic: str) -> bool:
        assert topic == SHARE_GROUP_STATE_TOPIC_NAME
        return bool(self.leaders)

    def partition_count(self, topic: str) -> int | None:
        return len(self.leaders) or None

    def leader_and_epoch(self, topic: str, index: int) -> tuple[int, int]:
        return self.leaders[index], 0

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.alive


class Scene:
    """`errors` are what coordinators respond with, one after the other, and then NONE."""

    def __init__(self, nursery: trio.Nursery, leaders: Sequence[int]) -> None:
        host: Any = FakeHost(nursery, BrokerConfig({"broker.id": str(HERE), "log.dirs": "/nowhere"}), FakeClock())
        self.metadata = Metadata(leaders)
        self.errors: list[ErrorCode | OSError] = []
        self.asked: list[tuple[int, float, Any]] = []
        self.created = 0
        metadata: Any = self.metadata
        coordinators: Any = self
        self.persister = ShareStatePersister(host, metadata, self._ask_peer, self._create, lambda: coordinators)

    async def _create(self, names: Sequence[str]) -> None:
        assert list(names) == [SHARE_GROUP_STATE_TOPIC_NAME]
        self.created += 1
        self.metadata.leaders = [HERE]

    def _next_error(self) -> ErrorCode:
        error = self.errors.pop(0) if self.errors else ErrorCode.NONE
        if isinstance(error, OSError):
            raise error
        return error

    def ask(self, group_id: str, asked: Sequence[Any], *, is_summary: bool = False) -> Steps[list[Any]]:
        yield trio.lowlevel.checkpoint
        self.asked.append((HERE, trio.current_time(), [one.partition for one in asked]))
        return [StateResult(one.topic_id, one.partition, self._next_error()) for one in asked]

    async def _ask_peer(self, broker_id: int, key: ApiKey, request: Any, version: int) -> Any:
        api = {INITIALIZE.key: INITIALIZE, WRITE.key: WRITE}[key]
        assert version == api.version
        asked = api.asked(request)
        self.asked.append((broker_id, trio.current_time(), [one.partition for one in asked]))
        return api.response([StateResult(one.topic_id, one.partition, self._next_error()) for one in asked])


def led_by(leaders: Sequence[int], broker_id: int) -> list[int]:
    """Indexes of partitions whose state a broker keeps."""
    return [
        index
        for index in range(20)
        if leaders[coordinator_partition(coordinator_key(SharePartitionKey("g", TOPIC_ID, index)), len(leaders))]
        == broker_id
    ]


def initialize(*partitions: int) -> list[InitializeState]:
    return [InitializeState(TOPIC_ID, index, 1) for index in partitions]


async def test_each_coordinator_is_asked_once_for_all_of_its_partitions(clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        leaders = [HERE, ELSEWHERE, HERE]
        scene = Scene(nursery, leaders)
        here, elsewhere = led_by(leaders, HERE)[:3], led_by(leaders, ELSEWHERE)[:2]
        mixed = [elsewhere[0], *here, elsewhere[1]]
        results = await scene.persister.initialize("g", initialize(*mixed))
        assert results == [StateResult(TOPIC_ID, index) for index in mixed]
        asked = {broker_id: partitions for broker_id, _, partitions in scene.asked}
        assert (asked, len(scene.asked)) == ({HERE: here, ELSEWHERE: elsewhere}, 2)


async def test_the_first_request_creates_the_topic(clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        scene = Scene(nursery, [])
        await scene.persister.initialize("g", initialize(0))
        await scene.persister.initialize("g", initialize(0))
        assert (scene.created, len(scene.asked)) == (1, 2)


@pytest.mark.parametrize("leader", [HERE, ELSEWHERE])
async def test_what_passes_is_asked_again_after_a_growing_backoff(clock: trio.testing.MockClock, leader: int) -> None:
    async with trio.open_nursery() as nursery:
        scene = Scene(nursery, [leader])
        scene.errors = [
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        write = WriteState(TOPIC_ID, 0, 1, 2, 3, 4, (StateBatch(5, 6, 2, 1),))
        assert await run_to_end(scene.persister.write("g", [write])) == [StateResult(TOPIC_ID, 0)]
        times = [at for _, at, _ in scene.asked]
        waits = [later - earlier for earlier, later in pairwise(times)]
        assert len(waits) == ATTEMPTS - 1
        assert all(0.8 * base <= wait <= 1.2 * base for base, wait in zip((1, 2, 4, 8), waits, strict=True))


async def test_what_does_not_pass_is_a_result_at_once(clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        scene = Scene(nursery, [HERE])
        scene.errors = [ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_COORDINATOR]
        results = await scene.persister.initialize("g", initialize(0, 1))
        assert [result.error for result in results] == [ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NONE]
        assert [partitions for _, _, partitions in scene.asked] == [[0, 1], [1]]


async def test_the_coordinator_is_looked_up_again(clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        scene = Scene(nursery, [ELSEWHERE])
        scene.errors = [ErrorCode.NOT_COORDINATOR]
        async with trio.open_nursery() as asking:
            asking.start_soon(scene.persister.initialize, "g", initialize(0))
            await trio.sleep(0.1)
            scene.metadata.leaders = [HERE]
        assert [broker_id for broker_id, _, _ in scene.asked] == [ELSEWHERE, HERE]


async def test_a_broker_that_cannot_be_reached(clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        scene = Scene(nursery, [ELSEWHERE])
        scene.errors = [OSError("refused")] * ATTEMPTS
        (result,) = await scene.persister.initialize("g", initialize(0))
        assert (result.error, len(scene.asked)) == (ErrorCode.NETWORK_EXCEPTION, ATTEMPTS)


async def test_without_a_leader_there_is_no_coordinator(clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        scene = Scene(nursery, [ELSEWHERE])
        scene.metadata.alive = {HERE}
        (result,) = await scene.persister.initialize("g", initialize(0))
        assert (result.error, scene.asked) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])
