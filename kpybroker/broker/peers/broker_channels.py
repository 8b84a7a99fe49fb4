"""The controller's ordered channels to each broker: Kafka's `ControllerChannelManager`.

Each broker has one queue and one task. Requests leave in the order they were decided, one at a time, and each is
retried until the broker has responded or is removed. A request to this broker itself goes straight to the handler,
without being encoded; a request to another broker goes to its control plane or inter-broker listener.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from kpybroker.broker.peers.connection import PEER_FAILURES, LoginOn, Open, PeerConnection, Request, RespondLocally
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.network.transport import Stream
    from kpybroker.wire.znodes import BrokerRegistration

logger = logging.getLogger("kafka.controller.RequestSendThread")

BACKOFF_S = 0.1

API_OF_REQUEST: dict[type, ApiKey] = {
    LeaderAndIsrRequest: ApiKey.LEADER_AND_ISR,
    StopReplicaRequest: ApiKey.STOP_REPLICA,
    UpdateMetadataRequest: ApiKey.UPDATE_METADATA,
}


class ControlRequest(NamedTuple):
    """A message of `API_OF_REQUEST` and the version it is sent in."""

    message: Any
    version: int


OnResponse = Callable[[int, ControlRequest, Any], None]
"""Called in the loop with the broker's id, the request and its response."""

Deliver = Callable[[ControlRequest], Awaitable[Any]]
"""Deliver one request and return its response, however long it takes."""


class _PeerChannel:
    """To another broker: reconnects, and repeats a request until it has a response."""

    def __init__(
        self, host: Host, connect: Open, broker_id: int, registration: BrokerRegistration, login_on: LoginOn
    ) -> None:
        self._host = host
        self._open = connect
        self._broker_id = broker_id
        self._registration = registration
        self._login_on = login_on
        self._listener = self._peer_host = ""
        self._connection = PeerConnection(self._connect, str(host.node_id), self._log_in)

    async def send(self, request: ControlRequest) -> Any:
        api_key = API_OF_REQUEST[type(request.message)]
        while True:
            timeout_s = self._host.config.get_int("controller.socket.timeout.ms") / 1000
            try:
                with trio.fail_after(timeout_s):
                    return await self._connection.ask(Request(api_key, *request), timeout_s)
            except PEER_FAILURES as error:
                logger.warning(
                    "[Controller-%d-to-broker-%d-send-thread]: Controller %d epoch %d fails to send request to "
                    "broker %d. Reconnecting to broker: %r",
                    self._host.node_id,
                    self._broker_id,
                    self._host.node_id,
                    request.message.controller_epoch,
                    self._broker_id,
                    error,
                )
                await trio.sleep(BACKOFF_S)

    def close(self) -> None:
        self._connection.close()

    async def _connect(self, timeout_s: float) -> Stream:
        config = self._host.config
        names = (config.get_str("control.plane.listener.name").upper(), config.inter_broker_listener_name)
        for name in filter(None, names):
            for endpoint in self._registration.endpoints:
                if endpoint.listener_name == name:
                    self._listener, self._peer_host = name, endpoint.host
                    return await self._open(name, endpoint.host, endpoint.port, timeout_s)
        raise OSError(f"broker {self._broker_id} has no listener {names[-1]}")

    async def _log_in(self, stream: Stream, timeout_s: float) -> float:
        login = self._login_on(self._listener)
        if login is None:
            return math.inf
        return await login.log_in(stream, str(self._host.node_id), timeout_s, self._peer_host)


class _Queue(NamedTuple):
    items: trio.MemorySendChannel[ControlRequest | trio.Event]
    scope: trio.CancelScope


def _discard(requests: trio.MemoryReceiveChannel[ControlRequest | trio.Event]) -> None:
    """Empty the queue of a removed broker: nothing in it is sent, and no one waits for its end any longer."""
    while True:
        try:
            request = requests.receive_nowait()
        except trio.WouldBlock:
            return
        if isinstance(request, trio.Event):
            request.set()


class BrokerChannels:
    """All channels by broker id. As in Kafka the queues have no bound of their own: the controller limits them."""

    def __init__(
        self,
        host: Host,
        connect: Open,
        respond_locally: RespondLocally,
        on_response: OnResponse,
        login_on: LoginOn = lambda listener: None,
    ) -> None:
        self._host = host
        self._open = connect
        self._respond_locally = respond_locally
        self._on_response = on_response
        self._login_on = login_on
        self._queues: dict[int, _Queue] = {}

    @property
    def queued(self) -> dict[int, int]:
        """Requests that wait, by broker."""
        return {broker_id: queue.items.statistics().current_buffer_used for broker_id, queue in self._queues.items()}

    def add(self, broker_id: int, registration: BrokerRegistration, nursery: trio.Nursery) -> None:
        """Start the channel to a broker, in `nursery`; nothing happens if there is one."""
        if broker_id in self._queues:
            return
        send, receive = trio.open_memory_channel[ControlRequest | trio.Event](math.inf)
        scope = trio.CancelScope()
        self._queues[broker_id] = _Queue(send, scope)
        nursery.start_soon(self._run, broker_id, registration, receive, scope)

    def remove(self, broker_id: int) -> None:
        """End the channel; requests that have no response yet are dropped."""
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            queue.scope.cancel()

    def send(self, broker_id: int, request: ControlRequest) -> None:
        """Queue a request; one to a broker without a channel is dropped with a warning."""
        queue = self._queues.get(broker_id)
        if queue is None:
            logger.warning("Not sending %s to broker %d, since it is offline.", request.message, broker_id)
            return
        queue.items.send_nowait(request)

    async def flush(self, broker_id: int) -> None:
        """Return once the broker has responded to every request that was queued before."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            flushed = trio.Event()
            queue.items.send_nowait(flushed)
            await flushed.wait()

    async def flush_all(self) -> None:
        """Return once every broker has responded to every request that was queued before."""
        async with trio.open_nursery() as nursery:
            for broker_id in self._queues:
                nursery.start_soon(self.flush, broker_id)

    async def _send_locally(self, request: ControlRequest) -> Any:
        return await self._respond_locally(API_OF_REQUEST[type(request.message)], *request)

    async def _run(
        self,
        broker_id: int,
        registration: BrokerRegistration,
        requests: trio.MemoryReceiveChannel[ControlRequest | trio.Event],
        scope: trio.CancelScope,
    ) -> None:
        peer = _PeerChannel(self._host, self._open, broker_id, registration, self._login_on)
        deliver = self._send_locally if broker_id == self._host.node_id else peer.send
        with scope:
            try:
                async for request in requests:
                    if isinstance(request, trio.Event):
                        request.set()
                        continue
                    response = await self._deliver(deliver, broker_id, request)
                    if response is not None:
                        self._on_response(broker_id, request, response)
            finally:
                peer.close()
                _discard(requests)

    async def _deliver(self, deliver: Deliver, broker_id: int, request: ControlRequest) -> Any:
        """The response; None if this broker's own handler failed, which is logged."""
        try:
            return await deliver(request)
        except Exception:
            logger.exception("Broker %d failed on %s", broker_id, type(request.message).__name__)
            return None
