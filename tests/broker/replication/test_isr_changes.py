"""When the controller is asked to let a follower into the ISR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.peers.controller_channel import ControllerChannel
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from tests.support.brokers.leadership import TOPIC_ID, RefusingController, lead, update_metadata
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.lossy_files import LossyFiles

FOLLOWER = 1


async def fetch(
    broker: Broker, session: tuple[int, int], *, names_it: bool, replica_id: int = FOLLOWER
) -> FetchResponse:
    partition = FetchRequest.FetchPartition(
        partition=0, fetch_offset=0, current_leader_epoch=0, log_start_offset=0, partition_max_bytes=1_000_000
    )
    topics = [FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])] if names_it else []
    request = FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=replica_id),
        max_wait_ms=0,
        max_bytes=1_000_000,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
    )
    response: FetchResponse = await ask(broker, request, 17)
    assert response.error_code == ErrorCode.NONE
    return response


async def test_a_follower_that_could_not_join_at_first_joins_later_though_its_partition_is_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It names the partition once, before the leader knows that it is alive. Chaos tests left such partitions."""
    controller = RefusingController(monkeypatch)
    async with running_broker(Path("/logs"), files=LossyFiles()) as broker:
        await update_metadata(broker, [0, 2])
        partition = await lead(broker, isr=[0, 2])
        session = (await fetch(broker, (0, 0), names_it=True)).session_id
        for epoch in (1, 2):
            assert (await fetch(broker, (session, epoch), names_it=False)).responses == []
        assert partition.leader is not None
        assert partition.leader.pending is None
        await update_metadata(broker, [0, 1, 2])
        assert (await fetch(broker, (session, 3), names_it=False)).responses == []
        with trio.fail_after(60):
            await controller.is_asked.wait()
        assert partition.leader.maximal_isr == {0, 1, 2}


async def test_a_follower_that_left_the_isr_of_an_idle_partition_joins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that stalled removes all followers. Then it refuses all writes, so nothing is appended either."""
    controller = RefusingController(monkeypatch)
    async with running_broker(Path("/logs"), files=LossyFiles()) as broker:
        await update_metadata(broker, [0, 1, 2])
        partition = await lead(broker, isr=[0, 2])
        session = (await fetch(broker, (0, 0), names_it=True, replica_id=2)).session_id
        await fetch(broker, (session, 1), names_it=False, replica_id=2)
        leader = partition.leader
        assert leader is not None
        change = leader.propose({0})
        leader.agreed(change, 0, 1, [0])
        partition.isr_committed()
        await fetch(broker, (session, 2), names_it=False, replica_id=2)
        with trio.fail_after(60):
            await controller.is_asked.wait()
        assert leader.maximal_isr == {0, 2}


async def test_a_change_is_asked_for_again_after_the_task_that_asks_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing else is submitted: the partition waits for the controller's word before it proposes any more."""
    controller = RefusingController(monkeypatch)
    refuse, failures = ControllerChannel.ask, [RuntimeError("an error that no one knows")]

    async def ask_once_more(channel: ControllerChannel, api_key: ApiKey, message: Any, version: int) -> Any:
        if api_key == ApiKey.ALTER_PARTITION and failures:
            raise failures.pop()
        return await refuse(channel, api_key, message, version)

    monkeypatch.setattr(ControllerChannel, "ask", ask_once_more)
    async with running_broker(Path("/logs"), files=LossyFiles()) as broker:
        await update_metadata(broker, [0, 1, 2])
        partition = await lead(broker, isr=[0, 2])
        session = (await fetch(broker, (0, 0), names_it=True)).session_id
        await fetch(broker, (session, 1), names_it=False)
        with trio.fail_after(60):
            await controller.is_asked.wait()
        assert failures == []
        assert partition.leader is not None
        assert partition.leader.pending is not None
