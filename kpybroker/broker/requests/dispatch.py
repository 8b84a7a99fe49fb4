"""From a frame to the bytes of its response: route by API key and version, decode, handle, encode.

Rules. Only what `served.apis.SERVED` lists is served. Whatever a handler raises becomes its API's error response, in
one place (`_handled`). Only a ProtocolError ends the connection, as in Kafka's `KafkaApis` and `SocketServer`: a frame
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
from kpybroker.broker.network.response import NO_RESPONSE, Response, steps_of
from kpybroker.broker.network.sending import BUFFERS, Part
from kpybroker.broker.requests.clients import client_name
from kpybroker.broker.requests.context import ConnectionInfo, RequestContext
from kpybroker.broker.requests.error_counts import Codes, codes_of, count, count_steps
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.log_fields import CURRENT, of_request
from kpybroker.broker.requests.served.apis import LARGE_RESPONSES, SERVED
from kpybroker.broker.requests.served.version_cap import CapOf, uncapped
from kpybroker.broker.requests.stage_times import NEVER, StageTimes
from kpybroker.broker.requests.tree_failures import CODES, error_of
from kpybroker.config.keys.own import FAST_PRODUCE, chosen_shortcuts
from kpybroker.core.tree import BadArguments
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

TREE_FAILURES: Final = frozenset({BadArguments, *CODES})
"""Those that have a code; BadArguments is a name that no node of the tree can have."""


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
Respond = Callable[["Route", bytearray | memoryview, RequestHeader, ConnectionInfo], Response | Pending[Response]]
"""A route's own: what `Dispatcher.respond_directly` calls for a frame whose header is read, and that is counted."""
Handled = tuple[Any, KafkaError | None]
"""A response, which may be None, and the error that it reports where handling raised one."""
Handling = Callable[["Route", RequestContext, Any, Any, bool], Steps[Handled]]
"""(route, context, request, what a handler has returned or None, whether the request is large)."""


class Route:
    """One served (API, version).

    What responds to its requests is chosen when it is made, and again when that changes (`Dispatcher._choose`).
    """

    __slots__ = (
        "codes",
        "error_counts",
        "error_response",
        "flexible_response",
        "handle",
        "handle_fast",
        "handled",
        "is_large",
        "key",
        "plain_requests",
        "request_class",
        "requests",
        "respond",
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
        self.respond: Respond
        self.handled: Handling


class Dispatcher:
    """Routes the requests of one broker. It hands that broker to the handlers; itself it uses only what a Host has."""

    def __init__(self, broker: Host, load_handler: LoadHandler) -> None:
        self._broker = broker
        self._has_fast_produce = FAST_PRODUCE in chosen_shortcuts(broker.config.get_list("kpybroker.shortcuts"))
        self._load_handler = load_handler
        self._routes: dict[tuple[int, int], Route] = {}
        self._times: StageTimes | None = None
        self._quotas: ClientQuotas | None = None
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
        for route in self._routes.values():
            self._count(route, times)
            self._choose(route)

    def meter_requests(self, quotas: ClientQuotas | None) -> None:
        """From now on requests are counted for these quotas; None where there are none."""
        self._quotas = quotas
        for route in self._routes.values():
            self._choose(route)

    def _choose(self, route: Route) -> Route:
        """The route, and what responds to its requests: without metrics and quotas, nothing that asks about them."""
        respond: Respond = self._respond_in_full if route.handle_fast is None else self._respond_fast
        route.handled = self._handled
        if self._quotas is not None:
            respond, route.handled = self._metered(respond, self._quotas), self._settled
        route.respond = respond if self._times is None else _timed(respond, self._times)
        return route

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
            return self._choose(Route(key, 0, self._load_handler(key)))
        route = self._routes[api_key, version] = Route(key, version, self._load_handler(key))
        if not self._has_fast_produce:
            route.handle_fast = None
        if self._times is not None:
            self._count(route, self._times)
        return self._choose(route)

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
        return self._choose(Route(key, 0, self._load_handler(key)))

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
        return route.respond(route, frame, header, connection)

    def _respond_fast(
        self, route: Route, frame: bytearray | memoryview, header: RequestHeader, connection: ConnectionInfo
    ) -> Response | Pending[Response]:
        """By `handle_fast` where that is for this request."""
        handle_fast = route.handle_fast
        assert handle_fast is not None
        try:
            handled = handle_fast(self._broker, memoryview(frame), header, connection)
        except Exception as error:
            return self._respond_in_full(route, frame, header, connection, _failed(error))
        if isinstance(handled, bytes):
            return Response(handled)
        if handled is None:
            return self._respond_in_full(route, frame, header, connection)
        return run_steps(self._respond(route, *handled))

    def _respond_in_full(
        self,
        route: Route,
        frame: bytearray | memoryview,
        header: RequestHeader,
        connection: ConnectionInfo,
        handling: Any = None,
        metering: Metering | None = None,
    ) -> Response | Pending[Response]:
        """Decode the request, and handle it unless its `handling` has begun."""
        if isinstance(frame, memoryview):
            frame = bytearray(frame)
        authorizer, correlation_id, version = self._broker.authorizer, header.correlation_id, header.api_version
        context = RequestContext(connection, authorizer, header.api_key, version, correlation_id, header.client_id)
        context.metering = metering
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
                return run_steps(self._respond_to_large(route, context, decoding))
        return run_steps(self._respond(route, context, request, handling))

    def _metered(self, respond: Respond, quotas: ClientQuotas) -> Respond:
        """`respond`, with a `Metering` for each request that one of the quotas limits."""
        from kpybroker.broker.requests.metering import metering_of  # of brokers with quotas only

        def respond_metered(
            route: Route, frame: bytearray | memoryview, header: RequestHeader, connection: ConnectionInfo
        ) -> Response | Pending[Response]:
            client = connection.principal.name, header.client_id or ""
            size = len(frame) - header.body_offset
            metering = metering_of(quotas, route.key, client, size, self._broker.clock.time_ms)
            if metering is None:
                return respond(route, frame, header, connection)
            in_full = partial(self._respond_in_full, route, frame, header, connection, metering=metering)
            return run_steps(metering.around(steps_of(in_full)))

        return respond_metered

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
        route.plain_requests += 1
        response, _ = yield from route.handled(route, context, request, handling, is_large)
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

    def _handled(
        self, route: Route, context: RequestContext, request: Any, handling: Any, is_large: bool
    ) -> Steps[Handled]:
        """Call the handler, unless its `handling` has begun, and wait for what it waits for."""
        try:
            if handling is None:
                handling = route.handle(self._broker, request, context)
            if isinstance(handling, GeneratorType):
                return (yield from handling), None
            if isinstance(handling, CoroutineType):
                try:
                    return (yield partial(_awaited, context, handling)), None
                finally:
                    CURRENT.set(None)
                    handling.close()  # its connection may have ended before a task awaited it
            return handling, None
        except ProtocolError:
            raise
        except Exception as error:
            failure = self._failure(route, context, error)
        make_response = partial(route.error_response, request, context, failure)
        response = (yield partial(trio.to_thread.run_sync, make_response)) if is_large else make_response()
        return response, failure

    def _settled(
        self, route: Route, context: RequestContext, request: Any, handling: Any, is_large: bool
    ) -> Steps[Handled]:
        """`_handled`, and counted for the quotas that limit it. Its connection is muted once the response has left."""
        response, failure = yield from self._handled(route, context, request, handling, is_large)
        if context.metering is not None:
            throttle_ms = context.metering.settle(route.key, request, response, failure)
            if context.timing is not None:
                context.timing.throttle_ms = throttle_ms
            if throttle_ms > 0:
                mute = partial(context.connection.mute, trio.current_time() + throttle_ms / 1000)
                context.on_sent = [*(context.on_sent or ()), mute]
        return response, failure

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
        if type(error) in TREE_FAILURES:
            text = "[KafkaApi-%d] %s version %d from %s failed: %s: %s"
            route_of = self._broker.node_id, route.key.name, route.version, client_name(context.connection)
            api_log.error(text, *route_of, type(error).__name__, error, extra=of_request(context))
            if isinstance(error, BadArguments):
                return KafkaError(ErrorCode.INVALID_REQUEST, str(error))
            return error_of(error)
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


def _timed(respond: Respond, times: StageTimes) -> Respond:
    """`respond`, of whose requests a part is timed: at most one of a connection, until its response is sent."""

    def respond_timed(
        route: Route, frame: bytearray | memoryview, header: RequestHeader, connection: ConnectionInfo
    ) -> Response | Pending[Response]:
        if route.requests < route.timed_from or connection.timing is not None:
            return respond(route, frame, header, connection)
        timing = connection.timing = times.begin(route, len(frame))
        steps = timing.around(steps_of(partial(respond, route, frame, header, connection)))
        return run_steps(_or_untimed(connection, steps))

    return respond_timed


def _or_untimed(connection: ConnectionInfo, steps: Steps[Response]) -> Steps[Response]:
    """The steps; the timing ends with them where there is no response."""
    try:
        return (yield from steps)
    except BaseException:
        connection.timing = None
        raise


def _failed(error: Exception) -> Steps[Any]:
    """Steps that fail with `error`."""
    raise error
    yield


def _awaited(context: RequestContext, handling: Awaitable[Any]) -> Awaitable[Any]:
    """Called by the task that awaits the result: lines that it logs carry the request (`log_fields`)."""
    CURRENT.set(context)
    return handling


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
