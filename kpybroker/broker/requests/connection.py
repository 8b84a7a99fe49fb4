"""One client connection, and the listener that accepts it: what the server, the gates of logins and handlers know.

Never here: what happens to requests (`serving`), the connection's task (`server`).
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from typing import Protocol

import trio

from kpybroker.broker.network.handshakes import Tls
from kpybroker.broker.network.transport import Listener, Stream
from kpybroker.broker.requests.dispatch import RespondNow
from kpybroker.broker.requests.refused_batches import RefusedBatches
from kpybroker.broker.requests.serving import Serving
from kpybroker.broker.requests.stage_times import Timing
from kpybroker.core.authorizer import ANONYMOUS, Principal
from kpybroker.core.log.header_trust import HeaderTrust
from kpybroker.wire.constants import UNKNOWN_SOFTWARE

LEFT_S = 1.0
"""How long requests of a client that has closed its side still wait: it may have more to read than to say."""


class Gate(Protocol):
    """What a SASL listener puts before the dispatcher of each connection until its client has logged in."""

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame before the login."""

    def guard(self, connection: Connection) -> RespondNow:
        """What responds to the connection's requests from its first one on. After the login the gate calls
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
    """What is known about one client connection (a `ConnectionInfo`, and `serving.Served`)."""

    __slots__ = (
        "client_host",
        "client_id",
        "client_port",
        "client_software_name",
        "client_software_version",
        "connection_id",
        "frame_bytes_max",
        "header_trust",
        "listener_name",
        "local_host",
        "local_port",
        "principal",
        "refused_batches",
        "respond_now",
        "scope",
        "security_protocol",
        "serving",
        "stream",
        "timer",
        "timing",
    )

    def __init__(self, stream: Stream, bound: BoundListener, number: int) -> None:
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
        self.scope = trio.CancelScope()
        self.timer = trio.CancelScope()  # ends the sleep of its task at a deadline
        self.respond_now: RespondNow
        self.serving: Serving
        self.frame_bytes_max = 0  # of a client that has logged in

    @property
    def turns_of(self) -> Hashable:
        """Whose turns it takes, on the loop and where records are read one by one: of its principal, or its address."""
        return self.client_host if self.principal is ANONYMOUS else self.principal

    @property
    def idle_rank(self) -> tuple[bool, float]:
        """Lower for a connection that has been idle longer."""
        serving = self.serving
        return serving.frames.was_active or serving.is_at_work, serving.last_active

    def end(self) -> None:
        """As `ConnectionInfo.end`."""
        self.scope.cancel()

    def release(self) -> None:
        """It has ended, and is in no cycle any more: what it holds, keys of TLS included, is freed at once."""
        del self.respond_now, self.serving

    def mute(self, deadline: float) -> None:
        """As `ConnectionInfo.mute`."""
        self.serving.mute(deadline)

    def may_leave(self, *, serves_rest: bool = False) -> AbstractContextManager[None]:
        """As `ConnectionInfo.may_leave`."""
        return self.serving.may_leave(serves_rest=serves_rest)

    def admit(self, principal: Principal, respond_now: RespondNow) -> None:
        """Its client has logged in: from now on `respond_now` responds to its requests, up to their full size."""
        self.principal = principal
        self.stream.belongs_to(self.turns_of)
        self.respond_now = respond_now
        self.serving.frames.allow(self.frame_bytes_max)

    # --- what `Serving` asks of the task

    def wake_at(self, deadline: float) -> None:
        """Let the task sleep no longer than until then. A timer that ends early is set again then: most requests are
        responded to before, and move no timer.
        """
        if deadline < self.timer.deadline:
            self.timer.deadline = deadline

    def end_unless_it_stays(self) -> None:
        """The client has closed its side: the connection ends in `LEFT_S`, unless `stay` is called before."""
        self.scope.deadline = trio.current_time() + LEFT_S

    def stay(self) -> None:
        """The reverse of `end_unless_it_stays`."""
        self.scope.deadline = inf
