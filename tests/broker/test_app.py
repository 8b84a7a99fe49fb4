"""The broker as a whole: how it ends."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.config.broker import BrokerConfig
from kpybroker.core import tree as t
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.znodes import decode_topic
from tests.support.brokers.running_broker import ask, create_topic, running_broker, settings
from tests.support.network.memory_transport import MemoryTransport

JOIN_VERSION = 3  # before KIP-394: the first join is held at once


async def test_a_client_that_waits_for_a_stopping_broker_loses_the_connection_without_a_response(
    tmp_path: Path,
) -> None:
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
        stream = await broker.transport.connect("127.0.0.1", 9092, timeout_s=60)
        await stream.send_parts([len(body).to_bytes(4, "big") + body])
        with trio.fail_after(30):
            while broker.dispatcher.requests.get((ApiKey.JOIN_GROUP, JOIN_VERSION)) is None:
                await trio.testing.wait_all_tasks_blocked()
    assert await stream.receive_into(memoryview(bytearray(64))) == 0


async def test_a_stop_on_a_full_disk_is_orderly_and_loses_nothing(tmp_path: Path) -> None:
    """Everything acknowledged is in the coordination file; only the end of the session cannot be written."""
    config = BrokerConfig(settings(tmp_path))
    async with Broker.open(config, transport=MemoryTransport()) as broker:
        topic_id = await create_topic(broker, "kept")
        assert broker.embedded_store is not None
        connection = broker.embedded_store._committer._database._connection  # type: ignore[union-attr]
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        # Applied, refused because the disk is full, and unavailable from then on.
        refused = await broker.tree.submit_many([t.SetData("/brokers/seqid", bytes(200_000))])
        assert isinstance(refused[0], t.SystemFailure)
    async with Broker.open(config, transport=MemoryTransport()) as broker:
        found = await broker.tree.get("/brokers/topics/kept")
        assert decode_topic("kept", found.data).topic_id == topic_id
        assert (await broker.tree.get("/brokers/seqid")).data is None
