"""What a log line about a request carries: connection, client id, principal, correlation id, API, topic-partition.

    logger.info("Refused %s", group_id, extra=of_request(context))

Lines that a handler writes while it is awaited need no `extra`: `CURRENT` is its request. Steps, as of Produce and
Fetch, have no `CURRENT`, so that they pay nothing for lines that they do not write.

A formatter appends the fields to a line, or makes members of a JSON object of them (`control.log_formats`).

`ClientLines` is the filter of a handler that lets one client cause so many lines a minute and no more. A client is its
address, which `of_request`, `of_connection` and `core.line_limit.about_client` give.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Final

from kpybroker.core.line_limit import CLIENT, LineLimit

if TYPE_CHECKING:
    from kpybroker.broker.requests.context import ConnectionInfo, RequestContext

TRACE: Final = 5
"""Kafka's level below Python's DEBUG."""

_ATTRIBUTE: Final = "request_fields"

Fields = dict[str, object]
Extra = dict[str, object]

BETWEEN_BROKERS: Final = frozenset({4, 5, 6, 7, 56, 67})
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, AlterPartition, AllocateProducerIds: of their lines,
such as one for each log that is created, none is left out.
"""
SUPPRESSED: Final = (
    "%d more lines about the client at %s were not written: it caused more than a client may in a minute"
)


CURRENT: ContextVar[RequestContext | None] = ContextVar("kpybroker.request", default=None)
"""The request that the running task serves."""


def client_may_leave() -> AbstractContextManager[None]:
    """`ConnectionInfo.may_leave` of the request that the running task serves, for code that does not know it."""
    request = CURRENT.get()
    return nullcontext() if request is None else request.connection.may_leave()


def fields_of(record: logging.LogRecord) -> Fields:
    """What its line carries; nothing where it is not about a request. For the task that logs."""
    found: Fields | None = getattr(record, _ATTRIBUTE, None)
    if found is None:
        request = CURRENT.get()
        return {} if request is None else _fields_of_request(request)
    return found


def client_of(record: logging.LogRecord) -> str | None:
    """The address of the client that caused a line; None where no client did. For the task that logs."""
    found: str | None = getattr(record, CLIENT, None)
    if found is None and (request := CURRENT.get()) is not None and request.api_key not in BETWEEN_BROKERS:
        return request.connection.client_host
    return found


def of_connection(connection: ConnectionInfo) -> Extra:
    """For a line about a connection, or about a request that could not be read."""
    fields: Fields = {"connection": connection.connection_id}
    if connection.client_id is not None:
        fields["client_id"] = connection.client_id
    fields["principal"] = str(connection.principal)
    return {_ATTRIBUTE: fields, CLIENT: connection.client_host}


def of_request(request: RequestContext, topic: str | None = None, partition: int | None = None) -> Extra:
    """For a line about a request, and about a topic or a partition that it names."""
    fields = _fields_of_request(request)
    if topic is not None:
        fields["topic"] = topic
    if partition is not None:
        fields["partition"] = partition
    return {_ATTRIBUTE: fields, CLIENT: request.connection.client_host}


def _fields_of_request(request: RequestContext) -> Fields:
    connection = request.connection
    fields: Fields = {"connection": connection.connection_id}
    if request.client_id is not None:
        fields["client_id"] = request.client_id
    fields["principal"] = str(connection.principal)
    fields["correlation_id"] = request.correlation_id
    fields["api"] = _api_name(request.api_key)
    return fields


def _api_name(api_key: int) -> str:
    from kpybroker.wire.api import API_INFO, ApiKey  # the command line imports this module, not the wire

    return API_INFO[ApiKey(api_key)].name if api_key in API_INFO else str(api_key)


class ClientLines(logging.Filter):
    """Of a handler: leaves out what a client causes beyond its budget (`core.line_limit`), and writes how many it were.

    Lines below INFO are not counted: who lowers the level wants them.
    """

    def __init__(self, handler: logging.Handler, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._handler = handler
        self._now = now
        self._limit = LineLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the handler writes the record."""
        if record.levelno < logging.INFO or (client := client_of(record)) is None:
            return True
        return self._limit.allows(_network(client), self._now(), is_warning=record.levelno >= logging.WARNING)

    def allow(self, lines_max: int) -> None:
        """So many lines of each client in a minute; 0: any number (`kpybroker.log.client.lines.max`)."""
        self._limit.lines_max = lines_max

    def write_counts(self, *, is_end: bool = False) -> None:
        """Write a line for each client whose minute is over, or `is_end`, and about which lines were left out."""
        for subject, count in self._limit.take_counts(inf if is_end else self._now()):
            args = (count, subject)
            line = logging.LogRecord("kafka.network.SocketServer", logging.WARNING, __file__, 0, SUPPRESSED, args, None)
            self._handler.handle(line)


def write_counts(*, is_end: bool = False) -> None:
    """`ClientLines.write_counts` of all handlers of the process."""
    for found in all_client_lines():
        found.write_counts(is_end=is_end)


def all_client_lines() -> list[ClientLines]:
    """Of all handlers of the process."""
    loggers = [found for found in logging.root.manager.loggerDict.values() if isinstance(found, logging.Logger)]
    handlers = {handler for logger in (logging.root, *loggers) for handler in logger.handlers}
    return [found for handler in handlers for found in handler.filters if isinstance(found, ClientLines)]


def _network(address: str) -> str:
    """The address; of IPv6 the network, all of whose 2^64 addresses one host may use."""
    if address.count(":") < 2 or address.startswith("::ffff:"):
        return address
    import ipaddress

    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
