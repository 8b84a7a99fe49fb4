"""Single requests that confluent-kafka does not offer, with the broker's own codec over a socket.

`WireBroker` is one connection, `WireCluster` finds the broker a request is for: any, one by id, a coordinator, the
controller. Each request uses the newest version that both sides have. Every failure is a CommandError. Nothing is
retried but the search for a coordinator, since the first one for a topic of coordinators creates that topic.

A request may take the settings' time. A `Deadline` bounds what all requests of a cluster take together.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
import struct
import time
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, NamedTuple

from kpybroker.client.connect import sasl, tls
from kpybroker.client.connect.errors import FIXES, CommandError, check
from kpybroker.client.connect.settings import CLIENT_ID, Settings
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import UnsupportedFieldError, decode, encode
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
SIZE: Final = struct.Struct(">i")
SOFTWARE: Final = ("kpybroker-cli", "1")
GROUP, TRANSACTION = 0, 1
"""Key types of FindCoordinator."""

NOT_YET: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
RETRY_S: Final = 0.1

Ranges = Mapping[int, tuple[int, int]]


NEWEST_WITH_NAMES: Final = {ApiKey.PRODUCE: 12, ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9}
"""The newest versions that a command asks in: later ones have topic ids in place of the names that a command has."""


class WireError(CommandError):
    """A failure of the connection; `closed` when the broker closed it without a response."""

    def __init__(self, cause: str, *, closed: bool = False) -> None:
        super().__init__(cause, FIXES["_TRANSPORT"])
        self.closed = closed


class Deadline:
    """Until when the last response may arrive, on whichever connection. There is none before `begin`."""

    def __init__(self) -> None:
        self._total_s = math.inf
        self._at = math.inf

    def begin(self, total_s: float) -> None:
        """From now on, all requests together may take so long."""
        self._total_s = total_s
        self._at = time.monotonic() + total_s

    def within(self, seconds: float) -> float:
        """So many seconds, or what is left. Raises WireError if nothing is."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise WireError(f"it was not asked: the {self._total_s:g} seconds for all requests are over")
        return min(seconds, left)

    def late(self, name: str, timeout_s: float) -> WireError:
        """The error for a broker whose response has not arrived in time."""
        if time.monotonic() < self._at:
            return WireError(f"{name} does not respond within {timeout_s:g} seconds")
        return WireError(f"{name} does not respond within the {self._total_s:g} seconds for all requests")


class WireBroker:
    """One connection, in step: a request is sent when the response to the one before it has been read."""

    def __init__(
        self,
        address: tuple[str, int],
        settings: Settings,
        *,
        context: ssl.SSLContext | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        """Connect, with TLS if `context` is given. `versions` is empty until `handshake`."""
        self.address = address
        self.node_id: int | None = None
        """Its id, where `WireCluster` knows it."""
        self.versions: Ranges = {}
        self.mechanism: str | None = None
        """Of the login, once there was one."""
        self.is_broken = False
        """Whether a request got no response: what arrives now may be that of another one."""
        self._timeout_s = settings.timeout_s
        self._client_id = settings.properties.get("client.id", CLIENT_ID)
        self._correlation_id = 0
        self._name = f"{address[0]}:{address[1]}"
        self._deadline = Deadline() if deadline is None else deadline
        try:
            self._socket = socket.create_connection(address, timeout=self._deadline.within(settings.timeout_s))
        except OSError as error:
            raise WireError(f"cannot connect to {self._name}: {error.strerror or error}") from None
        if context is not None:
            try:
                self._socket = context.wrap_socket(self._socket, server_hostname=address[0])
            except (OSError, ssl.SSLError) as error:
                self._socket.close()
                reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or str(error)
                raise CommandError(f"TLS with {self._name} failed: {reason}", FIXES["_SSL"]) from None

    def handshake(self) -> Ranges:
        """Ask for the APIs and their versions; a broker of before 2.4 rejects version 3 with its own list."""
        request = ApiVersionsRequest(client_software_name=SOFTWARE[0], client_software_version=SOFTWARE[1])
        response = self.request_in(ApiKey.API_VERSIONS, request, 3)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and not response.api_keys:
            response = self.request_in(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        return self.versions

    def login(self, properties: Mapping[str, str]) -> None:
        """SASL with the configured mechanism. Raises CommandError if it is refused."""
        mechanism = sasl.mechanism(properties)
        exchange = sasl.exchange(properties)
        response = self.request(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism))
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            known = ", ".join(response.mechanisms) or "none"
            raise CommandError(
                f"{self._name} does not offer {mechanism} but {known}", "set sasl.mechanism to one of these"
            )
        check(response.error_code)
        message = next(exchange)
        while True:
            challenge = self.request(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message))
            check(challenge.error_code, challenge.error_message)
            try:
                message = exchange.send(bytes(challenge.auth_bytes))
            except StopIteration:
                self.mechanism = mechanism
                return

    def request(self, key: ApiKey, message: Any) -> Any:
        """The response, in the newest version of both sides. Raises CommandError if there is none."""
        version = self.version_of(key)
        try:
            return self.request_in(key, message, version)
        except UnsupportedFieldError as error:
            raise CommandError(f"{self._name} is too old: {error}", FIXES["UNSUPPORTED_VERSION"]) from None

    def version_of(self, key: ApiKey) -> int:
        """The newest version of an API that both sides have. Raises CommandError if there is none."""
        ours, theirs = API_INFO[key].valid_versions, self.versions.get(key)
        ours = ours[0], min(ours[1], NEWEST_WITH_NAMES.get(key, ours[1]))
        if theirs is None:
            raise CommandError(f"{self._name} does not serve {API_INFO[key].name}", FIXES["UNSUPPORTED_VERSION"])
        version = min(ours[1], theirs[1])
        if version < max(ours[0], theirs[0]):
            raise CommandError(
                f"{self._name} serves versions {theirs[0]} to {theirs[1]} of {API_INFO[key].name}, "
                f"and this command has {ours[0]} to {ours[1]}",
                "use a kpybroker as new as the broker",
            )
        return version

    def request_in(self, key: ApiKey, message: Any, version: int) -> Any:
        """The response to a request in `version`; to ApiVersions, an error arrives in version 0."""
        self._correlation_id += 1
        header = encode_request_header(RequestHeader(key, version, self._correlation_id, self._client_id))
        body = encode(message, version)
        frame = self.exchange(SIZE.pack(len(header) + len(body)) + header + body)
        try:
            correlation_id, position = parse_response_header(frame, key, version)
            if correlation_id != self._correlation_id:
                raise ProtocolError(f"the response is to request {correlation_id}, not {self._correlation_id}")
            if key == ApiKey.API_VERSIONS and frame[position : position + 2] == SIZE.pack(35)[2:]:
                version = 0  # KIP-511
            return decode(API_INFO[key].response_class(), frame[position:], version)
        except ProtocolError as error:
            raise WireError(f"{self._name} sent a response that cannot be read: {error}") from None

    def exchange(self, frame: bytes) -> bytes:
        """Send bytes and read one frame; raises WireError."""
        is_whole = False
        try:
            self._socket.settimeout(self._deadline.within(self._timeout_s))
            self._socket.sendall(frame)
            (size,) = SIZE.unpack(self._read(SIZE.size))
            if not 0 <= size <= FRAME_BYTES_MAX:
                raise WireError(f"{self._name} does not speak Kafka's protocol: a frame of {size} bytes")
            body = self._read(size)
            is_whole = True
            return body
        except TimeoutError:
            raise self._deadline.late(self._name, self._timeout_s) from None
        except OSError as error:
            raise WireError(f"the connection to {self._name} failed: {error.strerror or error}", closed=True) from None
        finally:
            self.is_broken = not is_whole

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._socket.settimeout(self._deadline.within(self._timeout_s))
            chunk = self._socket.recv(min(size - len(data), 1 << 20))
            if not chunk:
                raise WireError(f"{self._name} closed the connection", closed=True)
            data += chunk
        return bytes(data)

    def is_open(self) -> bool:
        """Whether the next request can be sent: nothing is pending, and the broker has not closed the connection."""
        if self.is_broken:
            return False
        try:
            return not select.select([self._socket], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def __enter__(self) -> WireBroker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def handshaken(address: tuple[str, int], settings: Settings, deadline: Deadline | None = None) -> WireBroker:
    """A connection whose versions are known: TLS as configured, and no login yet."""
    context = tls.context(settings.properties) if tls.is_tls(settings.protocol) else None
    broker = WireBroker(address, settings, context=context, deadline=deadline)
    try:
        broker.handshake()
    except BaseException:
        broker.close()
        raise
    return broker


def connect(address: tuple[str, int], settings: Settings, deadline: Deadline | None = None) -> WireBroker:
    """A connection that is ready for requests: TLS and SASL as configured, versions known."""
    broker = handshaken(address, settings, deadline)
    try:
        if settings.protocol.startswith("SASL"):
            broker.login(settings.properties)
    except BaseException:
        broker.close()
        raise
    return broker


class Node(NamedTuple):
    """A broker as Metadata has it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class WireCluster:
    """Connections to the brokers of a cluster, opened when they are first used; close it with `with`."""

    def __init__(self, settings: Settings, deadline: Deadline | None = None) -> None:
        self._settings = settings
        self._deadline = Deadline() if deadline is None else deadline
        self._stack = ExitStack()
        self._brokers: dict[int, WireBroker] = {}
        self._any = self._stack.enter_context(self._first())
        self.refresh()

    def _first(self) -> WireBroker:
        """The first bootstrap server that works; the last failure if none does."""
        failure: CommandError | None = None
        for address in self._settings.addresses:
            try:
                return connect(address, self._settings, self._deadline)
            except CommandError as error:
                failure = error
        assert failure is not None, "there is at least one address"
        raise failure

    def refresh(self) -> None:
        """Ask for the brokers again. Raises CommandError."""
        self.know(self.any().request(ApiKey.METADATA, MetadataRequest(topics=[])))

    def know(self, metadata: Any) -> None:
        """Take the brokers from a response of Metadata."""
        self.nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in metadata.brokers}
        self.cluster_id: str | None = metadata.cluster_id
        self.controller_id: int = metadata.controller_id
        self.known_at = time.monotonic()

    @property
    def timeout_s(self) -> float:
        """How long a broker may take."""
        return self._settings.timeout_s

    def any(self) -> WireBroker:
        """A broker, whichever."""
        if self._any.is_broken:
            self._any = self._stack.enter_context(self._first())
        return self._any

    def is_open(self) -> bool:
        """Whether all connections can be used again."""
        return all(one.is_open() for one in (self._any, *self._brokers.values()))

    def broker(self, node_id: int) -> WireBroker:
        """The broker with this id. Raises CommandError if the cluster has none, or it cannot be reached."""
        if node_id not in self._brokers or self._brokers[node_id].is_broken:
            node = self.nodes.get(node_id)
            if node is None:
                known = ", ".join(map(str, sorted(self.nodes)))
                raise CommandError(f"the cluster has no broker {node_id}", f"name one of these: {known}")
            broker = self._stack.enter_context(connect((node.host, node.port), self._settings, self._deadline))
            broker.node_id = node_id
            self._brokers[node_id] = broker
        return self._brokers[node_id]

    def coordinator(self, key: str, key_type: int) -> WireBroker:
        """The coordinator of a group (GROUP) or a transactional id (TRANSACTION), waiting until there is one."""
        if self.any().version_of(ApiKey.FIND_COORDINATOR) >= 4:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        else:
            request = FindCoordinatorRequest(key_type=key_type, key=key)
        deadline = time.monotonic() + self._settings.timeout_s
        while True:
            response = self.any().request(ApiKey.FIND_COORDINATOR, request)
            found = response.coordinators[0] if response.coordinators else response
            if found.error_code not in NOT_YET or time.monotonic() > deadline:
                check(found.error_code, found.error_message)
                return self.broker(found.node_id)
            time.sleep(RETRY_S)

    def topics(self, names: list[str] | None) -> Any:
        """Metadata of these topics, or of all; nothing is created."""
        wanted = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        return self.any().request(ApiKey.METADATA, request).topics

    def close(self) -> None:
        """Close all connections."""
        self._stack.close()

    def __enter__(self) -> WireCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
