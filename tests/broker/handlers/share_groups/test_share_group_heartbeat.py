"""Without `share.version` 1 a heartbeat is refused at once, and what to do is logged once for each client."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.share.members import finalize_share_version


async def test_a_client_is_refused_and_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker(tmp_path) as broker:
        finalize_share_version(broker, 0)
        caplog.set_level(logging.WARNING)
        for _ in range(2):
            response = await ask(broker, ShareGroupHeartbeatRequest(group_id="a group", member_id="m"), 1, "sharer")
            assert (response.error_code, response.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
        assert [record.getMessage() for record in caplog.records] == [
            "Refused test client_id=sharer group='a group': share groups (KIP-932) are not served; raise the "
            "level: kpybroker feature upgrade share.version=1"
        ]
