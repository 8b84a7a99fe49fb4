"""What uvicorn writes about strangers. Deadlines and seats are tested at every door, in `test_doors.py`."""

from __future__ import annotations

import asyncio
import logging

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from kpybroker.http.server import Limits
from kpybroker.http.slow_clients import protocol

LOGGER = logging.getLogger("test")
GARBAGE = b"\x16\x03\x01 no request\r\n\r\n"
UPGRADE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n"


async def responses(requests: list[bytes]) -> list[bytes]:
    """The first line of each response."""
    guarded = protocol(Limits(8), "A port", LOGGER)
    config = uvicorn.Config(PlainTextResponse("read"), http=guarded, log_config=None)
    config.load()

    def make() -> asyncio.Protocol:
        return guarded(config=config, server_state=ServerState(), app_state={})

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    found = []
    async with server:
        for request in requests:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(request)
            found.append(await reader.readline())
            writer.close()
    return found


@pytest.mark.parametrize(
    ("request_", "status", "warns"), [(GARBAGE, b"400", True), (UPGRADE, b"200", False)], ids=["garbage", "upgrade"]
)
def test_strangers_cause_one_line_a_minute_of_each_kind(
    request_: bytes, status: bytes, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    lines = asyncio.run(responses([request_] * 50))
    assert {line.split()[1] for line in lines} == {status}
    said = [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")]
    assert bool(said) is warns
    assert len(said) == len(set(said))
