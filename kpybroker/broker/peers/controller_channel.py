"""From this broker to the controller, whichever broker that is: Kafka's `NodeToControllerChannelManager`.

A request is retried, each time at the controller of that moment, until one responds as the controller. One request is
in flight at a time; two kinds of requests that must not wait for each other (AlterPartition, AllocateProducerIds) use
two channels. If this broker is the controller, its handler is called without a socket; if it loses its session then,
and with it the office, the next controller is asked.

Not here: what a response means. An error code other than NOT_CONTROLLER is the caller's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.peers.connection import PEER_FAILURES, PeerConnection, Request, RespondLocally
from kpybroker.core.tree import SessionExpired
from kpybroker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.wire.api import ApiKey

logger = logging.getLogger("kafka.server.NodeToControllerChannelManager")

BACKOFF_S = 0.1


class ControllerChannel:
    """`name` is for the log, as Kafka's channels have one. Made by `Peers.controller_channel`."""

    def __init__(
        self,
        host: Host,
        name: str,
        controller_id: Callable[[], int],
        connection_to: Callable[[int, str], PeerConnection],
        respond_locally: RespondLocally,
    ) -> None:
        self._host = host
        self._name = name
        self._controller_id = controller_id
        self._connection_to = connection_to
        self._respond_locally = respond_locally
        self._lock = trio.Lock()
        self._connection: PeerConnection | None = None
        self._connected_to = -1

    async def ask(self, api_key: ApiKey, message: Any, version: int) -> Any:
        """The active controller's response, however long it takes to find one."""
        async with self._lock:
            while True:
                try:
                    response = await self._ask_once(Request(api_key, message, version))
                except (*PEER_FAILURES, SessionExpired) as error:
                    logger.info("[%s] No response to %s from the controller: %r", self._name, api_key.name, error)
                else:
                    if response.error_code != ErrorCode.NOT_CONTROLLER:
                        return response
                self.close()
                await trio.sleep(BACKOFF_S)

    def close(self) -> None:
        """Close the connection, if there is one. The channel may be used again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    async def _ask_once(self, request: Request) -> Any:
        """The response of the controller as known now. Raises PEER_FAILURES, SessionExpired."""
        controller_id = self._controller_id()
        if controller_id == self._host.node_id:
            return await self._respond_locally(*request)
        if self._connection is None or self._connected_to != controller_id:
            self.close()
            self._connection = self._connection_to(controller_id, str(self._host.node_id))
            self._connected_to = controller_id
        timeout_s = self._host.config.get_int("controller.socket.timeout.ms") / 1000
        with trio.fail_after(timeout_s):
            return await self._connection.ask(request, timeout_s)
