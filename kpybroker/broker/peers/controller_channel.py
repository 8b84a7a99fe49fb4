"""From this broker to whoever is the controller: Kafka's `NodeToControllerChannelManager`.

A request is repeated, at the controller of that time, until one has answered as the controller. One request is under
way at a time; who needs two ways at once (AlterPartition, AllocateProducerIds) has two channels. In the broker that is
the controller itself a request goes to the handler, without a socket.

Not here: what an answer means. An error code other than NOT_CONTROLLER is the caller's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.peers.broker_channels import answer_locally, exchange
from kpybroker.wire.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.network.transport import Stream
    from kpybroker.wire.api import ApiKey

log = logging.getLogger("kafka.server.NodeToControllerChannelManager")

BACKOFF_S = 0.1


class ControllerChannel:
    """`name` is for the log, as Kafka's channels have one."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker = broker
        self._name = name
        self._lock = trio.Lock()
        self._stream: Stream | None = None
        self._connected_to = -1
        self._correlation_id = 0

    async def ask(self, api_key: ApiKey, message: Any, version: int) -> Any:
        """The active controller's answer, however long it takes to find one."""
        async with self._lock:
            while True:
                try:
                    response = await self._ask_once(api_key, message, version)
                except (OSError, EOFError, trio.TooSlowError, trio.ClosedResourceError, ProtocolError) as error:
                    log.info("[%s] No answer to %s from the controller: %r", self._name, api_key.name, error)
                else:
                    if response.error_code != ErrorCode.NOT_CONTROLLER:
                        return response
                self.close()
                await trio.sleep(BACKOFF_S)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self._connected_to = -1

    async def _ask_once(self, api_key: ApiKey, message: Any, version: int) -> Any:
        """Of the controller as known now. Raises OSError and its like where there is none, or no answer."""
        broker = self._broker
        controller_id = broker.controller.controller_id
        if controller_id == broker.node_id:
            return await answer_locally(broker, api_key, message, version)
        timeout_s = broker.config.get_int("controller.socket.timeout.ms") / 1000
        with trio.fail_after(timeout_s):
            stream = await self._stream_to(controller_id, timeout_s)
            self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
            return await exchange(broker, stream, api_key, message, version, self._correlation_id)

    async def _stream_to(self, controller_id: int, timeout_s: float) -> Stream:
        if self._stream is not None and self._connected_to == controller_id:
            return self._stream
        self.close()
        node = self._broker.metadata.broker_endpoint(controller_id, self._broker.config.inter_broker_listener_name)
        if node is None:
            raise OSError(f"controller {controller_id} is not known here" if controller_id >= 0 else "no controller")
        self._stream = await self._broker.transport.connect(node.host, node.port, timeout_s)
        self._connected_to = controller_id
        return self._stream
