"""ConsumerGroupHeartbeat is refused at once, with what to set, and logged once for each client."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.brokers.running_broker import ask, running_broker

JOINING = ConsumerGroupHeartbeatRequest(group_id="orders", member_id="m", rebalance_timeout_ms=1, topic_partitions=[])


@pytest.mark.parametrize("version", [0, 1])
async def test_a_client_is_refused_and_logged_once(
    tmp_path: Path, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path) as broker:
        client = PlainConnectionInfo(connection_id="here-there-1")
        hello = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16.0")
        await ask(broker, hello, 3, "payments", client)
        caplog.set_level(logging.WARNING)
        for _ in range(2):
            response = await ask(broker, JOINING, version, "payments", client)
            assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert "set group.protocol=classic" in response.error_message
        assert [record.getMessage() for record in caplog.records] == [
            "Refused here-there-1 client_id=payments software=librdkafka-2.16.0 group=orders: the consumer group "
            "protocol (KIP-848) is not served; set group.protocol=classic in the client"
        ]
        await ask(broker, JOINING, version, "another", client)
        assert len(caplog.records) == 2
