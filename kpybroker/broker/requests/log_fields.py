"""What a log line about a request carries: connection, client id, principal, correlation id, API, topic-partition.

    logger.info("Refused %s", group_id, extra=of_request(context))

A formatter appends the fields to the line, or makes members of a JSON object of them (`cli.logs`). They are made where
a line is written, so that requests without a line pay nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kpybroker.broker.requests.clients import REQUEST_FIELDS
from kpybroker.wire.api import API_INFO, ApiKey

if TYPE_CHECKING:
    from kpybroker.core.authorizer import Principal

Extra = dict[str, dict[str, object]]


class Connected(Protocol):
    """A connection."""

    connection_id: str
    client_id: str | None
    principal: Principal


class Request(Protocol):
    """A request; `requests.context.RequestContext` is one."""

    api_key: int
    correlation_id: int
    client_id: str | None

    @property
    def connection(self) -> Connected:
        """Where it arrived."""


def of_connection(connection: Connected) -> Extra:
    """For a line about a connection, or about a request that could not be read."""
    fields: dict[str, object] = {"connection": connection.connection_id}
    if connection.client_id is not None:
        fields["client_id"] = connection.client_id
    fields["principal"] = str(connection.principal)
    return {REQUEST_FIELDS: fields}


def of_request(request: Request, topic: str | None = None, partition: int | None = None) -> Extra:
    """For a line about a request, and about a topic or a partition that it names."""
    connection = request.connection
    fields: dict[str, object] = {"connection": connection.connection_id}
    if request.client_id is not None:
        fields["client_id"] = request.client_id
    fields["principal"] = str(connection.principal)
    fields["correlation_id"] = request.correlation_id
    known = request.api_key in API_INFO
    fields["api"] = API_INFO[ApiKey(request.api_key)].name if known else str(request.api_key)
    if topic is not None:
        fields["topic"] = topic
    if partition is not None:
        fields["partition"] = partition
    return {REQUEST_FIELDS: fields}
