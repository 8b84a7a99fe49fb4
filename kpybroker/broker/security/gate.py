"""The gate of a SASL listener: what a connection may ask before its client has logged in. Kafka's
``SaslServerAuthenticator``, and the part of `SocketServer` that ends sessions.

    first      -> ApiVersions (again, while one is refused), then SaslHandshake
    handshake  -> SaslHandshake; any other request ends the connection
    login      -> SaslAuthenticate after SaslHandshake 1; bare tokens, each as a frame, after SaslHandshake 0 (KIP-43)
    logged in  -> the dispatcher. Where the session is limited, SaslHandshake starts another login (KIP-368), and any
                  other request after the session's end ends the connection
    ended      -> nothing

Rules. A refusal is sent `connection.failed.authentication.delay.ms` later, and then the connection ends; until then its
frame is freed. What is refused, and why, is logged once, without any token. Frames before the login are at most 64 KiB,
or `sasl.server.max.receive.size` where that is set. Requests before the login are not dispatched, but for ApiVersions:
no request log holds a token.
"""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Any, Protocol

import trio

from kpybroker.broker.loop.steps import Pending, pending
from kpybroker.broker.network.login_threads import LoginThreads
from kpybroker.broker.network.response import Response
from kpybroker.broker.requests.clients import client_name
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.broker.requests.log_fields import of_connection
from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn, Login, LoginFailed, Mechanism
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import LARGE_FRAME_BYTES, decode, encode
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_response_header, parse_request_header
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from kpybroker.broker.loop.clock import Clock
    from kpybroker.broker.requests.connection import Connection
    from kpybroker.broker.requests.dispatch import Dispatcher, RespondNow

logger = logging.getLogger("kafka.network.SocketServer")

REAUTHENTICATION_INTERVAL_MIN_S = 1.0
"""``KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS``."""
_HANDSHAKE_KEY = int(ApiKey.SASL_HANDSHAKE).to_bytes(2, "big")
_NO_ERROR = b"\0\0"


class Logins(Protocol):
    """The mechanisms of one listener, and their settings, as they are now."""

    @property
    def mechanism_names(self) -> list[str]:
        """In the order in which Kafka lists them to a client that asked for another one."""

    @property
    def failure_delay_s(self) -> float:
        """How long a refusal is held back."""

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame before the login."""

    def mechanism(self, name: str) -> Mechanism | None:
        """The enabled mechanism of this name."""

    def session_ms_max(self, mechanism: str) -> int:
        """`connections.max.reauth.ms` of the mechanism; 0: sessions have no end of their own."""


class SessionOver(EOFError):
    """The connection ends without a response, as one does whose client has left."""


class State(enum.Enum):
    """Of one connection, as in the table above."""

    FIRST = "first"
    HANDSHAKE = "handshake"
    LOGIN = "login"
    WRONG_MECHANISM = "wrong mechanism"
    LOGGED_IN = "logged in"
    ENDED = "ended"


class SaslGate:
    """The gate of one listener (a `connection.Gate`)."""

    def __init__(self, logins: Logins, dispatcher: Dispatcher, clock: Clock) -> None:
        self.logins = logins
        self.dispatcher = dispatcher
        self.clock = clock
        self.threads = LoginThreads()

    @property
    def frame_bytes_max(self) -> int:
        """As `connection.Gate.frame_bytes_max`."""
        return self.logins.frame_bytes_max

    def guard(self, connection: Connection) -> RespondNow:
        """As `connection.Gate.guard`."""
        return _Guard(self, connection).respond_now


class _Guard:
    """What one connection has of the gate."""

    __slots__ = (
        "_began_again_s",
        "_connection",
        "_ends_s",
        "_gate",
        "_has_headers",
        "_login",
        "_mechanism",
        "_previous",
        "_state",
    )

    def __init__(self, gate: SaslGate, connection: Connection) -> None:
        self._gate = gate
        self._connection = connection
        self._state = State.FIRST
        self._has_headers = False  # tokens come in SaslAuthenticate
        self._mechanism: Mechanism
        self._login: Login
        self._previous: tuple[str, Principal] | None = None  # what a repeated login must be again
        self._ends_s = 0.0
        self._began_again_s: float | None = None

    def respond_now(self, frame: bytearray | memoryview, connection: ConnectionInfo) -> Response | Pending[Response]:
        """As `Dispatcher.respond_now`, while the client is not logged in. Raises ProtocolError."""
        data = bytes(frame)
        if self._state is State.LOGIN:
            return self._take_token(data)
        if self._state is State.WRONG_MECHANISM:
            assert self._previous is not None
            asked = f"mechanism '{self._mechanism.name}', not '{self._previous[0]}'"
            return self._refuse(None, f"re-authentication with {asked}")
        if self._state not in (State.FIRST, State.HANDSHAKE):
            raise ProtocolError(f"a request on a connection that is {self._state.value}")
        header = parse_request_header(data)
        connection.client_id = header.client_id
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return self._handshake(header, data)
        if header.api_key == ApiKey.API_VERSIONS and self._state is State.FIRST:
            return pending(self._versions(data, connection))
        raise ProtocolError(
            f"Unexpected Kafka request of type {_name(header.api_key)} during SASL handshake on listener "
            f"{connection.listener_name}: set security.protocol={connection.security_protocol} and sasl.mechanism in "
            "the client"
        )

    async def _versions(self, data: bytes, connection: ConnectionInfo) -> Response:
        """ApiVersions, once: until it has no error the client may ask again, in another version."""
        response = await self._gate.dispatcher.respond(bytearray(data), connection)
        if response.frame is not None and response.frame[8:10] == _NO_ERROR:
            self._state = State.HANDSHAKE
        return response

    # --- SaslHandshake

    def _handshake(self, header: RequestHeader, data: bytes) -> Response | Pending[Response]:
        version = _checked_version(header, SaslHandshakeRequest.VERSIONS)
        request = decode(SaslHandshakeRequest, memoryview(data)[header.body_offset :], version)
        logins = self._gate.logins
        self._has_headers = self._has_headers or version >= 1
        mechanism = logins.mechanism(request.mechanism)
        names = logins.mechanism_names
        if mechanism is None:
            refused = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
            reason = f"Unsupported SASL mechanism {request.mechanism[:100]!a}, enabled are {', '.join(names)}"
            # As Kafka: a client that logs in again gets no response to this.
            return self._refuse(_frame(header, refused) if self._previous is None else None, reason)
        self._mechanism = mechanism
        if self._previous is not None and self._previous[0] != mechanism.name:
            self._state = State.WRONG_MECHANISM  # as Kafka: its first token is refused
        else:
            self._state = State.LOGIN
            self._login = mechanism.begin()
        return Response(_frame(header, SaslHandshakeResponse(mechanisms=names)))

    # --- tokens

    def _take_token(self, data: bytes) -> Response | Pending[Response]:
        """A step of the login, from SaslAuthenticate or a bare token."""
        header = None
        token = data
        if self._has_headers:
            header = parse_request_header(data)
            if header.api_key != ApiKey.SASL_AUTHENTICATE:
                return self._refuse_request(header, data)
            version = _checked_version(header, SaslAuthenticateRequest.VERSIONS)
            request = decode(SaslAuthenticateRequest, memoryview(data)[header.body_offset :], version)
            token = bytes(request.auth_bytes)
        if self._mechanism.blocks:
            return pending(self._step_in_thread(header, token))
        return self._step(header, token)

    async def _step_in_thread(self, header: RequestHeader | None, token: bytes) -> Response:
        step, limiter = self._login.step, self._gate.threads.limiter(self._connection.client_host)
        try:
            result = await trio.to_thread.run_sync(
                step, token, self._gate.clock.time_ms(), limiter=limiter, abandon_on_cancel=True
            )
        except Exception as error:
            return await self._failed(header, error)
        return await self._stepped(header, result)

    def _step(self, header: RequestHeader | None, token: bytes) -> Response | Pending[Response]:
        try:
            result = self._login.step(token, self._gate.clock.time_ms())
        except Exception as error:
            return self._failed(header, error)
        return self._stepped(header, result)

    def _stepped(self, header: RequestHeader | None, result: bytes | LoggedIn) -> Response | Pending[Response]:
        if isinstance(result, bytes):
            return Response(_token_frame(header, result, 0))
        if self._previous is not None and self._previous[1] != result.principal:
            was, now = self._previous[1], result.principal
            reason = (
                f"Cannot change principals during re-authentication from {was.type}.{was.name}: {now.type}.{now.name}"
            )
            return self._failed(header, LoginFailed(reason))
        return Response(_token_frame(header, result.reply, self._logged_in(result)))

    def _logged_in(self, login: LoggedIn) -> int:
        """Open the connection to the dispatcher; the lifetime of the session, 0 without an end."""
        gate, connection = self._gate, self._connection
        limits = []
        if (session_ms_max := gate.logins.session_ms_max(self._mechanism.name)) > 0:
            limits.append(session_ms_max)
        if login.expires_ms is not None:
            limits.append(max(login.expires_ms - gate.clock.time_ms(), 0))
        self._state = State.LOGGED_IN
        self._previous = self._mechanism.name, login.principal
        del self._login
        if limits:
            self._ends_s = gate.clock.monotonic() + min(limits) / 1000
        connection.admit(login.principal, self._respond_in_session if limits else gate.dispatcher.respond_now)
        if logger.isEnabledFor(logging.DEBUG):
            name, extra = client_name(connection), of_connection(connection)
            logger.debug("%s logged in as %s with %s", name, login.principal, self._mechanism.name, extra=extra)
        return min(limits, default=0)

    # --- sessions that end

    def _respond_in_session(
        self, frame: bytearray | memoryview, connection: ConnectionInfo
    ) -> Response | Pending[Response]:
        """As `Dispatcher.respond_now`, until the session is over."""
        now_s = self._gate.clock.monotonic()
        if bytes(frame[:2]) == _HANDSHAKE_KEY and self._may_begin_again(now_s):
            self._began_again_s = now_s
            data = bytes(frame)
            header = parse_request_header(data)
            self._connection.respond_now = self.respond_now
            return self._handshake(header, data)
        if now_s > self._ends_s:
            self._state = State.ENDED
            logger.info(
                "Closing connection %s: its session as %s is over, and the client has not authenticated again",
                client_name(connection),
                connection.principal,
                extra=of_connection(connection),
            )
            raise SessionOver
        return self._gate.dispatcher.respond_now(frame, connection)

    def _may_begin_again(self, now_s: float) -> bool:
        began_s = self._began_again_s
        return began_s is None or now_s - began_s >= REAUTHENTICATION_INTERVAL_MIN_S

    # --- refusals

    def _failed(self, header: RequestHeader | None, error: Exception) -> Pending[Response]:
        """The login is refused, by the mechanism or because it failed."""
        during = "authentication" if self._previous is None else "re-authentication"
        text = (
            f"Authentication failed during {during} due to invalid credentials with SASL mechanism "
            f"{self._mechanism.name}"
        )
        if isinstance(error, LoginFailed):
            reason, log_reason = error.reason or text, error.log_reason or text
        else:
            # Neither its message nor its traceback: both may hold what the client sent.
            extra = of_connection(self._connection)
            logger.error("SASL mechanism %s failed: %s", self._mechanism.name, _where(error), extra=extra)
            reason = log_reason = text
        response = None
        if header is not None:
            refused = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=reason)
            response = _frame(header, refused)
        return self._refuse(response, log_reason)

    def _refuse_request(self, header: RequestHeader, data: bytes) -> Pending[Response]:
        """A request between SaslHandshake and the end of the login: its own error response, if it is a small one."""
        text = f"Unexpected Kafka request of type {_name(header.api_key)} during SASL authentication."
        response = None
        if len(data) <= LARGE_FRAME_BYTES and header.api_key in API_INFO:
            key, version = ApiKey(header.api_key), header.api_version
            request = decode(API_INFO[key].request_class(), memoryview(data)[header.body_offset :], version)
            error = KafkaError(ErrorCode.ILLEGAL_SASL_STATE, text)
            message = self._gate.dispatcher.error_response(header, self._connection, request, error)
            response = None if message is None else _frame(header, message)
        return self._refuse(response, text)

    def _refuse(self, response: bytes | None, reason: str) -> Pending[Response]:
        return pending(self._refused(response, reason))

    async def _refused(self, response: bytes | None, reason: str) -> Response:
        """Wait, respond, and end the connection. The token's memory is free during the wait."""
        connection = self._connection
        self._state = State.ENDED
        extra = of_connection(connection)
        logger.info("Failed authentication with %s (%s)", client_name(connection), reason, extra=extra)
        connection.serving.frames.done()
        await self._gate.clock.pause(self._gate.logins.failure_delay_s)
        if response is None:
            raise SessionOver
        return Response(None, (response,), (connection.end,))


def _checked_version(header: RequestHeader, versions: tuple[int, int]) -> int:
    version = header.api_version
    if not versions[0] <= version <= versions[1]:
        raise ProtocolError(
            f"{_name(header.api_key)} version {version} is not served; {versions[0]} to {versions[1]} are"
        )
    return version


def _name(api_key: int) -> str:
    return ApiKey(api_key).name if api_key in API_INFO else f"with API key {api_key}"


def _frame(header: RequestHeader, response: Any) -> bytes:
    key, version = ApiKey(header.api_key), header.api_version
    body = encode_response_header(key, version, header.correlation_id) + encode(response, version)
    return len(body).to_bytes(4, "big") + body


def _token_frame(header: RequestHeader | None, token: bytes | None, session_ms: int) -> bytes:
    """The response with a token of ours; bare tokens are frames of their own."""
    if header is None:
        return b"" if token is None else len(token).to_bytes(4, "big") + token
    response = SaslAuthenticateResponse(auth_bytes=token or b"")
    if header.api_version >= 1:
        response.session_lifetime_ms = session_ms
    return _frame(header, response)


def _where(error: Exception) -> str:
    """The type of an exception and the line that raised it."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    place = "" if traceback is None else f" in {traceback.tb_frame.f_code.co_qualname} line {traceback.tb_lineno}"
    return type(error).__name__ + place
