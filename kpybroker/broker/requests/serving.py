"""One connection as a machine: what happens to its requests, and which event may happen when.

    reading     no request is in progress; the next one is read, and responded to at once if that takes no waiting
    responding  a request is in progress, and only the connection's task can go on with it
    suspended   a request waits for the end of its `Wait`, without a task
    sending     a response is sent as the client takes it; then comes `after`: reading, responding, suspended or muted
    muted       the client has exceeded a quota: no request is read before the deadline
    closed      the end

What each event leads to (`LEGAL` is the same as data):

    event          reading      responding    suspended     sending       muted       closed
    on_ready       any but      illegal       any but       any but       muted       illegal
                   closed                     closed        closed
    on_request     any but      illegal       illegal       illegal       illegal     illegal
                   closed
    on_response    illegal      any but       illegal       illegal       illegal     illegal
                                closed
    on_sent        illegal      illegal       illegal       `after`,      illegal     illegal
                                                            or muted
    on_deadline    illegal      illegal       suspended     illegal       reading     illegal
    on_left        reading      responding    suspended     sending       muted       closed
    mute           muted        illegal       illegal       illegal       muted       closed
    on_close       closed       closed        closed        closed        closed      illegal

- `on_ready`: the socket has data or room, a wait is over, or the connection has its next time slice. One call takes at
  most `REQUESTS_AT_ONCE` requests, or `TURN_S` and two of them; what was sent beyond that has another turn (`poke`).
- `on_request`, `on_response`, `on_sent`: the task has received a request, awaited what it wanted, sent a response.
- `on_deadline`: the time of a wait or of a mute is over. A wait that ends while an earlier response is sent, or that
  has ended before, is found by the next `on_ready`.
- `on_left`: the client has closed its side. It is asked for only where nothing is read: while the task awaits something
  within `may_leave`, suspended, muted. It may be reported too late, and then it means nothing.

Rules. Nothing here waits, knows trio, or is a task. Two drivers call it: the poller `on_ready`, and the task of the
connection (`server`) everything else, and also `on_ready` when it has a turn itself. `on_ready` returns False where the
task must go on. One request is in progress at a time, so responses leave in the order of their requests.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import perf_counter
from typing import Final, Protocol

from kpybroker.broker.loop.steps import Pending, Wait
from kpybroker.broker.network.frames import FrameReader
from kpybroker.broker.network.request_memory import RequestMemory
from kpybroker.broker.network.response import Response
from kpybroker.broker.network.sending import Progress
from kpybroker.broker.network.transport import ResponseOut, Stream
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.broker.requests.dispatch import RespondNow

REQUESTS_AT_ONCE: Final = 8
"""Requests of one connection before others are served: its turn."""
TURN_S: Final = 0.0005
"""A turn ends earlier, after its second request or a later one, once it has taken so long."""


class State(enum.Enum):
    """Of one connection, as in the table above."""

    READING = "reading"
    RESPONDING = "responding"
    SUSPENDED = "suspended"
    SENDING = "sending"
    MUTED = "muted"
    CLOSED = "closed"


class Event(enum.Enum):
    """The method of `Serving` that is called."""

    READY = "on_ready"
    REQUEST = "on_request"
    RESPONSE = "on_response"
    SENT = "on_sent"
    DEADLINE = "on_deadline"
    LEFT = "on_left"
    MUTE = "mute"
    CLOSE = "on_close"


READING, RESPONDING, SUSPENDED, SENDING, MUTED, CLOSED = State  # an enum's attribute takes 0.1 µs
_OPEN: Final = frozenset(State) - {CLOSED}
_NOT_WATCHED: Final = (RESPONDING, CLOSED)

LEGAL: Final[dict[Event, dict[State, frozenset[State]]]] = {
    Event.READY: {READING: _OPEN, SUSPENDED: _OPEN, SENDING: _OPEN, MUTED: frozenset({MUTED})},
    Event.REQUEST: {READING: _OPEN},
    Event.RESPONSE: {RESPONDING: _OPEN},
    Event.SENT: {SENDING: frozenset({READING, RESPONDING, SUSPENDED, MUTED})},
    Event.DEADLINE: {SUSPENDED: frozenset({SUSPENDED}), MUTED: frozenset({READING})},
    Event.LEFT: {state: frozenset({state}) for state in State},
    Event.MUTE: {READING: frozenset({MUTED}), MUTED: frozenset({MUTED}), CLOSED: frozenset({CLOSED})},
    Event.CLOSE: {state: frozenset({CLOSED}) for state in _OPEN},
}
"""The states that an event may lead to, by the state it meets. What is not in here is illegal, and asserted."""


class Served(ConnectionInfo, Protocol):
    """The connection, and what its task does when it is asked."""

    respond_now: RespondNow

    @property
    def stream(self) -> Stream:
        """What carries it; only the methods that do not wait are called here."""

    def wake_at(self, deadline: float) -> None:
        """Sleep no longer than until then."""

    def end_unless_it_stays(self) -> None:
        """End it soon."""

    def stay(self) -> None:
        """The reverse of `end_unless_it_stays`."""


class Serving:
    """The state of one connection. `memory` is what all connections share for their requests.

    `is_polled`: the poller calls `on_ready`. Otherwise the task does everything: it receives each request, and awaits
    also what could be suspended.
    """

    __slots__ = (
        "_after",
        "_connection",
        "_is_polled",
        "_memory",
        "_muted_until",
        "_out",
        "_pending",
        "_response",
        "can_leave",
        "frames",
        "is_leaving",
        "last_active",
        "serves_rest",
        "state",
        "task_sends",
        "waits_for_memory",
    )

    def __init__(
        self, connection: Served, frames: FrameReader, memory: RequestMemory, now: float, *, is_polled: bool
    ) -> None:
        self._connection = connection
        self._is_polled = is_polled
        self._memory = memory
        self.frames = frames
        self.state = READING
        self._after = READING  # the state that follows SENDING
        self._pending: Pending[Response] | None = None  # the request in progress, unless the task has taken it
        self._out: ResponseOut | None = None  # what is sent; None where the task sends it
        self._response: Response | None = None  # the one that is sent, if anything follows once it is
        self._muted_until = inf
        self.task_sends = False  # what the poller cannot go on with
        self.last_active = now  # and since then `frames.was_active`: a flag costs a twelfth of reading the clock
        self.waits_for_memory = False
        self.can_leave = False  # what is awaited is for the client alone
        self.serves_rest = False  # nor is what has arrived after it left undone
        self.is_leaving = False  # the client has closed its side, and a request of it waits

    @property
    def deadline(self) -> float:
        """When `on_deadline` is due, on trio's clock."""
        if self.state is SUSPENDED:
            wait = self._wait
            return -inf if wait.is_over else wait.deadline
        return self._muted_until if self.state is MUTED else inf

    @property
    def is_at_work(self) -> bool:
        """Whether something is done for it that is not left half done: it is not idle then."""
        return self.waits_for_memory or (self.state is RESPONDING and not self.can_leave)

    def is_idle(self, now: float, idle_s: float) -> bool:
        """Whether nothing has arrived or left for so long; what happened since the last call counts as of now."""
        if self.frames.was_active or self.is_at_work:
            self.frames.was_active = False
            self.last_active = now
            return False
        return self.last_active <= now - idle_s

    # --- the poller, and the task when it has a turn

    def on_ready(self) -> bool:
        """Respond to the requests that have arrived, as far as that takes no waiting. False: the task must go on."""
        if self.state is not READING:
            assert self.state not in _NOT_WATCHED, self.state
            if self.state is SENDING:
                if (progress := self._send_on()) is not Progress.SENT:
                    return progress is Progress.FULL
                if self.state is RESPONDING:
                    return False
        responses: list[bytes] = []
        try:
            goes_on = self._respond(responses)
        finally:  # what was responded before an error is still sent
            can_receive = self.frames.settle()
            timing = self._connection.timing
            if timing is not None:
                timing.sending()
            if (data := responses[0] if len(responses) == 1 else b"".join(responses)) and not self._send_now(data):
                goes_on = True
            if timing is not None and self.state is not SENDING:
                self._end_timing()
        if not goes_on:
            return False
        if not can_receive and self.state is READING:
            self._connection.stream.poke()  # what it has sent already has another turn
        return True

    def _respond(self, responses: list[bytes]) -> bool:
        """Add small responses, until something must be waited for or sent. False: by the task."""
        frames, connection = self.frames, self._connection
        end = inf
        for number in range(REQUESTS_AT_ONCE):
            if number > 1 and perf_counter() > end:
                return True
            if self.state is READING:
                if self._memory.is_full and not frames.may_go_on():
                    return False
                if number == 0 and not frames.has_frame and not frames.receive_now():
                    return not frames.has_ended
                frame = frames.frame_now()
                if frame is None:
                    return True
                if number == 1:
                    end = perf_counter() + TURN_S
                outcome = connection.respond_now(frame, connection)
                if not outcome.is_pending and (data := outcome.frame) is not None:
                    responses.append(data)
                    continue
                frames.hold(len(frame))
            elif self.state is SUSPENDED and self._wait.is_over:
                outcome = self._resume()
            else:
                if number == 0:  # not if this very call has led here: its task may have made it
                    connection.stream.mute(self.on_left)  # the next request is read after this one
                return True
            if outcome.is_pending:
                return self._is_pending(outcome)
            if (data := self._read_now(outcome)) is not None:
                responses.append(data)
                frames.done()
            elif (progress := self._begin_sending(responses, outcome)) is not Progress.SENT:
                return progress is Progress.FULL
        return True

    def _read_now(self, response: Response) -> bytes | None:
        """The bytes to send, if they are few and reading them takes no waiting."""
        if response.frame is not None:
            return response.frame
        data = self._connection.stream.read_now(response.parts)
        if data is not None:  # its files are no longer needed
            response.sent()
        return data

    @property
    def _wait(self) -> Wait:
        """Of the suspended request."""
        assert self._pending is not None
        assert self._pending.wait is not None
        return self._pending.wait

    def _resume(self) -> Response | Pending[Response]:
        """Go on with the suspended request."""
        pending, self._pending = self._pending, None
        assert pending is not None
        self.state = READING
        self.serves_rest = False
        self._stay()
        return pending.resume()

    def _is_pending(self, pending: Pending[Response]) -> bool:
        """The request cannot be responded to yet. Whether it is suspended: otherwise its task awaits it."""
        self._pending = pending
        wait = pending.wait
        if wait is None or not self._is_polled:
            self.state = RESPONDING
            return False
        self.state = SUSPENDED
        self.serves_rest = wait.serves_rest
        wait.on_end = self._connection.stream.poke
        self._connection.wake_at(wait.deadline)
        return True

    # --- sending

    def _send_now(self, data: bytes) -> bool:
        """Send small responses. False if the client does not take them all: what is in progress goes on after that."""
        self.frames.was_active = True
        stream = self._connection.stream
        sent = stream.send_now(data)
        if sent == len(data):
            return True
        assert self.state is not SENDING
        self._out = stream.begin_sending([memoryview(data)[sent:]])
        self._after, self.state = self.state, SENDING
        self._stops(Progress.FULL)
        return False

    def _begin_sending(self, responses: list[bytes], response: Response) -> Progress:
        """Send a large response, and those before it."""
        timing = self._connection.timing
        if timing is not None:
            timing.sending()
        self._out = self._connection.stream.begin_sending([*responses, *response.parts])
        self._response = response
        self._after, self.state = READING, SENDING
        responses.clear()
        progress = self._send_on()
        self._stops(progress)
        return progress

    def _stops(self, progress: Progress) -> None:
        """Sending goes on when the client has taken some of it, or in the task."""
        self.task_sends = progress is Progress.COLD or not self._is_polled
        if progress is Progress.FULL and not self.task_sends:
            self._connection.stream.want_room()

    def _send_on(self) -> Progress:
        """Go on sending, as far as that takes no waiting."""
        assert self._out is not None
        progress = self._out.resume()
        self.frames.was_active = True
        if progress is Progress.SENT:
            self.on_sent()
        elif progress is Progress.COLD:
            self.task_sends = True
        return progress

    def on_sent(self) -> None:
        """All of the response is sent."""
        assert self.state is SENDING, self.state
        self.state = self._after
        self.frames.was_active = True
        self._connection.stream.want_data()
        self._is_sent()
        if self.state is READING or self.state is MUTED:
            self.frames.done()
        elif self.state is SUSPENDED:
            self._connection.wake_at(self._wait.deadline)

    def _is_sent(self) -> None:
        """The response is sent, or never will be."""
        response, self._response, self._out = self._response, None, None
        self._end_timing()
        if response is not None:
            response.sent()

    def _end_timing(self) -> None:
        """A response is sent. If it is the one that is timed, another request may be timed now."""
        timing = self._connection.timing
        if timing is not None and timing.sent():
            self._connection.timing = None

    # --- the task

    @property
    def has_turn(self) -> bool:
        """Whether a request has arrived beyond the turn of its connection, and may be served."""
        return self.state is READING and self.frames.has_frame and self.frames.may_go_on()

    @property
    def is_held_up(self) -> bool:
        """Whether the task must go on: or wait, where it would read but `memory` has no room for that."""
        if self.state is READING:
            return not self.frames.may_go_on()
        return self.state is RESPONDING or (self.state is SENDING and self.task_sends)

    def on_request(self, frame: bytearray) -> None:
        """The task has received a request."""
        assert self.state is READING, self.state
        self.state = RESPONDING
        self.on_response(self._connection.respond_now(frame, self._connection))

    def take_pending(self) -> Pending[Response]:
        """What the task must await."""
        assert self.state is RESPONDING, self.state
        assert self._pending is not None
        pending, self._pending = self._pending, None
        return pending

    def on_response(self, outcome: Response | Pending[Response]) -> None:
        """The task has awaited what its request wanted: there is a response now, or something else to wait for."""
        assert self.state is RESPONDING, self.state
        if outcome.is_pending:
            self._is_pending(outcome)
            return
        self.state = READING
        if outcome.frame is None:
            self._begin_sending([], outcome)
            return
        timing = self._connection.timing
        if timing is not None:
            timing.sending()
        self._send_now(outcome.frame)
        self.frames.done()
        if timing is not None and self.state is not SENDING:
            self._end_timing()

    @property
    def unsent(self) -> ResponseOut:
        """What is being sent; the task sends the rest of it."""
        assert self.state is SENDING, self.state
        assert self._out is not None
        return self._out

    def on_deadline(self) -> None:
        """The time of the wait, or of the mute, is over."""
        if self.state is SUSPENDED:
            self._wait.is_over = True
        else:
            assert self.state is MUTED, self.state
            self.state = READING

    def on_close(self) -> None:
        """The connection ends: what it holds is given back."""
        assert self.state is not CLOSED
        state, self.state = self.state, CLOSED
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.close()
        if state is SENDING:
            self._is_sent()
        self.frames.close()

    # --- quotas

    def mute(self, deadline: float) -> None:
        """As `ConnectionInfo.mute`: its response has just been sent, or leaves at once."""
        if self.state is CLOSED:
            return
        assert self.state is READING or self.state is MUTED, self.state
        self.state = MUTED
        self._muted_until = deadline
        self._connection.wake_at(deadline)

    # --- the client leaves

    def on_left(self, was_reset: bool) -> None:
        """The client has left while a request waits, or its connection is muted: nothing is kept for it.

        A FIN may only say that it will send no more. So it has `LEFT_S` for its response; and what it has sent before
        is served when a mute is over: a producer with acks=0 leaves without waiting for anything.
        """
        if self.state is not SUSPENDED and self.state is not MUTED and not self.can_leave:
            return
        if was_reset:
            self._connection.end()
        elif self.state is MUTED:
            if not self._has_more():
                self._connection.end()
        elif not self.serves_rest or not self._has_more():
            self.is_leaving = True
            self._connection.end_unless_it_stays()

    def _has_more(self) -> bool:
        """Whether the client has sent another request."""
        return self.frames.has_frame or self._connection.stream.has_unread()

    def _stay(self) -> None:
        """What a leaving client has waited for is there in time: it goes on."""
        if self.is_leaving:
            self.is_leaving = False
            self._connection.stay()

    @contextmanager
    def may_leave(self, *, serves_rest: bool = False) -> Iterator[None]:
        """As `ConnectionInfo.may_leave`."""
        self.can_leave, self.serves_rest = True, serves_rest
        self._connection.stream.heed_end(self.on_left)
        try:
            yield
        finally:
            self.can_leave = self.serves_rest = False
            self._connection.stream.ignore_end()
            self._stay()
