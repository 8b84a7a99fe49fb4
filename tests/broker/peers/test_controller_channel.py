"""A broker's channel to the controller: whichever broker it is, and the next one after it."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.core.controller.events import AllocateProducerIds
from kpybroker.core.tree import SessionExpired
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.support.brokers.running_cluster import running_cluster


@pytest.mark.parametrize("asking", [1, 2])
async def test_the_controller_responds_to_itself_and_others(tmp_path: Path, asking: int) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        broker = cluster.brokers[asking]
        channel = broker.peers.controller_channel("test")
        request = AllocateProducerIdsRequest(broker_id=asking, broker_epoch=broker.broker_epoch)
        starts = [(await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, 0)).producer_id_start for _ in range(3)]
        assert starts == [0, 1000, 2000]
        channel.close()


async def test_an_error_code_of_the_controller_is_a_response(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        for asking in (1, 2):
            channel = cluster.brokers[asking].peers.controller_channel("test")
            request = AllocateProducerIdsRequest(broker_id=asking, broker_epoch=0)
            response = await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, 0)
            assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
            channel.close()


async def test_when_the_controller_stops_the_next_one_is_asked(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running_cluster(tmp_path, 1, 2, 3) as cluster:
        broker = cluster.brokers[3]
        channel = broker.peers.controller_channel("test")
        request = AllocateProducerIdsRequest(broker_id=3, broker_epoch=broker.broker_epoch)
        await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, 0)
        await cluster.stop(1)
        response = await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, 0)
        assert (response.error_code, response.producer_id_start) == (ErrorCode.NONE, 1000)
        channel.close()


async def test_a_controller_that_loses_its_session_asks_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Its own ISR changes waited for the next one, if the task that asks for them ended with that."""
    async with running_cluster(tmp_path, 1) as cluster:
        broker = cluster.brokers[1]
        served, failures = broker.controller.ask, [SessionExpired()]

        async def ask(event: AllocateProducerIds) -> object:
            if failures:
                raise failures.pop()
            return await served(event)

        broker.controller.ask = ask  # type: ignore[method-assign,assignment]
        channel = broker.peers.controller_channel("test")
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=broker.broker_epoch)
        response = await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, 0)
        assert (response.error_code, failures) == (ErrorCode.NONE, [])
        channel.close()


async def test_a_broker_that_is_not_the_controller_yet_is_asked_again_later(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running_cluster(tmp_path, 1, 2) as cluster:
        parts = cluster.brokers[1].controller.machine.parts
        parts.active_controller_id, asked = 2, trio.Event()
        served = cluster.brokers[1].controller.ask

        async def ask(event: AllocateProducerIds) -> object:
            try:
                return await served(event)
            finally:
                asked.set()

        cluster.brokers[1].controller.ask = ask  # type: ignore[method-assign,assignment]
        broker = cluster.brokers[2]
        channel = broker.peers.controller_channel("test")
        request = AllocateProducerIdsRequest(broker_id=2, broker_epoch=broker.broker_epoch)
        async with trio.open_nursery() as nursery:
            responses = []

            async def keep() -> None:
                responses.append(await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, 0))

            nursery.start_soon(keep)
            await asked.wait()
            assert not responses
            parts.active_controller_id = 1
        assert responses[0].error_code == ErrorCode.NONE
        channel.close()


async def test_a_controller_that_does_not_respond_is_asked_again_after_the_socket_timeout(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    keys = {"controller_socket_timeout_ms": "2000", "request_timeout_ms": "50000"}
    async with running_cluster(tmp_path, 1, 2, **keys) as cluster:
        served, asked_at = cluster.brokers[1].controller.ask, []

        async def ask(event: AllocateProducerIds) -> object:
            asked_at.append(trio.current_time())
            if len(asked_at) == 1:
                await trio.sleep_forever()
            return await served(event)

        cluster.brokers[1].controller.ask = ask  # type: ignore[method-assign,assignment]
        broker = cluster.brokers[2]
        channel = broker.peers.controller_channel("test")
        request = AllocateProducerIdsRequest(broker_id=2, broker_epoch=broker.broker_epoch)
        response = await channel.ask(ApiKey.ALLOCATE_PRODUCER_IDS, request, 0)
        assert response.error_code == ErrorCode.NONE
        assert 2 <= asked_at[1] - asked_at[0] < 3
        channel.close()
