"""How the rest of this broker reaches the other brokers. Everything in this package is made here."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from kpybroker.broker.peers.broker_channels import BrokerChannels, OnResponse
from kpybroker.broker.peers.connection import LoginOn, PeerConnection, Request, RespondLocally, Secure, not_secured
from kpybroker.broker.peers.controller_channel import ControllerChannel
from kpybroker.broker.peers.kept_connections import KeptConnections

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.network.transport import Stream, Transport
    from kpybroker.wire.api import ApiKey


class Directory(NamedTuple):
    """What this broker knows of the others; each entry is looked up when it is needed."""

    address_of: Callable[[int], tuple[str, int] | None]
    """Host and port of a live broker's inter-broker listener."""
    controller_id: Callable[[], int]
    """-1 while there is no controller."""


class Peers:
    """Makes connections and channels to other brokers. It keeps none of them: the caller closes what it gets."""

    def __init__(self, host: Host, transport: Transport, directory: Directory, respond_locally: RespondLocally) -> None:
        self._host = host
        self._transport = transport
        self._directory = directory
        self._respond_locally = respond_locally
        self.login_on: LoginOn = lambda listener: None
        """Set at the start where a listener between brokers needs logins."""
        self.secure: Secure = not_secured
        """Set at the start where a listener between brokers is encrypted."""

    async def ask(self, broker_id: int, api_key: ApiKey, message: Any, version: int) -> Any:
        """Send one request on a connection of its own and return the response, within `request.timeout.ms`.

        Raises OSError if there is no response, ProtocolError if it is not a valid one.
        """
        timeout_s = self._host.config.get_int("request.timeout.ms") / 1000
        connection = self.connection_to(broker_id, str(self._host.node_id))
        try:
            with trio.fail_after(timeout_s):
                return await connection.ask(Request(api_key, message, version), timeout_s)
        except (EOFError, trio.TooSlowError, trio.ClosedResourceError) as error:
            raise OSError(f"broker {broker_id} did not respond: {error!r}") from error
        finally:
            connection.close()

    async def ask_controller_once(self, api_key: ApiKey, message: Any, version: int) -> Any:
        """The response of the controller as known now, without retries.

        Raises OSError, ProtocolError and, where this broker is the controller itself, trio.TooSlowError.
        """
        controller_id = self._directory.controller_id()
        if controller_id != self._host.node_id:
            return await self.ask(controller_id, api_key, message, version)
        with trio.fail_after(self._host.config.get_int("controller.socket.timeout.ms") / 1000):
            return await self._respond_locally(api_key, message, version)

    def connection_to(self, broker_id: int, client_id: str) -> PeerConnection:
        """A connection to the broker, opened by its first request to where the broker is registered at that time."""

        host = ""

        async def connect(timeout_s: float) -> Stream:
            nonlocal host
            address = self._directory.address_of(broker_id)
            if address is None:
                raise OSError(f"broker {broker_id} is not available" if broker_id >= 0 else "there is no controller")
            host = address[0]
            return await self._open(self._host.config.inter_broker_listener_name, *address, timeout_s)

        async def log_in(stream: Stream, timeout_s: float) -> float:
            login = self.login_on(self._host.config.inter_broker_listener_name)
            return inf if login is None else await login.log_in(stream, client_id, timeout_s, host)

        return PeerConnection(connect, client_id, log_in)

    def kept_connections(self) -> KeptConnections:
        """For requests that are made again and again, and may be sent twice."""
        return KeptConnections(self._host, self.connection_to)

    def controller_channel(self, name: str) -> ControllerChannel:
        """A channel to whichever broker is the controller; `name` is for the log."""
        return ControllerChannel(
            self._host, name, self._directory.controller_id, self.connection_to, self._respond_locally
        )

    def broker_channels(self, on_response: OnResponse) -> BrokerChannels:
        """The controller's channels, one a broker, without any broker yet."""
        return BrokerChannels(
            self._host, self._open, self._respond_locally, on_response, lambda listener: self.login_on(listener)
        )

    async def _open(self, listener: str, host: str, port: int, timeout_s: float) -> Stream:
        started = trio.current_time()
        stream = await self._transport.connect(host, port, timeout_s)
        return await self.secure(listener, host, stream, timeout_s - (trio.current_time() - started))
