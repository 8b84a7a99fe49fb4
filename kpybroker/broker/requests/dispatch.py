"""From a frame to the bytes of its answer: API key -> handler, version gate, principal, authorizer.

Advertised is exactly what stands in `SERVED`; a test holds it against the handlers' own ledgers. Handlers and their
messages are imported on an API's first use. Whatever a handler raises becomes its API's error response; only a frame
that cannot be understood ends the connection, as in Kafka's `KafkaApis` and `SocketServer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import trio

from kpybroker.broker.loop.steps import Steps, Suspended, Unfinished, run_steps
from kpybroker.broker.network.sending import Part
from kpybroker.broker.requests.context import ConnectionInfo, RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode_from, decode_steps, encode_parts, encode_steps
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.headers import RequestHeader, parse_request_header

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker

T = TypeVar("T")

Answer = bytes | tuple[list[Part], RequestContext]
"""A response frame, empty where there is none (acks=0); or its parts, and the context whose `on_sent` is owed then."""

log = logging.getLogger("kafka.request.logger")
api_log = logging.getLogger("kafka.server.KafkaApis")

LARGE_FRAME_BYTES = 16 * 1024
_BUFFERS = (bytes, bytearray, memoryview)
"""Above this a frame may hold so many elements that decoding it or encoding its answer is done in steps."""

ANSWERS_MORE_THAN_ASKED = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.LIST_TRANSACTIONS,
    }
)
"""Whose answers may be large though the request is small."""

# What is served, and so what ApiVersions says: (oldest, newest) version.
SERVED: dict[ApiKey, tuple[int, int]] = {
    ApiKey.PRODUCE: (0, 11),
    ApiKey.FETCH: (0, 17),
    ApiKey.LIST_OFFSETS: (0, 9),
    ApiKey.METADATA: (0, 12),
    ApiKey.LEADER_AND_ISR: (0, 7),
    ApiKey.STOP_REPLICA: (0, 4),
    ApiKey.UPDATE_METADATA: (0, 8),
    ApiKey.CONTROLLED_SHUTDOWN: (0, 3),
    ApiKey.OFFSET_COMMIT: (0, 9),
    ApiKey.OFFSET_FETCH: (0, 9),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 5),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (0, 7),
    ApiKey.DELETE_TOPICS: (0, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 4),
    ApiKey.WRITE_TXN_MARKERS: (0, 1),
    ApiKey.TXN_OFFSET_COMMIT: (0, 4),
    ApiKey.DESCRIBE_CONFIGS: (0, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 4),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.ALTER_PARTITION: (0, 3),
    ApiKey.DESCRIBE_CLUSTER: (0, 1),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
    ApiKey.ALLOCATE_PRODUCER_IDS: (0, 0),
}

Handle = Callable[["Broker", Any, RequestContext], Any]
"""The response, or a coroutine or steps that make it."""
HandledFast = bytes | tuple[RequestContext, Any, Any] | None
HandleFast = Callable[["Broker", memoryview, RequestHeader, ConnectionInfo], HandledFast]
"""For the commonest requests of an API: the frame of the answer; or the request and what `Handle` gives for it; or
None, and `Handle` is asked."""
ErrorResponse = Callable[[Any, RequestContext, KafkaError], Any]
NONE = (0, -1)


class Handler(Protocol):
    """A module of `broker.handlers`; one with a fast path has `FAST_VERSIONS` and `handle_fast` too."""

    @property
    def LEDGER(self) -> Ledger: ...
    @property
    def handle(self) -> Handle: ...
    @property
    def error_response(self) -> ErrorResponse: ...


LoadHandler = Callable[[ApiKey], Handler]


async def _in_steps(steps: Generator[None, None, T]) -> T:
    """Run a generator to its end, with the loop given back at each of its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: T = finished.value
            return result
        await trio.lowlevel.checkpoint()


class Route:
    """One served (API, version)."""

    __slots__ = (
        "answers_more",
        "error_response",
        "flexible_response",
        "handle",
        "handle_fast",
        "key",
        "request_class",
        "requests",
        "version",
    )

    def __init__(self, key: ApiKey, version: int, handler: Handler) -> None:
        info = API_INFO[key]
        self.key = key
        self.version = version
        self.requests = 0
        self.answers_more = key in ANSWERS_MORE_THAN_ASKED
        self.handle = handler.handle
        oldest, newest = getattr(handler, "FAST_VERSIONS", NONE)
        self.handle_fast: HandleFast | None = getattr(handler, "handle_fast", None)
        if not oldest <= version <= newest:
            self.handle_fast = None
        self.error_response = handler.error_response
        self.request_class = info.request_class()
        self.flexible_response = info.response_header_version(version) == 1


class Dispatcher:
    """Belongs to one Broker."""

    def __init__(self, broker: Broker, load_handler: LoadHandler) -> None:
        self._broker = broker
        self._load_handler = load_handler
        self._routes: dict[tuple[int, int], Route] = {}

    @property
    def requests(self) -> dict[tuple[int, int], int]:
        """How many requests have come by (API key, version), for the metrics."""
        return {known: route.requests for known, route in self._routes.items()}

    def _new_route(self, api_key: int, version: int) -> Route:
        try:
            key = ApiKey(api_key)
            oldest, newest = SERVED[key]
        except (ValueError, KeyError):
            raise ProtocolError(f"API key {api_key} is not served here") from None
        if not oldest <= version <= newest:
            if key is not ApiKey.API_VERSIONS:
                raise ProtocolError(f"{key.name} version {version} is not served; {oldest} to {newest} are")
            # KIP-511: a client of a later Kafka asks first; it is told in version 0 which versions it may use.
            route = Route(key, 0, self._load_handler(key))
        else:
            route = Route(key, version, self._load_handler(key))
            self._routes[api_key, version] = route
        return route

    async def answer(self, frame: bytearray, connection: ConnectionInfo) -> Answer:
        """Raises ProtocolError for a frame that is no request, which ends the connection."""
        answer = self.answer_now(frame, connection)
        return answer if isinstance(answer, bytes | tuple) else await answer

    def answer_now(self, frame: bytearray | memoryview, connection: ConnectionInfo) -> Answer | Unfinished[Answer]:
        """`answer`, at once where nothing has to be waited for.

        A frame that is a memoryview is only lent: it is copied unless it can be answered at once.
        """
        header = parse_request_header(frame)
        version = header.api_version
        route = self._routes.get((header.api_key, version)) or self._new_route(header.api_key, version)
        route.requests += 1
        if route.handle_fast is not None:
            try:
                handled = route.handle_fast(self._broker, memoryview(frame), header, connection)
            except Exception as error:
                context = RequestContext.of(header, connection, self._broker.authorizer)
                request, _ = decode_from(route.request_class, bytearray(frame), header.body_offset, version)
                response = route.error_response(request, context, self._failure(route, context, error))
                return self._answered(route, context, request, response)
            if handled is not None:
                return handled if isinstance(handled, bytes) else self._answered(route, *handled)
        if isinstance(frame, memoryview):
            frame = bytearray(frame)
        context = RequestContext.of(header, connection, self._broker.authorizer)
        return self._answer_decoded(route, context, frame, header.body_offset)

    def _answer_decoded(
        self, route: Route, context: RequestContext, frame: bytearray, body_offset: int
    ) -> Answer | Unfinished[Answer]:
        version = context.api_version
        if route.version != version:
            request = route.request_class()  # an ApiVersions of the future: its body can't be read
        elif len(frame) <= LARGE_FRAME_BYTES:
            request, _ = decode_from(route.request_class, memoryview(frame), body_offset, version)
        else:
            steps = decode_steps(route.request_class, memoryview(frame)[body_offset:], version)
            try:
                next(steps)
            except StopIteration as finished:
                request = finished.value  # large by its records, not by its elements
            else:
                return self._answer_in_steps(route, context, steps)
        try:
            response = route.handle(self._broker, request, context)
        except ProtocolError:
            raise
        except Exception as error:
            response = route.error_response(request, context, self._failure(route, context, error))
        return self._answered(route, context, request, response)

    def _answered(
        self, route: Route, context: RequestContext, request: Any, response: Any
    ) -> Answer | Unfinished[Answer]:
        if isinstance(response, GeneratorType):
            return run_steps(self._answer_by_steps(route, context, request, response))
        if isinstance(response, CoroutineType):
            return self._answer_later(route, context, request, response)
        if response is None:
            return b""
        if route.answers_more:
            return self._encode_in_steps(route, context, response)
        return self._frame(route, context, encode_parts(response, route.version))

    async def _answer_later(
        self, route: Route, context: RequestContext, request: Any, handling: Coroutine[Any, Any, Any]
    ) -> Answer:
        try:
            response = await handling
        except ProtocolError:
            raise
        except Exception as error:
            response = route.error_response(request, context, self._failure(route, context, error))
        del request  # freeing many elements takes a while too: not in the same turn as the answer's
        if response is None:
            return b""
        if route.answers_more:
            return await self._encode_in_steps(route, context, response)
        return self._frame(route, context, encode_parts(response, route.version))

    def _answer_by_steps(
        self, route: Route, context: RequestContext, request: Any, handling: Steps[Any]
    ) -> Steps[Answer]:
        try:
            response = yield from handling
        except ProtocolError:
            raise
        except Exception as error:
            response = route.error_response(request, context, self._failure(route, context, error))
        if response is None:
            return b""
        return self._frame(route, context, encode_parts(response, route.version))

    async def _answer_in_steps(
        self, route: Route, context: RequestContext, steps: Generator[None, None, Any]
    ) -> Answer:
        """A request of so many elements that everything about it takes more than a turn."""
        await trio.lowlevel.checkpoint()
        request = await _in_steps(steps)
        try:
            response = route.handle(self._broker, request, context)
            if isinstance(response, GeneratorType):
                response = run_steps(response)
            if isinstance(response, CoroutineType | Suspended):
                response = await response
        except ProtocolError:
            raise
        except Exception as error:  # it stands at each of perhaps 10^5 elements
            failure = self._failure(route, context, error)
            response = await trio.to_thread.run_sync(route.error_response, request, context, failure)
        del request
        return b"" if response is None else await self._encode_in_steps(route, context, response)

    async def _encode_in_steps(self, route: Route, context: RequestContext, response: Any) -> Answer:
        parts = await _in_steps(encode_steps(response, route.version))
        return self._frame(route, context, parts)

    def _failure(self, route: Route, context: RequestContext, error: Exception) -> KafkaError:
        """What the client is told of an exception; one that is nobody's answer is logged.

        Without its traceback, which is a cycle with the request and its answer in it.
        """
        if isinstance(error, KafkaError):
            return error.with_traceback(None)
        api_log.error(
            "[KafkaApi-%d] Unexpected error handling %s version %d from %s",
            self._broker.node_id,
            route.key.name,
            route.version,
            context.connection_id,
            exc_info=error,
        )
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    @staticmethod
    def _frame(route: Route, context: RequestContext, parts: list[Part]) -> Answer:
        head = context.correlation_id.to_bytes(4, "big", signed=True)
        if route.flexible_response:
            head += b"\x00"
        if len(parts) == 1 and isinstance(body := parts[0], bytes) and not context.on_sent:
            return (len(head) + len(body)).to_bytes(4, "big") + head + body
        size = len(head)
        for part in parts:
            size += len(part) if isinstance(part, _BUFFERS) else part.size
        parts.insert(0, size.to_bytes(4, "big") + head)
        return parts, context
