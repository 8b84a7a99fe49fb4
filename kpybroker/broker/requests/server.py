"""Listeners and connections: one task per connection, one request in progress on each.

What happens to the requests of a connection is in `serving`; here is the task that does what has to be awaited. It
sleeps while the poller serves its connection, and wakes up when a request, its response, or a part of that which must
be read from the disk has to be waited for. It sleeps on while a request is suspended (`steps`), while a large response
is sent as the client takes it, and while the connection is muted (`metering`).

Limits are Kafka's: of the number and rate of connections (`connection_limits`), `connections.max.idle.ms` (also for a
client that does not read its response), `queued.max.request.bytes` (reading pauses), `socket.request.max.bytes`.
Running out of file descriptors pauses accepting and ends nothing. Any failure on a connection ends that connection,
never the broker.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import perf_counter_ns
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.clock import Clock
from kpybroker.broker.loop.steps import Pending
from kpybroker.broker.loop.yielding import TURNS_OF, next_slice
from kpybroker.broker.network.frames import FrameReader
from kpybroker.broker.network.handshakes import HandshakeFailed, Tls
from kpybroker.broker.network.other_protocols import OtherProtocolError
from kpybroker.broker.network.request_memory import ReceiveBuffers, RequestMemory
from kpybroker.broker.network.response import Response
from kpybroker.broker.requests.clients import FirstTimes, client_name
from kpybroker.broker.requests.connection import BoundListener, Connection, Gate
from kpybroker.broker.requests.connection_limits import ConnectionLimits
from kpybroker.broker.requests.dispatch import Dispatcher, RespondNow
from kpybroker.broker.requests.log_fields import of_connection
from kpybroker.broker.requests.serving import MUTED, RESPONDING, SENDING, Serving
from kpybroker.config.keys.own import INLINE_REQUESTS, RECEIVE_BUFFERS, chosen_shortcuts
from kpybroker.core.line_limit import about_client
from kpybroker.wire.errors import ProtocolError

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

logger = logging.getLogger("kafka.network.SocketServer")

ACCEPT_PAUSE_S = 0.1
IDLE_SWEEPS_PER_LIMIT = 10
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Server:
    """Serves bound listeners until stopped or cancelled. `on_disconnect` is called with the id of each connection that
    has ended.
    """

    def __init__(
        self,
        config: BrokerConfig,
        dispatcher: Dispatcher,
        clock: Clock,
        on_disconnect: Callable[[str], None] = lambda connection_id: None,
    ) -> None:
        self._on_disconnect = on_disconnect
        self._config = config
        self._dispatcher = dispatcher
        self._clock = clock
        shortcuts = chosen_shortcuts(config.get_list("kpybroker.shortcuts"))
        self._responds_inline = INLINE_REQUESTS in shortcuts
        self._buffers = ReceiveBuffers() if RECEIVE_BUFFERS in shortcuts else ReceiveBuffers(kept_max=0)
        self._memory = RequestMemory(config.get_int("queued.max.request.bytes"))
        self._connections: dict[int, Connection] = {}
        self._next_number = 0
        self._first_times = FirstTimes()
        self.limits = ConnectionLimits(config, clock)
        config.on_change(self._close_excess)
        self._nursery: trio.Nursery | None = None
        self._ended = trio.Event()
        self.accepted: Counter[str] = Counter()
        """Connections by listener, since the start."""
        self.ended: Counter[str] = Counter()
        """Those of `accepted` that have ended."""
        self.blocked_ns: Counter[str] = Counter()
        """How long a listener did not accept, because of `max.connections`."""
        self.refused_total = 0

    @property
    def accepted_total(self) -> int:
        """Connections that were accepted since the start."""
        return self.accepted.total()

    @property
    def connection_count(self) -> int:
        """Connections that are open now."""
        return len(self._connections)

    def respond_with(self, respond_now: RespondNow) -> None:
        """Have it respond to requests in place of the dispatcher's present `respond_now`, on open connections too."""
        former, self._dispatcher.respond_now = self._dispatcher.respond_now, respond_now
        for connection in self._connections.values():
            if connection.respond_now == former:  # not while its client logs in: then it gets the new one at the end
                connection.respond_now = respond_now

    @property
    def connections(self) -> list[Connection]:
        """Those that are open now."""
        return list(self._connections.values())

    @property
    def memory(self) -> tuple[int, int]:
        """Bytes that requests hold now, and `queued.max.request.bytes`."""
        return self._memory.used, self._memory.bytes_max

    async def serve(self, listeners: list[BoundListener]) -> None:
        """Accept and serve connections until `stop` or cancellation."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self.limits.listen(len(listeners))
                nursery.start_soon(self._close_idle)
                for bound in listeners:
                    nursery.start_soon(bound.listener.poll)
                    nursery.start_soon(self._accept, bound, nursery)
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """End every connection; when this returns no request is in progress, and none will be (SocketServer's
        stopProcessingRequests). The services can then be closed without a client noticing."""
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
            await self._ended.wait()

    async def reset(self) -> None:
        """`stop`, but clients see each connection reset, as when the process is killed."""
        for connection in self._connections.values():
            connection.stream.reset_on_close()
        await self.stop()

    async def _accept(self, bound: BoundListener, nursery: trio.Nursery) -> None:
        while True:
            began_ns = perf_counter_ns()
            if await self.limits.wait_for_slot(bound.name):
                self.blocked_ns[bound.name] += perf_counter_ns() - began_ns
            try:
                stream = await bound.listener.accept()
            except trio.ClosedResourceError:
                return  # the broker stops
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                extra = about_client(f"listener {bound.name}")  # whose clients hold the descriptors is not known
                logger.error("Cannot accept on listener %s: %s", bound.name, error.strerror, extra=extra)
                await trio.sleep(ACCEPT_PAUSE_S)
                continue
            tls = bound.tls
            if tls is not None:
                stream = tls.wrap(stream)
            connection = Connection(stream, bound, self._next_number)
            self._next_number += 1
            if (delay_s := await self.limits.admit(bound.name, connection.client_host, stream)) is not None:
                self.refused_total += 1
                nursery.start_soon(self.limits.close_later, stream, delay_s)
                continue
            gate = bound.gate
            self._prepare(connection, gate)
            self._register(connection)
            nursery.start_soon(self._serve_connection, connection, tls)
            del connection, stream  # its own task holds it, as long as it lasts

    def _prepare(self, connection: Connection, gate: Gate | None) -> None:
        """What reads its requests, and what responds to them."""
        frame_bytes_max = connection.frame_bytes_max = self._config.get_int("socket.request.max.bytes")
        if gate is not None:
            frame_bytes_max = min(frame_bytes_max, gate.frame_bytes_max)
        frames = FrameReader(connection.stream, self._buffers, frame_bytes_max, self._memory)
        now = self._clock.monotonic()
        connection.serving = Serving(connection, frames, self._memory, now, is_polled=self._responds_inline)
        connection.respond_now = self._dispatcher.respond_now if gate is None else gate.guard(connection)

    def _close_excess(self, _changed: frozenset[str] = frozenset()) -> None:
        """The listener between brokers accepts beyond `max.connections`, and the limit may be lowered: others end."""
        for given_up in self.limits.to_give_up(self._connections.values()):
            self._log(logging.INFO, "Closing connection %s: %s", given_up, "max.connections is exceeded")
            given_up.end()

    async def _serve_connection(self, connection: Connection, tls: Tls | None) -> None:
        try:
            with connection.scope:
                if tls is not None:
                    if (principal := await tls.shake_hands(connection.stream)) is not None:
                        connection.principal = principal
                    connection.stream.belongs_to(connection.turns_of)
                await self._serve_requests(connection)
        except OtherProtocolError as error:
            self._dismiss(connection, error)
        except HandshakeFailed as error:
            level = logging.WARNING if self._first_times.is_first(connection, str(error)) else logging.DEBUG
            self._log(level, "Failed authentication with %s (SSL handshake failed): %s", connection, error)
        except ProtocolError as error:
            self._log(logging.WARNING, "Closing connection %s: %s", connection, error)
        except (OSError, EOFError, trio.ClosedResourceError) as error:
            self._log(logging.DEBUG, "Connection %s ended: %s", connection, error)
        except Exception as error:
            text = "Closing connection %s after an unexpected error: %s"
            self._log(logging.ERROR, text, connection, type(error).__name__, exc_info=True)
        finally:
            connection.stream.close()
            self._unregister(connection)
            connection.release()

    def _dismiss(self, connection: Connection, error: OtherProtocolError) -> None:
        """Log what a client of another protocol should do, once for each host, and send it what it understands."""
        level = logging.WARNING if self._first_times.is_first(connection, error.protocol) else logging.DEBUG
        self._log(level, "Closing connection %s: %s", connection, error.text(connection.security_protocol))
        if error.protocol.reply:
            with suppress(OSError):
                connection.stream.send_now(error.protocol.reply)

    @staticmethod
    def _log(level: int, text: str, connection: Connection, why: object, *, exc_info: bool = False) -> None:
        """A line about a connection, whose name is the first argument of `text`."""
        if logger.isEnabledFor(level):
            extra = of_connection(connection)
            logger.log(level, text, client_name(connection), why, extra=extra, exc_info=exc_info)

    def _register(self, connection: Connection) -> None:
        self._connections[id(connection)] = connection
        self.accepted[connection.listener_name] += 1
        self.limits.opened(connection.listener_name, connection.client_host)
        if self.limits.is_protected(connection.listener_name):
            self._close_excess()

    def _unregister(self, connection: Connection) -> None:
        del self._connections[id(connection)]
        self.ended[connection.listener_name] += 1
        self.limits.closed(connection.listener_name, connection.client_host)
        self._on_disconnect(connection.connection_id)

    async def _serve_requests(self, connection: Connection) -> None:
        serving, frames = connection.serving, connection.serving.frames
        try:
            while True:
                await self._sleep(connection)
                if serving.state is SENDING:
                    await serving.unsent.finish()
                    serving.on_sent()
                elif serving.state is RESPONDING:
                    serving.on_response(await self._advance(connection, serving.take_pending()))
                elif not frames.may_go_on():
                    await self._wait_for_memory(serving)
                elif (frame := await frames.next_frame()) is not None:
                    serving.on_request(frame)
                    del frame
                else:
                    return
        finally:
            serving.on_close()

    async def _sleep(self, connection: Connection) -> None:
        """Sleep while the poller serves, until it can't. Does what is due at a deadline."""
        serving = connection.serving
        on_ready = serving.on_ready if self._responds_inline else _leave_to_the_task
        while True:
            if (deadline := serving.deadline) < inf and deadline <= trio.current_time():
                serving.on_deadline()
            elif serving.has_turn:
                TURNS_OF.set(connection.turns_of)
                await next_slice()
            elif serving.is_held_up:
                return
            elif serving.state is MUTED and not self._responds_inline:
                with connection.may_leave():
                    await trio.sleep_until(deadline)
                continue
            else:
                with trio.CancelScope(deadline=deadline) as connection.timer:
                    await connection.stream.watch(on_ready)
                    return
                continue
            if not on_ready():
                return

    @staticmethod
    async def _advance(connection: Connection, pending: Pending[Response]) -> Response | Pending[Response]:
        """Wait for what a request wants next."""
        TURNS_OF.set(connection.turns_of)
        if pending.wait is None:
            return await pending.advance()
        with connection.may_leave(serves_rest=pending.wait.serves_rest):
            return await pending.advance()

    async def _wait_for_memory(self, serving: Serving) -> None:
        """Wait while others fill `queued.max.request.bytes`; the client does not count as idle."""
        serving.waits_for_memory = True
        while not serving.frames.may_go_on():
            await self._memory.wait_change()
        serving.frames.was_active = True
        serving.waits_for_memory = False

    async def _close_idle(self) -> None:
        """End connections without traffic, as Kafka does, also where a request waits or the connection is muted.

        Not where a request is carried out: that is not left half done.
        """
        while True:
            idle_s = self._config.get_int("connections.max.idle.ms") / 1000
            if idle_s < 0:
                await self._clock.pause(60)
                continue
            await self._clock.pause(max(idle_s / IDLE_SWEEPS_PER_LIMIT, 0.01))
            now = self._clock.monotonic()
            for connection in list(self._connections.values()):
                if not connection.serving.is_idle(now, idle_s):
                    continue
                self._log(logging.DEBUG, "About to close the idle connection from %s: %s", connection, "no traffic")
                connection.end()


def _leave_to_the_task() -> bool:
    """`on_ready` without the shortcut: nothing is responded to before the connection's task runs."""
    return False
