"""SaslHandshake and SaslAuthenticate on a listener without SASL."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.brokers.running_broker import ask, running_broker


async def test_a_client_that_logs_in_without_need_is_refused_and_the_log_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path) as broker:
        for version in (0, 1):
            response = await ask(broker, SaslHandshakeRequest(mechanism="PLAIN"), version)
            assert (response.error_code, response.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        warnings = [record.getMessage() for record in caplog.records if "no SASL" in record.getMessage()]
        assert len(warnings) == 1
        assert warnings[0].endswith(
            "wants to log in on listener PLAINTEXT, which has no SASL: set security.protocol=PLAINTEXT in the client"
        )


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_token_is_refused(tmp_path: Path, version: int) -> None:
    async with running_broker(tmp_path) as broker:
        response = await ask(broker, SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), version)
        assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert response.error_message == "SaslAuthenticate request received after successful authentication"
