"""Deadlines and seats for uvicorn's connections, which it has for idle ones alone.

`protocol` makes uvicorn's own protocol with the limits of our server (`http.server.Limits`): a head, a body and a
client that takes its response have deadlines, and while all connections are taken a new one gets the seat of one that
waits (`core.doors.crowd`). Between two requests uvicorn's own, shorter ``timeout_keep_alive`` ends a connection.

What uvicorn warns of is what strangers send: one line a minute of each kind, with the number of the others.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kpybroker.core.doors.crowd import Crowd
from kpybroker.core.line_limit import Seldom
from kpybroker.http.server import Limits

HEAD_BYTES_MAX: Final = 64 << 10
"""Browsers and proxies send long ones."""


class _Phase(enum.Enum):
    HEAD = "head"
    BODY = "body"
    RESPONSE = "response"
    IDLE = "idle"


class _Doors(NamedTuple):
    """What the connections of one server share."""

    limits: Limits
    name: str
    logger: logging.Logger
    crowd: Crowd
    refusals: Seldom
    warnings: logging.Logger
    deadlines: Mapping[_Phase, float]


def protocol(limits: Limits, name: str, logger: logging.Logger) -> type[H11Protocol]:
    """The class for uvicorn's `http`. `name` is for the log."""
    deadlines = {_Phase.HEAD: limits.head_s, _Phase.BODY: limits.body_s, _Phase.IDLE: limits.idle_s}

    class Guarded(_Guarded):
        doors = _Doors(limits, name, logger, Crowd(limits.connections), Seldom(), _warnings(), deadlines)

    return Guarded


class _Guarded(H11Protocol):
    """One connection."""

    doors: ClassVar[_Doors]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.logger = self.doors.warnings

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._phase: _Phase | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        address = self.client[0] if self.client else ""
        doors = self.doors
        self._seat = doors.crowd.enter(address, transport.abort, self.loop.time())
        if self._seat is None:
            unsaid = doors.refusals.may_say(self.loop.time())
            if unsaid is not None:
                text = "%s has %d connections, all with a request in progress: one more is closed (others: %d)"
                doors.logger.warning(text, doors.name, doors.limits.connections, unsaid)
            transport.abort()
        self._follow()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._deadline, self._stalled):
            if timer is not None:
                timer.cancel()
        if self._seat is not None:
            self.doors.crowd.leave(self._seat)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.doors.limits.send_s, self.transport.abort)
        self._wait_or_not()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        self._wait_or_not()

    def _follow(self) -> None:
        """Note what the client has to do now, and until when. A timer runs on while that stays the same."""
        phase = _phase(self)
        if phase is not self._phase:
            self._phase = phase
            if self._deadline is not None:
                self._deadline.cancel()
            within_s = self.doors.deadlines.get(phase)
            self._deadline = None if within_s is None else self.loop.call_later(within_s, self.transport.abort)
            self._wait_or_not()

    def _wait_or_not(self) -> None:
        if self._seat is not None:
            is_busy = self._phase is _Phase.RESPONSE and self._stalled is None
            self._seat.be_busy() if is_busy else self._seat.wait(self.loop.time())


def _warnings() -> logging.Logger:
    found = logging.getLogger("uvicorn.error.strangers")
    found.setLevel(logging.WARNING)
    found.filters[:] = [_is_no_upgrade, _OnceAMinute()]
    return found


def _is_no_upgrade(record: logging.LogRecord) -> bool:
    """Java's HTTP client offers HTTP/2 with each request; it is served HTTP/1.1, and that is no warning."""
    return not str(record.msg).startswith(("Unsupported upgrade request", "No supported WebSocket library"))


class _OnceAMinute(logging.Filter):
    """Of warnings; errors are defects of ours, and are all written."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds = Seldom()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.WARNING:
            return True
        unsaid = self._kinds.may_say(time.monotonic(), str(record.msg))
        if unsaid:
            record.msg = f"{record.msg} (others: {unsaid})"
        return unsaid is not None


def _phase(connection: H11Protocol) -> _Phase:
    cycle: Any = connection.cycle
    if connection.conn.their_state is h11.SEND_BODY:
        return _Phase.BODY
    if cycle is not None and not cycle.response_complete:
        return _Phase.RESPONSE
    is_begun = cycle is None or bool(connection.conn.trailing_data[0])
    return _Phase.HEAD if is_begun else _Phase.IDLE
