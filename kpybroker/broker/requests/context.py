"""What a handler knows about its request and the connection that the request arrived on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from kpybroker.broker.network.transport import Stream
from kpybroker.broker.requests.refused_batches import RefusedBatches
from kpybroker.core.authorizer import (
    ANONYMOUS,
    CLUSTER_NAME,
    Action,
    Authorizer,
    Operation,
    Principal,
    ResourceType,
    authorized_operations,
)
from kpybroker.core.budget import Owner
from kpybroker.core.log.header_trust import HeaderTrust
from kpybroker.wire.constants import UNKNOWN_SOFTWARE
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.headers import RequestHeader

if TYPE_CHECKING:
    from kpybroker.broker.requests.metering import Metering
    from kpybroker.broker.requests.stage_times import Timing
    from kpybroker.core.security.quotas import MutationShare

REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error of a request that its principal may not make."""


class ConnectionInfo(Protocol):
    """The part of a connection that handlers may see. What serves it sees more (`serving.Served`)."""

    connection_id: str
    client_host: str
    client_port: int
    local_host: str
    local_port: int
    listener_name: str
    security_protocol: str
    principal: Principal
    client_id: str | None
    client_software_name: str
    client_software_version: str
    refused_batches: RefusedBatches
    header_trust: HeaderTrust
    timing: Timing | None
    """Of the request that is timed, until its response is sent."""

    @property
    def stream(self) -> Stream | None:
        """What carries it; None where there is no socket. For faults of the network only."""

    @property
    def turns_of(self) -> Hashable:
        """The client whose turns its requests take: its principal, or its address where it has none."""

    def end(self) -> None:
        """Close it soon; for other tasks than its own."""

    def may_leave(self, *, serves_rest: bool = False) -> AbstractContextManager[None]:
        """Around what is awaited for its client alone: it is cancelled, and the connection ends, if the client leaves.

        With `serves_rest` not if the client has sent more before it closed its side: that is served in its turn.
        Only in the connection's own task, and where nothing is left half done.
        """

    def mute(self, deadline: float) -> None:
        """Serve no further request before that time on trio's clock. For `on_sent` callbacks of its request only."""


class PlainConnectionInfo:
    """A `ConnectionInfo` without a socket behind it: requests a broker sends to itself, and tests."""

    __slots__ = (
        "client_host",
        "client_id",
        "client_port",
        "client_software_name",
        "client_software_version",
        "connection_id",
        "header_trust",
        "listener_name",
        "local_host",
        "local_port",
        "principal",
        "refused_batches",
        "security_protocol",
        "stream",
        "timing",
    )

    def __init__(
        self,
        *,
        connection_id: str = "",
        client: tuple[str, int] = ("127.0.0.1", 0),
        local: tuple[str, int] = ("127.0.0.1", 9092),
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        principal: Principal = ANONYMOUS,
    ) -> None:
        self.connection_id = connection_id
        self.client_host, self.client_port = client
        self.local_host, self.local_port = local
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.principal = principal
        self.client_id: str | None = None
        self.client_software_name = UNKNOWN_SOFTWARE
        self.client_software_version = UNKNOWN_SOFTWARE
        self.refused_batches = RefusedBatches()
        self.header_trust = HeaderTrust()
        self.stream: Stream | None = None
        self.timing: Timing | None = None

    @property
    def turns_of(self) -> Hashable:
        """As for a client that has not logged in."""
        return self.client_host

    def end(self) -> None:
        """Does nothing: there is no connection."""

    def may_leave(self, *, serves_rest: bool = False) -> AbstractContextManager[None]:
        """Does nothing: no one can leave."""
        return nullcontext()

    def mute(self, deadline: float) -> None:
        """Does nothing: there is no connection."""


class RequestContext:
    """One request: its header, its connection, and the authorizer bound to its principal.

    `on_sent` callbacks run once the response has left or failed to; fetch releases its file slices there.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "authorizer",
        "client_id",
        "connection",
        "correlation_id",
        "metering",
        "on_sent",
    )

    def __init__(
        self,
        connection: ConnectionInfo,
        authorizer: Authorizer,
        api_key: int,
        api_version: int,
        correlation_id: int = 0,
        client_id: str | None = None,
    ) -> None:
        self.connection = connection
        self.authorizer = authorizer
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.on_sent: list[Callable[[], None]] | None = None
        self.metering: Metering | None = None  # where a quota limits the request

    @staticmethod
    def of(header: RequestHeader, connection: ConnectionInfo, authorizer: Authorizer) -> RequestContext:
        """The context of a request with this header on this connection."""
        return RequestContext(
            connection, authorizer, header.api_key, header.api_version, header.correlation_id, header.client_id
        )

    @property
    def timing(self) -> Timing | None:
        """What times the request for the metrics, where something does."""
        timing = self.connection.timing
        return None if timing is None or timing.has_responded else timing

    @property
    def principal(self) -> Principal:
        """The authenticated principal of the connection."""
        return self.connection.principal

    @property
    def owner(self) -> Owner:
        """Who is charged for state that the request builds: who has logged in, else the client's address."""
        connection = self.connection
        principal = connection.principal
        if principal is ANONYMOUS or principal == ANONYMOUS:
            return Owner(address=connection.client_host)
        return Owner(str(principal))

    @property
    def client_host(self) -> str:
        """The client's address."""
        return self.connection.client_host

    @property
    def local_host(self) -> str:
        """The address that the client connected to."""
        return self.connection.local_host

    @property
    def local_port(self) -> int:
        """The port that the client connected to."""
        return self.connection.local_port

    @property
    def listener_name(self) -> str:
        """The name of the listener that accepted the connection."""
        return self.connection.listener_name

    @property
    def connection_id(self) -> str:
        """The connection in logs, as Kafka writes it."""
        return self.connection.connection_id

    def authorized(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        references: int = 1,
        log_denied: bool = True,
    ) -> bool:
        """Whether the principal may do `operation` with a resource (by default the cluster).

        For the audit log: `references` is how often the request names the resource; without `log_denied` the client
        did not ask for what it is denied.
        """
        connection, authorizer = self.connection, self.authorizer
        allowed = authorizer.authorize(connection.principal, connection.client_host, operation, resource_type, name)
        if authorizer.audits_allowed if allowed else log_denied:
            authorizer.audit(self, Action(operation, resource_type, name, references), allowed)
        return allowed

    def require(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> None:
        """Raises the KafkaError of `REFUSALS` where the principal is not `authorized`."""
        if not self.authorized(operation, resource_type, name):
            raise KafkaError(REFUSALS[resource_type])

    def mutations(self, strict_from: int) -> MutationShare | None:
        """What the request may create and delete; strictly from that version on. None: without limit."""
        if self.metering is None:
            return None
        return self.metering.mutations(is_strict=self.api_version >= strict_from)

    def side_mutations(self, *, is_strict: bool = False) -> MutationShare | None:
        """The same for what it creates by the way: counted, and refused only where `is_strict`."""
        return None if self.metering is None else self.metering.side_mutations(is_strict=is_strict)

    def authorized_operations(
        self, resource_type: ResourceType, name: str = CLUSTER_NAME, more: Collection[Operation] = ()
    ) -> int:
        """The bit field of all operations that the principal may do, where a request asks for it.

        `more` are operations that not every Kafka has for this type.
        """
        principal, host, authorize = self.principal, self.client_host, self.authorizer.authorize
        return authorized_operations(
            lambda one: authorize(principal, host, one, resource_type, name), resource_type, more
        )

    def authorized_on_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the principal may do `operation` with some resource of this type (KIP-679)."""
        principal, host = self.connection.principal, self.connection.client_host
        allowed = self.authorizer.authorize_by_resource_type(principal, host, operation, resource_type)
        if not allowed or self.authorizer.audits_allowed:
            self.authorizer.audit(self, Action(operation, resource_type, None, references=0), allowed)
        return allowed
