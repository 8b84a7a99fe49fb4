"""The ordered ways from the controller to each broker: Kafka's `ControllerChannelManager`.

One queue and one task a broker: requests leave in the order they were decided in, one at a time, and each is
repeated until the broker has answered or is removed. To itself the controller goes straight to the handler,
with the same objects that would otherwise be encoded; to others over one connection to their inter-broker
listener.
"""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import trio

from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.core.authorizer import AllowAll
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import KafkaError, ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.network.transport import Stream
    from kpybroker.wire.znodes import BrokerRegistration

log = logging.getLogger("kafka.controller.RequestSendThread")

BACKOFF_S = 0.1
_SIZE = struct.Struct(">i")

API_OF_REQUEST: dict[type, ApiKey] = {
    LeaderAndIsrRequest: ApiKey.LEADER_AND_ISR,
    StopReplicaRequest: ApiKey.STOP_REPLICA,
    UpdateMetadataRequest: ApiKey.UPDATE_METADATA,
}


class ControlRequest(NamedTuple):
    message: Any
    version: int


OnResponse = Callable[[int, ControlRequest, Any], None]
"""Called in the loop with the broker's id, the request and its response."""


class BrokerChannel(Protocol):
    async def send(self, request: ControlRequest) -> Any:
        """Deliver one request and return its response, however long it takes."""
        ...

    def close(self) -> None: ...


async def answer_locally(broker: Broker, api_key: ApiKey, message: Any, version: int) -> Any:
    """This broker's own answer: no socket, no encoding, the same handler. A refusal is an answer, a failure raised."""
    handler = broker.load_handler(api_key)
    context = RequestContext(PlainConnectionInfo(connection_id="controller"), AllowAll(), api_key, version)
    try:
        return await handler.handle(broker, message, context)
    except KafkaError as error:
        return handler.error_response(message, context, error)


class LocalChannel:
    """From the controller to the broker it runs in."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def send(self, request: ControlRequest) -> Any:
        return await answer_locally(
            self._broker, API_OF_REQUEST[type(request.message)], request.message, request.version
        )

    def close(self) -> None:
        pass


class PeerChannel:
    """To another broker. Lost connections are made again; a request is repeated until it is answered."""

    def __init__(self, broker: Broker, broker_id: int, registration: BrokerRegistration) -> None:
        self._broker = broker
        self._broker_id = broker_id
        self._registration = registration
        self._stream: Stream | None = None
        self._correlation_id = 0

    async def send(self, request: ControlRequest) -> Any:
        while True:
            try:
                timeout_s = self._broker.config.get_int("controller.socket.timeout.ms") / 1000
                with trio.fail_after(timeout_s):
                    return await self._exchange(request)
            except (OSError, EOFError, trio.TooSlowError, trio.ClosedResourceError, ProtocolError) as error:
                log.warning(
                    "[Controller-%d-to-broker-%d-send-thread]: Controller %d epoch %d fails to send request "
                    "to "
                    "broker %d. Reconnecting to broker: %r",
                    self._broker.node_id,
                    self._broker_id,
                    self._broker.node_id,
                    request.message.controller_epoch,
                    self._broker_id,
                    error,
                )
                self.close()
                await trio.sleep(BACKOFF_S)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def _exchange(self, request: ControlRequest) -> Any:
        if self._stream is None:
            self._stream = await self._connect()
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        api_key = API_OF_REQUEST[type(request.message)]
        return await exchange(
            self._broker, self._stream, api_key, request.message, request.version, self._correlation_id
        )

    async def _connect(self) -> Stream:
        config = self._broker.config
        names = (config.get_str("control.plane.listener.name"), config.inter_broker_listener_name)
        for name in filter(None, names):
            for endpoint in self._registration.endpoints:
                if endpoint.listener_name == name:
                    timeout_s = config.get_int("controller.socket.timeout.ms") / 1000
                    return await self._broker.transport.connect(endpoint.host, endpoint.port, timeout_s)
        raise OSError(f"broker {self._broker_id} has no listener {names[-1]}")


async def ask_once(broker: Broker, broker_id: int, api_key: ApiKey, message: Any, version: int) -> Any:
    """One request on a connection of its own, within `request.timeout.ms`. Raises OSError, ProtocolError."""
    node = broker.metadata.broker_endpoint(broker_id, broker.config.inter_broker_listener_name)
    if node is None:
        raise OSError(f"broker {broker_id} is not available")
    timeout_s = broker.config.get_int("request.timeout.ms") / 1000
    try:
        with trio.fail_after(timeout_s):
            stream = await broker.transport.connect(node.host, node.port, timeout_s)
            try:
                return await exchange(broker, stream, api_key, message, version, correlation_id=0)
            finally:
                stream.close()
    except (EOFError, trio.TooSlowError, trio.ClosedResourceError) as error:
        raise OSError(f"broker {broker_id} did not answer: {error!r}") from error


async def exchange(
    broker: Broker, stream: Stream, api_key: ApiKey, message: Any, version: int, correlation_id: int
) -> Any:
    """Send one request and receive its response."""
    header = encode_request_header(RequestHeader(api_key, version, correlation_id, str(broker.node_id)))
    body = encode(message, version)
    await stream.send_parts([_SIZE.pack(len(header) + len(body)) + header + body])
    (size,) = _SIZE.unpack(await _receive(stream, _SIZE.size))
    if not 4 <= size <= broker.config.get_int("socket.request.max.bytes"):
        raise ProtocolError(f"a response of {size} bytes")
    frame = await _receive(stream, size)
    answered, position = parse_response_header(frame, api_key, version)
    if answered != correlation_id:
        raise ProtocolError(f"correlation id {answered}, expected {correlation_id}")
    return decode(API_INFO[api_key].response_class(), memoryview(frame)[position:], version)


async def _receive(stream: Stream, size: int) -> bytearray:
    buffer = bytearray(size)
    view = memoryview(buffer)
    received = 0
    while received < size:
        count = await stream.receive_into(view[received:])
        if count == 0:
            raise EOFError("the broker closed the connection")
        received += count
    return buffer


class _Queue(NamedTuple):
    items: trio.MemorySendChannel[ControlRequest | trio.Event]
    scope: trio.CancelScope


def _let_go(requests: trio.MemoryReceiveChannel[ControlRequest | trio.Event]) -> None:
    """Of a queue that is given up: nothing of it will be sent, and who waits for its end need not wait."""
    while True:
        try:
            request = requests.receive_nowait()
        except trio.WouldBlock:
            return
        if isinstance(request, trio.Event):
            request.set()


class Channels:
    """The controller's queues. Their length is bounded by what the controller decides, as in Kafka: not at
    all.
    """

    def __init__(self, broker: Broker, on_response: OnResponse) -> None:
        self._broker = broker
        self._on_response = on_response
        self._queues: dict[int, _Queue] = {}

    def add(self, broker_id: int, registration: BrokerRegistration, nursery: trio.Nursery) -> None:
        if broker_id in self._queues:
            return
        channel: BrokerChannel = (
            LocalChannel(self._broker)
            if broker_id == self._broker.node_id
            else PeerChannel(self._broker, broker_id, registration)
        )
        send, receive = trio.open_memory_channel[ControlRequest | trio.Event](math.inf)
        scope = trio.CancelScope()
        self._queues[broker_id] = _Queue(send, scope)
        nursery.start_soon(self._run, broker_id, channel, receive, scope)

    def remove(self, broker_id: int) -> None:
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            queue.scope.cancel()

    def send(self, broker_id: int, request: ControlRequest) -> None:
        queue = self._queues.get(broker_id)
        if queue is None:
            log.warning("Not sending %s to broker %d, since it is offline.", request.message, broker_id)
            return
        queue.items.send_nowait(request)

    async def flush(self, broker_id: int) -> None:
        """Return once the broker has answered everything that was sent to it before."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            flushed = trio.Event()
            queue.items.send_nowait(flushed)
            await flushed.wait()

    async def flush_all(self) -> None:
        """Return once every broker has answered everything that was sent to it before."""
        async with trio.open_nursery() as nursery:
            for broker_id in self._queues:
                nursery.start_soon(self.flush, broker_id)

    async def _run(
        self,
        broker_id: int,
        channel: BrokerChannel,
        requests: trio.MemoryReceiveChannel[ControlRequest | trio.Event],
        scope: trio.CancelScope,
    ) -> None:
        with scope:
            try:
                async for request in requests:
                    if isinstance(request, trio.Event):
                        request.set()
                        continue
                    response = await self._deliver(channel, broker_id, request)
                    if response is not None:
                        self._on_response(broker_id, request, response)
            finally:
                channel.close()
                _let_go(requests)

    async def _deliver(self, channel: BrokerChannel, broker_id: int, request: ControlRequest) -> Any:
        """The response; None when this broker's own handler failed, which the log tells."""
        try:
            return await channel.send(request)
        except Exception:
            log.exception("Broker %d failed on %s", broker_id, type(request.message).__name__)
            return None
