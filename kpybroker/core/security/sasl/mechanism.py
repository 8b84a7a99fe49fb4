"""What a SASL mechanism offers to the connection that logs in with it.

A `Mechanism` belongs to one listener and makes one `Login` for each attempt. The connection's gate passes every token
of the client to `Login.step`, until that returns `LoggedIn` or raises `LoginFailed`. A login is not used afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kpybroker.core.authorizer import Principal


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The end of a successful login.

    `reply` is the last token for the client; None: the mechanism ends with the client's token, and a client that sends
    bare tokens gets no response to it. The session ends at `expires_ms` (milliseconds since the epoch), if the
    credential itself has a lifetime: a bearer token, a ticket, a delegation token. `connections.max.reauth.ms` may end
    it earlier. `token_authenticated`: the client used a delegation token (``KafkaPrincipal.tokenAuthenticated``).
    """

    principal: Principal
    reply: bytes | None = b""
    expires_ms: int | None = None
    token_authenticated: bool = False


class LoginFailed(Exception):
    """The login is refused.

    `reason` is the message for the client, without secrets: what Kafka puts into a `SaslAuthenticationException`. If it
    is empty, the client gets Kafka's text for all other failures (invalid credentials with the mechanism's name).
    `log_reason` is for the broker's log, also without secrets.
    """

    def __init__(self, reason: str = "", *, log_reason: str = "") -> None:
        super().__init__(log_reason or reason)
        self.reason = reason
        self.log_reason = log_reason or reason


class Login(Protocol):
    """One login in progress."""

    def step(self, response: bytes, now_ms: int) -> bytes | LoggedIn:
        """Take a token of the client; return the next challenge, or the end. Raise `LoginFailed` to refuse.

        `now_ms`: milliseconds since the epoch. Any other exception is a defect: the gate logs it without the token and
        refuses the login with Kafka's general text.
        """


class Mechanism(Protocol):
    """A SASL mechanism of one listener."""

    @property
    def name(self) -> str:
        """Kafka's name of it, as `SCRAM-SHA-256`."""

    @property
    def blocks(self) -> bool:
        """`step` does I/O or computes for long: the connection calls it in a thread."""

    def begin(self) -> Login:
        """Start a login; it must not block."""
