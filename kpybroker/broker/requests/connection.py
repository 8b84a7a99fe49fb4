"""One client connection, and the listener that accepts it: what the server, the gates of logins and handlers know.

Never here: serving them (`server`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Protocol

import trio

from kpybroker.broker.loop.steps import Steps, Suspended, Unfinished, Wait
from kpybroker.broker.network.frames import FrameReader
from kpybroker.broker.network.handshakes import Tls
from kpybroker.broker.network.transport import AnswerOut, Listener, Stream
from kpybroker.broker.requests.clients import UNKNOWN_SOFTWARE
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.dispatch import Answer, AnswerNow
from kpybroker.broker.requests.refused_batches import RefusedBatches
from kpybroker.broker.requests.stage_times import Timing
from kpybroker.core.authorizer import ANONYMOUS, Principal
from kpybroker.core.log.header_trust import HeaderTrust

LEFT_S = 1.0
"""How long requests of a client that has closed its side still wait: it may have more to read than to say."""


class Gate(Protocol):
    """What a SASL listener puts before the dispatcher of each connection until its client has logged in."""

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame before the login."""

    def guard(self, connection: Connection) -> AnswerNow:
        """What answers the connection's requests from its first one on. After the login the gate calls
        `Connection.admit`.
        """


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A listener of the configuration with its bound socket.

    `gate`: its clients must log in. `tls`: its connections are encrypted.
    """

    name: str
    security_protocol: str
    listener: Listener
    gate: Gate | None = None
    tls: Tls | None = None


class Connection:
    """What is known about one client connection (a `ConnectionInfo`)."""

    __slots__ = (
        "answer_now",
        "can_leave",
        "client_host",
        "client_id",
        "client_port",
        "client_software_name",
        "client_software_version",
        "connection_id",
        "frame_bytes_max",
        "frames",
        "header_trust",
        "is_leaving",
        "last_active",
        "listener_name",
        "local_host",
        "local_port",
        "principal",
        "refused_batches",
        "scope",
        "security_protocol",
        "sending",
        "serves_rest",
        "stream",
        "suspended",
        "throttle",
        "timer",
        "timing",
        "unfinished",
        "unsent",
        "waiting_on_broker",
        "was_active",
    )

    def __init__(self, stream: Stream, bound: BoundListener, number: int, now: float) -> None:
        self.stream = stream
        self.local_host, self.local_port = stream.local_address
        self.client_host, self.client_port = stream.remote_address
        self.listener_name = bound.name
        self.security_protocol = bound.security_protocol
        self.principal: Principal = ANONYMOUS
        self.client_id: str | None = None  # of the last request
        self.client_software_name = UNKNOWN_SOFTWARE
        self.client_software_version = UNKNOWN_SOFTWARE
        self.refused_batches = RefusedBatches()
        self.header_trust = HeaderTrust()
        self.timing: Timing | None = None
        self.connection_id = f"{self.local_host}:{self.local_port}-{self.client_host}:{self.client_port}-{number}"
        self.last_active = now
        self.was_active = False  # since `last_active`; a flag costs a twelfth of reading the clock
        self.waiting_on_broker = False
        self.scope = trio.CancelScope()
        self.answer_now: AnswerNow
        self.frames: FrameReader
        self.frame_bytes_max = 0  # of a client that has logged in
        # What `_serve_now` leaves to the task: bytes, and then a response that has to be awaited.
        self.unsent = b""
        self.unfinished: Unfinished[Answer] | None = None
        # The response that is sent as the client takes it; nothing else is in progress then.
        self.sending: tuple[AnswerOut, RequestContext] | None = None
        # The request in progress, if it is a suspended one; its deadline ends the sleep of the task.
        self.suspended: Suspended[Answer] | None = None
        self.timer = trio.CancelScope()
        self.throttle: Wait | None = None  # of the last `mute`
        self.can_leave = False  # what is awaited is for its client alone
        self.serves_rest = False  # nor is what has arrived after it left undone
        self.is_leaving = False  # its client has closed its side, and a request of it waits

    @property
    def turns_of(self) -> Hashable:
        """Whose turns it takes, on the loop and where records are read one by one: of its principal, or its address."""
        return self.client_host if self.principal is ANONYMOUS else self.principal

    def end(self) -> None:
        """As `ConnectionInfo.end`."""
        self.scope.cancel()

    def release(self) -> None:
        """It has ended, and is in no cycle any more: what it holds, keys of TLS included, is freed at once."""
        del self.answer_now, self.frames

    def mute(self, deadline: float) -> None:
        """As `ConnectionInfo.mute`: until then a suspended request without a response is in progress."""
        self.throttle = Wait(deadline)
        self.suspended = Suspended(_nothing(), self.throttle)
        if deadline < self.timer.deadline:
            self.timer.deadline = deadline

    def admit(self, principal: Principal, answer_now: AnswerNow) -> None:
        """Its client has logged in: from now on `answer_now` answers its requests, up to their full size."""
        self.principal = principal
        self.stream.belongs_to(self.turns_of)
        self.answer_now = answer_now
        self.frames.allow(self.frame_bytes_max)

    # --- the client leaves

    def left(self, was_reset: bool) -> None:
        """The client has left while a request waits, or its connection is muted: nothing is kept for it.

        A FIN may only say that it will send no more. So it has `LEFT_S` for its response; and what it has sent before
        is served when a mute is over: a producer with acks=0 leaves without waiting for anything.
        """
        suspended = self.suspended
        if was_reset:
            self.scope.cancel()
        elif suspended is not None and suspended.wait is self.throttle:
            if not self._has_more():
                self.scope.cancel()
        elif not self.serves_rest or not self._has_more():
            self.is_leaving = True
            self.scope.deadline = trio.current_time() + LEFT_S

    def _has_more(self) -> bool:
        """Whether the client has sent another request."""
        return self.frames.has_frame or self.stream.has_unread()

    def wait_is_over(self) -> None:
        """What a leaving client has waited for is there in time: it goes on."""
        self.is_leaving = False
        self.scope.deadline = inf

    @contextmanager
    def may_leave(self, *, serves_rest: bool = False) -> Iterator[None]:
        """As `ConnectionInfo.may_leave`."""
        self.can_leave, self.serves_rest = True, serves_rest
        self.stream.heed_end(self.left)
        try:
            yield
        finally:
            self.can_leave = self.serves_rest = False
            self.stream.ignore_end()
            if self.is_leaving:
                self.wait_is_over()


def _nothing() -> Steps[Answer]:
    return b""
    yield
