"""Listeners and connections: one task per connection, one request in progress on each.

A task sleeps while the poller serves its connection: requests are answered there, in `_serve_now`, while neither the
request, nor the handler, nor the response has to wait. Otherwise the task wakes up and goes on from there. It sleeps on
while a request is suspended (`steps`), which the poller answers as soon as its wait ends; and while a large response is
sent as the client takes it, unless a part of it must be read from the disk first.

Limits are Kafka's: of the number and rate of connections (`connection_limits`), `connections.max.idle.ms` (also for a
client that does not read its response), `queued.max.request.bytes` (reading pauses), `socket.request.max.bytes`.
Running out of file descriptors pauses accepting and ends nothing. A connection whose client has exceeded a quota is
muted after the response (`metering`). Any failure on a connection ends that connection, never the broker.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from math import inf
from time import perf_counter, perf_counter_ns
from types import CoroutineType
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.clock import Clock
from kpybroker.broker.loop.steps import Suspended, Unfinished
from kpybroker.broker.loop.yielding import TURNS_OF, next_slice
from kpybroker.broker.network.frames import FrameReader
from kpybroker.broker.network.handshakes import HandshakeFailed, Tls
from kpybroker.broker.network.other_protocols import OtherProtocolError
from kpybroker.broker.network.request_memory import ReceiveBuffers, RequestMemory
from kpybroker.broker.network.sending import Part, Progress
from kpybroker.broker.network.transport import Stream
from kpybroker.broker.requests.clients import FirstTimes, client_name
from kpybroker.broker.requests.connection import BoundListener, Connection, Gate
from kpybroker.broker.requests.connection_limits import ConnectionLimits
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.dispatch import Answer, AnswerNow, Dispatcher
from kpybroker.broker.requests.log_fields import of_connection
from kpybroker.config.keys.own import INLINE_REQUESTS, RECEIVE_BUFFERS, chosen_shortcuts
from kpybroker.core.line_limit import about_client
from kpybroker.wire.errors import ProtocolError

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

logger = logging.getLogger("kafka.network.SocketServer")

REQUESTS_AT_ONCE = 8
"""Requests of one connection before others are served: its turn."""
TURN_S = 0.0005
"""A turn ends earlier, after its second request or a later one, once it has taken so long."""
ACCEPT_PAUSE_S = 0.1
IDLE_SWEEPS_PER_LIMIT = 10
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Server:
    """Serves bound listeners until stopped or cancelled."""

    def __init__(self, config: BrokerConfig, dispatcher: Dispatcher, clock: Clock) -> None:
        self._config = config
        self._dispatcher = dispatcher
        self._clock = clock
        shortcuts = chosen_shortcuts(config.get_list("kpybroker.shortcuts"))
        self._answers_inline = INLINE_REQUESTS in shortcuts
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

    def answer_with(self, answer_now: AnswerNow) -> None:
        """Have it answer requests in place of the dispatcher's present `answer_now`, on open connections too."""
        former, self._dispatcher.answer_now = self._dispatcher.answer_now, answer_now
        for connection in self._connections.values():
            if connection.answer_now == former:  # not while its client logs in: then it gets the new one at the end
                connection.answer_now = answer_now

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
            connection = Connection(stream, bound, self._next_number, self._clock.monotonic())
            self._next_number += 1
            if (delay_s := await self.limits.admit(bound.name, connection.client_host, stream)) is not None:
                self.refused_total += 1
                nursery.start_soon(self.limits.close_later, stream, delay_s)
                continue
            gate = bound.gate
            connection.answer_now = self._dispatcher.answer_now if gate is None else gate.guard(connection)
            self._register(connection)
            nursery.start_soon(self._serve_connection, connection, gate, tls)
            del connection, stream  # its own task holds it, as long as it lasts

    def _close_excess(self, _changed: frozenset[str] = frozenset()) -> None:
        """The listener between brokers accepts beyond `max.connections`, and the limit may be lowered: others end."""
        for given_up in self.limits.to_give_up(self._connections.values()):
            self._log(logging.INFO, "Closing connection %s: %s", given_up, "max.connections is exceeded")
            given_up.end()

    async def _serve_connection(self, connection: Connection, gate: Gate | None, tls: Tls | None) -> None:
        frame_bytes_max = connection.frame_bytes_max = self._config.get_int("socket.request.max.bytes")
        if gate is not None:
            frame_bytes_max = min(frame_bytes_max, gate.frame_bytes_max)
        connection.frames = FrameReader(connection.stream, self._buffers, frame_bytes_max, self._memory, connection)
        try:
            with connection.scope:
                if tls is not None:
                    await tls.shake_hands(connection)
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

    async def _serve_requests(self, connection: Connection) -> None:
        stream, frames = connection.stream, connection.frames
        serve_now = partial(self._serve_now, connection) if self._answers_inline else _leave_to_the_task
        try:
            while True:
                if connection.suspended is not None or connection.sending is not None:
                    await self._sleep(connection, serve_now)
                elif not frames.may_go_on():
                    await self._wait_for_memory(connection)
                    continue
                elif not frames.has_frame:
                    await self._sleep(connection, serve_now)
                else:
                    TURNS_OF.set(connection.turns_of)
                    await next_slice()
                    if serve_now():
                        continue
                if connection.sending is not None:
                    await connection.sending[0].finish()
                    self._sent(connection)
                    continue
                if connection.unsent:
                    unsent, connection.unsent = connection.unsent, b""
                    await stream.send_parts([unsent])
                    if connection.timing is not None:
                        connection.timing.sent()
                answer: Answer | Unfinished[Answer] | None
                answer, connection.unfinished = connection.unfinished, None
                if answer is None:
                    if connection.suspended is not None or not frames.may_go_on():
                        continue
                    frame = await frames.next_frame()
                    if frame is None:
                        return
                    answer = connection.answer_now(frame, connection)
                    del frame
                await self._finish(connection, answer)
                del answer
                frames.done()
        finally:
            for unfinished in (connection.unfinished, connection.suspended):
                if isinstance(unfinished, CoroutineType | Suspended):
                    unfinished.close()
            if connection.sending is not None:
                self._sent(connection)
            frames.close()

    async def _sleep(self, connection: Connection, serve_now: Callable[[], bool]) -> None:
        """Sleep while the poller serves, until it can't. Ends a suspended request whose deadline has passed."""
        while True:
            suspended = connection.suspended
            if suspended is not None and (suspended.wait.is_over or suspended.wait.deadline <= trio.current_time()):
                suspended.wait.is_over = True
                if not serve_now():
                    return
                continue
            with trio.CancelScope(deadline=inf if suspended is None else suspended.wait.deadline) as connection.timer:
                await connection.stream.watch(serve_now)
                return

    async def _finish(self, connection: Connection, answer: Answer | Unfinished[Answer]) -> None:
        """Wait for a response and send it."""
        if not isinstance(answer, bytes | tuple):
            connection.waiting_on_broker = True
            TURNS_OF.set(connection.turns_of)
            with connection.may_leave() if isinstance(answer, Suspended) else nullcontext():
                answer = await answer
            connection.waiting_on_broker = False
        connection.was_active = True
        parts, context = ([answer], None) if isinstance(answer, bytes) else answer
        del answer
        if connection.timing is not None:
            connection.timing.sending()
        try:
            await connection.stream.send_parts(parts)
        finally:
            if context is not None:
                _run_on_sent(context)
        if connection.timing is not None:
            connection.timing.sent()
        connection.was_active = True
        if not self._answers_inline and connection.suspended is not None:
            muted, connection.suspended = connection.suspended, None
            connection.waiting_on_broker = True
            with connection.may_leave():
                connection.suspended = muted
                await muted
                connection.suspended = None
            connection.waiting_on_broker = False

    def _serve_now(self, connection: Connection) -> bool:
        """Answer the requests that have arrived, as far as that takes no waiting. False: the task must go on."""
        if connection.sending is not None and (progress := self._send(connection)) is not Progress.SENT:
            return progress is Progress.FULL
        answers: list[bytes] = []
        try:
            goes_on = self._answer_now(connection, answers)
        finally:  # what was answered before an error is still sent
            can_receive = connection.frames.settle()
            timing = connection.timing
            if timing is not None:
                timing.sending()
            if data := answers[0] if len(answers) == 1 else b"".join(answers):
                connection.was_active = True
                sent = connection.stream.send_now(data)
                connection.unsent = data[sent:]
            if timing is not None and not connection.unsent and connection.sending is None:
                timing.sent()
        if not goes_on or connection.unsent:
            return False
        if not can_receive and connection.suspended is None and connection.sending is None:
            connection.stream.poke()  # what it has sent already has another turn
        return True

    def _answer_now(self, connection: Connection, answers: list[bytes]) -> bool:
        frames, stream = connection.frames, connection.stream
        end = inf
        for number in range(REQUESTS_AT_ONCE):
            if number > 1 and perf_counter() > end:
                return True
            answer: Answer | Unfinished[Answer]
            if connection.suspended is None:
                if self._memory.is_full and not frames.may_go_on():
                    return False
                if number == 0 and not frames.has_frame and not frames.receive_now():
                    return not frames.has_ended
                frame = frames.frame_now()
                if frame is None:
                    return True
                if number == 1:
                    end = perf_counter() + TURN_S
                answer = connection.answer_now(frame, connection)
                if isinstance(answer, bytes):
                    answers.append(answer)
                    continue
                frames.hold(len(frame))
            elif connection.suspended.wait.is_over:
                suspended, connection.suspended = connection.suspended, None
                if connection.is_leaving:
                    connection.wait_is_over()
                answer = suspended.resume()
            else:
                if number == 0:  # not if this very call has muted the connection: its task may have made it
                    stream.mute(connection.left)  # the next request is read after this one
                return True
            if isinstance(answer, Suspended):
                self._suspend(connection, answer)
                return True
            if not isinstance(answer, bytes | tuple):
                connection.unfinished = answer
                return False
            if (data := _read_now(stream, answer)) is not None:
                answers.append(data)
                frames.done()
            elif isinstance(answer, tuple) and (progress := self._begin_sending(connection, answers, *answer)):
                return progress is Progress.FULL
        return True

    def _begin_sending(
        self, connection: Connection, answers: list[bytes], parts: list[Part], context: RequestContext
    ) -> Progress | None:
        """Send a large response, and those before it; None when everything is sent."""
        if connection.timing is not None:
            connection.timing.sending()
        connection.sending = connection.stream.begin_sending([*answers, *parts]), context
        answers.clear()
        progress = self._send(connection)
        if progress is Progress.FULL:
            connection.stream.want_room()
        return None if progress is Progress.SENT else progress

    def _send(self, connection: Connection) -> Progress:
        """Go on sending, as far as that takes no waiting."""
        assert connection.sending is not None
        progress = connection.sending[0].resume()
        connection.was_active = True
        if progress is Progress.SENT:
            self._sent(connection)
        return progress

    @staticmethod
    def _sent(connection: Connection) -> None:
        """The response in progress is sent, or never will be."""
        assert connection.sending is not None
        _, context = connection.sending
        connection.sending = None
        connection.was_active = True
        if connection.timing is not None:
            connection.timing.sent()
        connection.stream.want_data()
        _run_on_sent(context)
        connection.frames.done()

    @staticmethod
    def _suspend(connection: Connection, suspended: Suspended[Answer]) -> None:
        connection.suspended = suspended
        suspended.wait.on_end = connection.stream.poke
        # A timer that ends early is set again then: most requests are answered before, and move no timer.
        if suspended.wait.deadline < connection.timer.deadline:
            connection.timer.deadline = suspended.wait.deadline

    async def _wait_for_memory(self, connection: Connection) -> None:
        """Wait while others fill `queued.max.request.bytes`; the client does not count as idle."""
        connection.waiting_on_broker = True
        while not connection.frames.may_go_on():
            await self._memory.wait_change()
        connection.was_active = True
        connection.waiting_on_broker = False

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
                if connection.was_active or (connection.waiting_on_broker and not connection.can_leave):
                    connection.was_active = False
                    connection.last_active = now
                elif connection.last_active <= now - idle_s:
                    self._log(logging.DEBUG, "About to close the idle connection from %s: %s", connection, "no traffic")
                    connection.scope.cancel()


def _leave_to_the_task() -> bool:
    """`_serve_now` without the shortcut: nothing is answered before the connection's task runs."""
    return False


def _read_now(stream: Stream, answer: Answer) -> bytes | None:
    """The bytes to send, if they are few and reading them takes no waiting."""
    if isinstance(answer, bytes):
        return answer
    parts, context = answer
    data = stream.read_now(parts)
    if data is not None:  # its files are no longer needed
        _run_on_sent(context)
    return data


def _run_on_sent(context: RequestContext) -> None:
    for callback in context.on_sent or ():
        callback()
