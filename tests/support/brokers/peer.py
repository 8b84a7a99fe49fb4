"""Another broker, as far as the requests of this one concern it: it responds to UpdateMetadata, or misbehaves."""

from __future__ import annotations

import struct

import trio

from kpybroker.broker.network.transport import Stream
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.headers import encode_response_header, parse_request_header
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.support.network.memory_transport import MemoryTransport

HOST, PORT = "peer", 9092


class Peer:
    """Responds to UpdateMetadata, but for what is first in `misbehave`: "hang up", "say nothing" or "wrong id"."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.listener = transport.listen(HOST, PORT, 5)
        self.received: list[int] = []
        self.misbehave: list[str] = []

    async def serve(self) -> None:
        async with trio.open_nursery() as nursery:
            while True:
                nursery.start_soon(self._serve_connection, await self.listener.accept())

    async def _serve_connection(self, stream: Stream) -> None:
        while (frame := await self._frame(stream)) is not None:
            header = parse_request_header(frame)
            assert header.api_key == ApiKey.UPDATE_METADATA
            body = memoryview(frame)[header.body_offset :]
            request = decode(UpdateMetadataRequest, body, header.api_version)
            self.received.append(request.controller_epoch)
            how = self.misbehave.pop(0) if self.misbehave else "respond"
            if how == "hang up":
                stream.close()
                return
            if how == "say nothing":
                await trio.sleep_forever()
            correlation_id = header.correlation_id + (how == "wrong id")
            response = encode_response_header(ApiKey.UPDATE_METADATA, header.api_version, correlation_id)
            response += encode(UpdateMetadataResponse(), header.api_version)
            await stream.send_parts([struct.pack(">i", len(response)) + response])

    async def _frame(self, stream: Stream) -> bytes | None:
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
            buffer = bytearray(4096)
            count = await stream.receive_into(memoryview(buffer))
            if count == 0:
                return None
            data += buffer[:count]
        return data[4:]
