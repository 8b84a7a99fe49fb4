"""What a log line about a request carries: connection, client id, principal, correlation id, API, topic-partition.

    logger.info("Refused %s", group_id, extra=of_request(context))

Lines that a handler writes while it is awaited need no `extra`: `CURRENT` is its request. Steps, as of Produce and
Fetch, have no `CURRENT`, so that they pay nothing for lines that they do not write.

A formatter appends the fields to a line, or makes members of a JSON object of them (`control.log_formats`).
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from kpybroker.core.authorizer import Principal

TRACE: Final = 5
"""Kafka's level below Python's DEBUG."""

_ATTRIBUTE: Final = "request_fields"

Fields = dict[str, object]
Extra = dict[str, Fields]


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


CURRENT: ContextVar[Request | None] = ContextVar("kpybroker.request", default=None)
"""The request that the running task serves."""


def fields_of(record: logging.LogRecord) -> Fields:
    """What its line carries; nothing where it is not about a request. For the task that logs."""
    found: Fields | None = getattr(record, _ATTRIBUTE, None)
    if found is None:
        request = CURRENT.get()
        return {} if request is None else of_request(request)[_ATTRIBUTE]
    return found


def of_connection(connection: Connected) -> Extra:
    """For a line about a connection, or about a request that could not be read."""
    fields: Fields = {"connection": connection.connection_id}
    if connection.client_id is not None:
        fields["client_id"] = connection.client_id
    fields["principal"] = str(connection.principal)
    return {_ATTRIBUTE: fields}


def of_request(request: Request, topic: str | None = None, partition: int | None = None) -> Extra:
    """For a line about a request, and about a topic or a partition that it names."""
    connection = request.connection
    fields: Fields = {"connection": connection.connection_id}
    if request.client_id is not None:
        fields["client_id"] = request.client_id
    fields["principal"] = str(connection.principal)
    fields["correlation_id"] = request.correlation_id
    fields["api"] = _api_name(request.api_key)
    if topic is not None:
        fields["topic"] = topic
    if partition is not None:
        fields["partition"] = partition
    return {_ATTRIBUTE: fields}


def _api_name(api_key: int) -> str:
    from kpybroker.wire.api import API_INFO, ApiKey  # the command line imports this module, not the wire

    return API_INFO[ApiKey(api_key)].name if api_key in API_INFO else str(api_key)
