"""The broker as a whole: how it ends."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from tests.support.running_broker import ask, running_broker

JOIN_VERSION = 3  # before KIP-394: the first join is held at once


async def test_who_waits_for_a_broker_that_stops_loses_the_connection_and_is_told_nothing(tmp_path: Path) -> None:
    """As in KafkaServer.shutdown. "The coordinator is not available" would send clients looking for another one, on
    connections that are about to end."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    body = encode_request_header(RequestHeader(ApiKey.JOIN_GROUP, JOIN_VERSION, 1, "c")) + encode(join, JOIN_VERSION)
    async with running_broker(tmp_path, group_initial_rebalance_delay_ms="60000") as broker:
        await ask(broker, FindCoordinatorRequest(key="g"), 0)
        stream = await broker.transport.connect("127.0.0.1", 9092, timeout_s=5)
        await stream.send_parts([len(body).to_bytes(4, "big") + body])
        with trio.fail_after(30):
            while broker.dispatcher.requests.get((ApiKey.JOIN_GROUP, JOIN_VERSION)) is None:
                await trio.testing.wait_all_tasks_blocked()
    assert await stream.receive_into(memoryview(bytearray(64))) == 0
