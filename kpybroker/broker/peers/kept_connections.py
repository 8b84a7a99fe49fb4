"""Connections to other brokers that are asked again and again: each is kept after its response, a few to a broker.

Requests must be ones that may be sent twice: that the other broker has closed a connection is noticed by its next
request, which is then sent on another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from kpybroker.broker.peers.connection import PeerConnection, Request

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.wire.api import ApiKey

KEPT_MAX: Final = 4
"""Connections to one broker while nothing is asked."""


class KeptConnections:
    """Has no more connections than requests at a time, or `KEPT_MAX` to each broker."""

    def __init__(self, host: Host, connection_to: Callable[[int, str], PeerConnection]) -> None:
        self._host = host
        self._connection_to = connection_to
        self._idle: dict[int, list[PeerConnection]] = {}

    async def ask(self, broker_id: int, api_key: ApiKey, message: Any, version: int) -> Any:
        """The response, within `request.timeout.ms`. Raises as `Peers.ask`."""
        timeout_s = self._host.config.get_int("request.timeout.ms") / 1000
        request = Request(api_key, message, version)
        idle = self._idle.setdefault(broker_id, [])
        try:
            with trio.fail_after(timeout_s):
                while idle:
                    connection = idle.pop()
                    try:
                        response = await connection.ask(request, timeout_s)
                    except (OSError, EOFError, trio.ClosedResourceError):
                        continue
                    return self._keep(broker_id, connection, response)
                connection = self._connection_to(broker_id, str(self._host.node_id))
                response = await connection.ask(request, timeout_s)
        except (EOFError, trio.TooSlowError, trio.ClosedResourceError) as error:
            raise OSError(f"broker {broker_id} did not respond: {error!r}") from error
        return self._keep(broker_id, connection, response)

    def _keep(self, broker_id: int, connection: PeerConnection, response: Any) -> Any:
        idle = self._idle.setdefault(broker_id, [])
        if len(idle) < KEPT_MAX:
            idle.append(connection)
        else:
            connection.close()
        return response

    def close(self) -> None:
        """Close what is kept, and keep nothing that is in use."""
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
            idle.clear()
