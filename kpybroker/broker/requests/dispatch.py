"""From a frame to the bytes of its response: route by API key and version, decode, handle, encode.

Rules. Only what `served.apis.SERVED` lists is served. Whatever a handler raises becomes its API's error response, in
one place (`_respond`). Only a ProtocolError ends the connection, as in Kafka's `KafkaApis` and `SocketServer`: a frame
that cannot be understood, or a Produce with acks=0 that failed.

A response that needs no waiting is returned at once. Anything else is steps (`loop.steps`), which the connection
resumes or awaits.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from kpybroker.broker.loop.host import Host
from kpybroker.broker.loop.steps import Pending, Steps, run_steps
from kpybroker.broker.loop.yielding import next_slice, paced
from kpybroker.broker.network.response import NO_RESPONSE, Response
from kpybroker.broker.network.sending import BUFFERS, Part
from kpybroker.broker.requests.clients import client_name
from kpybroker.broker.requests.context import ConnectionInfo, RequestContext
from kpybroker.broker.requests.error_counts import Codes, codes_of, count, count_steps
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.log_fields import CURRENT, of_request
from kpybroker.broker.requests.served.apis import LARGE_RESPONSES, SERVED
from kpybroker.broker.requests.served.version_cap import CapOf, uncapped
from kpybroker.broker.requests.stage_times import NEVER, StageTimes, Timing
from kpybroker.config.keys.own import FAST_PRODUCE, chosen_shortcuts
from kpybroker.core.tree import BadArguments, SystemFailure
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import LARGE_FRAME_BYTES, decode_from, decode_steps, encode_parts, encode_steps
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.headers import RequestHeader, parse_request_header
from kpybroker.wire.yield_budget import WorkBudget

if TYPE_CHECKING:
    from kpybroker.broker.requests.metering import Metering
    from kpybroker.core.security.quotas import ClientQuotas

api_log = logging.getLogger("kafka.server.KafkaApis")

Handle = Callable[[Any, Any, RequestContext], Any]
"""(broker, request, context) -> the response, or a coroutine or steps that make it; None for no response. The broker is
opaque here: handlers know it as `handlers.broker.Broker`.
"""
HandledFast = bytes | tuple[RequestContext, Any, Any] | None
HandleFast = Callable[[Any, memoryview, RequestHeader, ConnectionInfo], HandledFast]
"""For the most frequent requests of an API: the frame of the response; or (context, request, what `Handle` would
return); or None, and `Handle` is called.
"""
ErrorResponse = Callable[[Any, RequestContext, KafkaError], Any]
NONE = (0, -1)
FOR_CLIENT_ALONE: Final = frozenset({ApiKey.LIST_OFFSETS})
"""What may take long in its task, and has no effect that goes on after the handler has begun to wait: it ends with its
client.
"""

TREE_CODES: dict[type[Exception], ErrorCode] = {
    BadArguments: ErrorCode.INVALID_REQUEST,  # a name that no node of the tree can have
    SystemFailure: ErrorCode.KAFKA_STORAGE_ERROR,  # the disk of the embedded tree is full, or fails
}


class Handler(Protocol):
    """A module of `broker.handlers`; one with a fast path also has `FAST_VERSIONS` and `handle_fast`."""

    @property
    def LEDGER(self) -> Ledger:
        """What the module serves."""

    @property
    def handle(self) -> Handle:
        """Serves one request."""

    @property
    def error_response(self) -> ErrorResponse:
        """The response that reports one error for everything a request asked for."""


LoadHandler = Callable[[ApiKey], Handler]
RespondNow = Callable[[bytearray | memoryview, ConnectionInfo], Response | Pending[Response]]


class Route:
    """One served (API, version)."""

    __slots__ = (
        "codes",
        "error_counts",
        "error_response",
        "flexible_response",
        "handle",
        "handle_fast",
        "is_large",
        "key",
        "plain_requests",
        "request_class",
        "requests",
        "timed_first",
        "timed_from",
        "timed_last",
        "version",
    )

    def __init__(self, key: ApiKey, version: int, handler: Handler) -> None:
        info = API_INFO[key]
        self.key = key
        self.version = version
        self.requests = 0
        self.plain_requests = 0
        """Those that `handle_fast` did not respond to: their codes are in `error_counts`."""
        self.error_counts: dict[int, int] = {}
        self.codes: Codes | None = None
        """Where its responses have codes, while those are counted: only for the metrics."""
        self.timed_from = NEVER
        self.timed_first = self.timed_last = 0
        self.is_large = key in LARGE_RESPONSES
        self.handle = handler.handle
        oldest, newest = getattr(handler, "FAST_VERSIONS", NONE)
        self.handle_fast: HandleFast | None = getattr(handler, "handle_fast", None)
        if not oldest <= version <= newest:
            self.handle_fast = None
        self.error_response = handler.error_response
        self.request_class = info.request_class()
        self.flexible_response = info.response_header_version(version) == 1


class Dispatcher:
    """Routes the requests of one broker. It hands that broker to the handlers; itself it uses only what a Host has."""

    def __init__(self, broker: Host, load_handler: LoadHandler) -> None:
        self._broker = broker
        self._has_fast_produce = FAST_PRODUCE in chosen_shortcuts(broker.config.get_list("kpybroker.shortcuts"))
        self._load_handler = load_handler
        self._routes: dict[tuple[int, int], Route] = {}
        self._times: StageTimes | None = None
        self._quotas: ClientQuotas | None = None
        self._is_watching = False  # whether a request may be timed, or counted for a quota
        self.cap_of: CapOf = uncapped
        self.respond_now: RespondNow = self.respond_directly
        """What connections call; a test broker puts its interceptor here."""

    @property
    def requests(self) -> dict[tuple[int, int], int]:
        """How many requests have arrived by (API key, version)."""
        return {known: route.requests for known, route in self._routes.items()}

    @property
    def routes(self) -> list[Route]:
        """The routes that were used, with what they count for the metrics."""
        return list(self._routes.values())

    def time_requests(self, times: StageTimes) -> None:
        """From now on a part of all requests is timed, and the error codes of all are counted."""
        self._times = times
        self._is_watching = True
        for route in self._routes.values():
            self._count(route, times)

    def meter_requests(self, quotas: ClientQuotas | None) -> None:
        """From now on requests are counted for these quotas; None where there are none."""
        self._quotas = quotas
        self._is_watching = quotas is not None or self._times is not None

    @staticmethod
    def _count(route: Route, times: StageTimes) -> None:
        route.codes = codes_of(API_INFO[route.key].response_class(), route.version)
        times.tick((route,))

    def _new_route(self, api_key: int, version: int) -> Route:
        try:
            key = ApiKey(api_key)
            oldest, newest = SERVED[key]
        except ValueError:
            raise ProtocolError(f"API key {api_key} is not served here") from None
        except KeyError:
            raise ProtocolError(f"{ApiKey(api_key).name} is not served here") from None
        if not oldest <= version <= newest:
            if key is not ApiKey.API_VERSIONS:
                raise ProtocolError(f"{key.name} version {version} is not served; {oldest} to {newest} are")
            # KIP-511: a client of a later Kafka asks first; the response, in version 0, lists the versions to use.
            return Route(key, 0, self._load_handler(key))
        route = self._routes[api_key, version] = Route(key, version, self._load_handler(key))
        if not self._has_fast_produce:
            route.handle_fast = None
        if self._times is not None:
            self._count(route, self._times)
        return route

    def _is_capped(self, key: ApiKey, version: int, connection: ConnectionInfo) -> bool:
        """Whether this client is served no such version."""
        cap = self.cap_of(connection)
        if cap is None:
            return False
        oldest, newest = cap.served.get(key, NONE)
        return not oldest <= version <= newest

    def _route_above_cap(self, key: ApiKey, version: int) -> Route:
        """As for any version that is not served."""
        if key is not ApiKey.API_VERSIONS:
            raise ProtocolError(f"{key.name} version {version} is not served: versions are capped")
        return Route(key, 0, self._load_handler(key))

    async def respond(self, frame: bytearray, connection: ConnectionInfo) -> Response:
        """The response to one frame. Raises ProtocolError, which ends the connection."""
        return await self.respond_now(frame, connection)

    def respond_directly(
        self, frame: bytearray | memoryview, connection: ConnectionInfo, header: RequestHeader | None = None
    ) -> Response | Pending[Response]:
        """`respond`, at once where that takes no waiting. `header` is the frame's, if that is known.

        A frame that is a memoryview is borrowed for this call: it is copied unless its response is made at once.
        """
        if header is None:
            header = parse_request_header(frame)
        connection.client_id = header.client_id
        version = header.api_version
        route = self._routes.get((header.api_key, version)) or self._new_route(header.api_key, version)
        if self.cap_of is not uncapped and self._is_capped(route.key, version, connection):
            route = self._route_above_cap(route.key, version)
        route.requests += 1
        timing = metering = None
        if self._is_watching:
            timing, metering = self._watch(route, header, connection, len(frame))
        handling: Any = None
        handle_fast = route.handle_fast
        if handle_fast is not None and metering is None:
            try:
                handled = handle_fast(self._broker, memoryview(frame), header, connection)
            except Exception as error:
                handling = _failed(error)
            else:
                if isinstance(handled, bytes):
                    if timing is not None:
                        timing.responded()
                    return Response(handled)
                if handled is not None:
                    handled[0].timing = timing
                    return self._run(handled[0], self._respond(route, *handled))
        if isinstance(frame, memoryview):
            frame = bytearray(frame)
        authorizer, correlation_id = self._broker.authorizer, header.correlation_id
        context = RequestContext(connection, authorizer, header.api_key, version, correlation_id, header.client_id)
        if self._is_watching:
            context.metering, context.timing = metering, timing
        if route.version != version:
            request = route.request_class()  # a later ApiVersions, whose body can't be read
        elif len(frame) <= LARGE_FRAME_BYTES:
            request, _ = decode_from(route.request_class, memoryview(frame), header.body_offset, version)
        else:
            decoding = decode_steps(route.request_class, memoryview(frame)[header.body_offset :], version)
            try:
                next(decoding)
            except StopIteration as finished:
                request = finished.value  # large by its records, not by its elements
            else:
                return self._run(context, self._respond_to_large(route, context, decoding))
        return self._run(context, self._respond(route, context, request, handling))

    def _watch(
        self, route: Route, header: RequestHeader, connection: ConnectionInfo, size: int
    ) -> tuple[Timing | None, Metering | None]:
        """What times this request, and what counts it for quotas, where something does."""
        timing: Timing | None = None
        if route.requests >= route.timed_from and connection.timing is None and self._times is not None:
            timing = self._times.begin(route, connection, size)
        if self._quotas is None:
            return timing, None
        from kpybroker.broker.requests.metering import metering_of  # of brokers with quotas only

        client = connection.principal.name, header.client_id or ""
        size -= header.body_offset
        return timing, metering_of(self._quotas, route.key, client, size, self._broker.clock.time_ms)

    @staticmethod
    def _run(context: RequestContext, steps: Steps[Response]) -> Response | Pending[Response]:
        if context.metering is not None:
            steps = context.metering.around(steps)
        return run_steps(steps if context.timing is None else context.timing.around(steps))

    def error_response(self, header: RequestHeader, connection: ConnectionInfo, request: Any, error: KafkaError) -> Any:
        """The response that reports an error for a whole request. Raises ProtocolError where Kafka disconnects."""
        route = self._routes.get((header.api_key, header.api_version))
        if route is None:
            route = self._new_route(header.api_key, header.api_version)
        context = RequestContext.of(header, connection, self._broker.authorizer)
        return route.error_response(request, context, error)

    def _respond_to_large(
        self, route: Route, context: RequestContext, decoding: Generator[None, None, Any]
    ) -> Steps[Response]:
        """A request of so many elements that decoding alone takes more than one time slice."""
        yield next_slice
        return (yield from self._respond(route, context, (yield from paced(decoding)), is_large=True))

    def _respond(
        self, route: Route, context: RequestContext, request: Any, handling: Any = None, *, is_large: bool = False
    ) -> Steps[Response]:
        """Handle a request and encode its response, or that of the error that handling raised.

        `handling` is what a handler returned for it; None: it has not been called. With `is_large` even an error
        response, which names each of perhaps 10^5 elements, must not hold the loop.
        """
        failure: KafkaError | None = None
        route.plain_requests += 1
        try:
            if handling is None:
                handling = route.handle(self._broker, request, context)
            if isinstance(handling, GeneratorType):
                response = yield from handling
            elif isinstance(handling, CoroutineType):
                try:
                    response = yield partial(_awaited, context, handling)
                finally:
                    CURRENT.set(None)
                    handling.close()  # its connection may have ended before a task awaited it
            else:
                response = handling
        except ProtocolError:
            raise
        except Exception as error:
            failure = self._failure(route, context, error)
        if failure is not None:
            make_response = partial(route.error_response, request, context, failure)
            response = (yield partial(trio.to_thread.run_sync, make_response)) if is_large else make_response()
            del make_response
        if context.metering is not None:
            self._throttle(context, context.metering.settle(route.key, request, response, failure))
        del handling
        if response is None:
            return Response(None, (b"",), context.on_sent) if context.on_sent else NO_RESPONSE
        try:
            if is_large or route.is_large:
                parts = yield from self._encode_large(route, response)
            else:
                if route.codes is not None:
                    count(response, route.codes, route.error_counts)
                parts = encode_parts(response, route.version)
        except (ValueError, TypeError, struct.error) as error:  # as Kafka, whose writers refuse such a string too
            failure = self._failure(route, context, error)
            parts = encode_parts(route.error_response(request, context, failure), route.version)
        if is_large:  # freeing many elements takes a while: not in the same time slice as encoding the response
            del request
            yield trio.lowlevel.checkpoint
        return _frame(route, context, parts)

    @staticmethod
    def _throttle(context: RequestContext, throttle_ms: int) -> None:
        """The connection is muted for that long once the response has left."""
        if context.timing is not None:
            context.timing.throttle_ms = throttle_ms
        if throttle_ms > 0:
            mute = partial(context.connection.mute, trio.current_time() + throttle_ms / 1000)
            context.on_sent = [*(context.on_sent or ()), mute]

    @staticmethod
    def _encode_large(route: Route, response: Any) -> Steps[list[Part]]:
        if route.codes is not None:
            yield from paced(count_steps(response, route.codes, route.error_counts, WorkBudget()))
        return (yield from paced(encode_steps(response, route.version)))

    def _failure(self, route: Route, context: RequestContext, error: Exception) -> KafkaError:
        """What the client receives for an exception; one that no handler foresaw is logged.

        Without its traceback, which would be a reference cycle with the request and its response in it.
        """
        if isinstance(error, KafkaError):
            return error.with_traceback(None)
        if isinstance(error, LogDirError):
            self._broker.log_dir_failed(error)
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if (code := TREE_CODES.get(type(error))) is not None:
            text = "[KafkaApi-%d] %s version %d from %s failed: %s: %s"
            route_of = self._broker.node_id, route.key.name, route.version, client_name(context.connection)
            api_log.error(text, *route_of, type(error).__name__, error, extra=of_request(context))
            return KafkaError(code, str(error))
        api_log.error(
            "[KafkaApi-%d] Unexpected error handling %s version %d from %s",
            self._broker.node_id,
            route.key.name,
            route.version,
            client_name(context.connection),
            exc_info=error,
            extra=of_request(context),
        )
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _failed(error: Exception) -> Steps[Any]:
    """Steps that fail with `error`."""
    raise error
    yield


def _awaited(context: RequestContext, handling: Awaitable[Any]) -> Awaitable[Any]:
    """Called by the task that awaits the result: lines that it logs carry the request (`log_fields`)."""
    CURRENT.set(context)
    return handling if context.api_key not in FOR_CLIENT_ALONE else _for_client_alone(context, handling)


async def _for_client_alone(context: RequestContext, handling: Awaitable[Any]) -> Any:
    with context.connection.may_leave():
        return await handling


def _frame(route: Route, context: RequestContext, parts: list[Part]) -> Response:
    head = context.correlation_id.to_bytes(4, "big", signed=True)
    if route.flexible_response:
        head += b"\x00"
    if len(parts) == 1 and isinstance(body := parts[0], bytes) and not context.on_sent:
        return Response((len(head) + len(body)).to_bytes(4, "big") + head + body)
    size = len(head)
    for part in parts:
        size += len(part) if isinstance(part, BUFFERS) else part.size
    parts.insert(0, size.to_bytes(4, "big") + head)
    return Response(None, parts, context.on_sent or ())
