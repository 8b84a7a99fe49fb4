"""A client that sends requests on one connection and reads responses, as far as there are any."""

from __future__ import annotations

from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.broker.network.transport import Transport
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.schema import Message
from tests.support.network.echo_server import Client

_KEYS = {info.name: key for key, info in API_INFO.items()}


class RawClient:
    """`client_id` is in every header. Correlation ids count from 1."""

    def __init__(self, client: Client, client_id: str) -> None:
        self.client = client
        self.client_id = client_id
        self.sent: list[tuple[ApiKey, int]] = []
        self.received = 0

    @classmethod
    async def to(cls, broker: Broker, transport: Transport, client_id: str = "raw") -> RawClient:
        """On a new connection to the broker's first listener."""
        stream = await transport.connect(*broker.bound[0].listener.address, timeout_s=60)
        return cls(Client(stream), client_id)

    async def send(self, request: Message, version: int) -> None:
        key = _KEYS[type(request).__name__.removesuffix("Request")]
        self.sent.append((key, version))
        header = RequestHeader(key, version, len(self.sent), self.client_id)
        await self.client.send(encode_request_header(header) + encode(request, version))

    async def receive(self) -> Any:
        """The next response, which must be in order; None at the end of the connection."""
        frame = await self.client.receive()
        if frame is None:
            return None
        key, version = self.sent[self.received]
        self.received += 1
        correlation_id, position = parse_response_header(frame, key, version)
        assert correlation_id == self.received
        return decode(API_INFO[key].response_class(), frame[position:], version)

    async def ask(self, request: Message, version: int) -> Any:
        await self.send(request, version)
        return await self.receive()

    def close(self) -> None:
        self.client.stream.close()
