"""The client's side of a SASL login: this broker at another one, on the inter-broker or control plane listener.

Kafka's ``SaslClientAuthenticator`` as brokers use it: `sasl.mechanism.inter.broker.protocol`, with what the listener's
own JAAS context has for it: `username` and `password`, a keytab, or a token. SaslHandshake 1, then SaslAuthenticate 1,
which every Kafka since 2.2 serves. A session that the other broker limits is renewed on the same connection, after 85 %
of its lifetime (KIP-368).

Passwords and tokens appear in no error. The other broker is not trusted with more than Kafka's clients trust it: SCRAM
checks its signature, its nonce and the number of iterations.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
import struct
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from kpybroker.broker.security.login_settings import PeerLoginFailed as PeerLoginFailed
from kpybroker.broker.security.logins import NONCE_BYTES, PLAIN_MODULE, SCRAM_MODULE, LoginConfigError
from kpybroker.config.jaas import JAAS, login_modules, mechanism_key, option
from kpybroker.config.values import ConfigError
from kpybroker.core.security.scram import (
    BY_NAME,
    MIN_ITERATIONS,
    ScramMechanism,
    client_proof,
    credential_of,
    escape_name,
    salted_password,
    server_signature,
)
from kpybroker.core.security.secret import Secret
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from kpybroker.broker.network.transport import Stream
    from kpybroker.config.broker import BrokerConfig

INTER_BROKER: Final = "sasl.mechanism.inter.broker.protocol"
HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 1
RESPONSE_BYTES_MAX: Final = 64 * 1024
ITERATIONS_MAX: Final = 1_000_000
"""Another broker that asks for more is not believed: that would keep a processor busy."""
RENEWED_AFTER: Final = 0.85
"""Of a session's lifetime, as Kafka's clients at the earliest."""
_SERVER_FIRST: Final = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[a-zA-Z0-9/+=]+),i=(?P<iterations>[0-9]{1,9})(?:,.*)?"
)


class ClientLogin(Protocol):
    """One login in progress."""

    def first(self) -> bytes:
        """The first token. May ask another machine for it, and so take a while. Raises OSError."""

    def next(self, challenge: bytes) -> bytes | None:
        """The token after a challenge; None at the end. May compute for a while. Raises PeerLoginFailed."""


Begin = Callable[[str], ClientLogin]
"""(host of the other broker) -> a login in progress."""


class _Plain:
    """PLAIN."""

    def __init__(self, username: str, password: Secret) -> None:
        self._token = Secret(f"\0{username}\0{password.reveal()}")

    def first(self) -> bytes:
        return self._token.reveal().encode()

    def next(self, challenge: bytes) -> None:
        return None


class _Scram:
    """SCRAM, both hashes."""

    def __init__(self, mechanism: ScramMechanism, username: str, password: Secret) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = secrets.token_urlsafe(NONCE_BYTES)
        self._bare = f"n={escape_name(username)},r={self._nonce}"
        self._expected: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        if self._expected is not None:
            if not hmac.compare_digest(challenge, self._expected):
                raise PeerLoginFailed("the other broker does not know this user's credential")
            return None
        text = challenge.decode("ascii", "replace")
        match = _SERVER_FIRST.fullmatch(text)
        if match is None or not match["nonce"].startswith(self._nonce) or match["nonce"] == self._nonce:
            raise PeerLoginFailed("the other broker's SCRAM challenge is not valid")
        iterations = int(match["iterations"])
        if not MIN_ITERATIONS <= iterations <= ITERATIONS_MAX:
            raise PeerLoginFailed(f"the other broker asks for {iterations} iterations")
        return self._prove(text, match["nonce"], match["salt"], iterations)

    def _prove(self, server_first: str, nonce: str, salt: str, iterations: int) -> bytes:
        mechanism = self._mechanism
        try:
            raw_salt = base64.b64decode(salt, validate=True)
        except binascii.Error:
            raise PeerLoginFailed("the other broker's SCRAM challenge is not valid") from None
        salted = salted_password(mechanism, self._password.reveal(), raw_salt, iterations)
        without_proof = f"c=biws,r={nonce}"
        auth_message = f"{self._bare},{server_first},{without_proof}".encode()
        server_key = credential_of(mechanism, raw_salt, salted, iterations).server_key
        self._expected = b"v=" + base64.b64encode(server_signature(mechanism, server_key, auth_message))
        proof = base64.b64encode(client_proof(mechanism, salted, auth_message)).decode()
        return f"{without_proof},p={proof}".encode()


@dataclass(frozen=True, slots=True)
class PeerLogin:
    """How this broker logs in on one listener of others."""

    mechanism: str
    begin: Begin

    async def log_in(self, stream: Stream, client_id: str, timeout_s: float, host: str = "") -> float:
        """Log in on a connection where nothing is in flight; on trio's clock, when to do so again (inf: never).

        Raises PeerLoginFailed, which names no secret; OSError, EOFError, ProtocolError where the connection breaks.
        """
        with trio.move_on_after(timeout_s):
            return await self._log_in(_Exchange(stream, client_id), host)
        raise TimeoutError(f"no login within {timeout_s:g} s")

    async def _log_in(self, exchange: _Exchange, host: str) -> float:
        offered = await exchange.ask(
            ApiKey.SASL_HANDSHAKE, HANDSHAKE_VERSION, SaslHandshakeRequest(mechanism=self.mechanism)
        )
        if offered.error_code:
            names = ", ".join(offered.mechanisms)
            code = _code_name(offered.error_code)
            raise PeerLoginFailed(f"SASL mechanism {self.mechanism}: {code}; the other broker has {names or 'none'}")
        login = self.begin(host)
        token: bytes | None = await trio.to_thread.run_sync(login.first, abandon_on_cancel=True)
        lifetime_ms = 0
        while token is not None:
            request = SaslAuthenticateRequest(auth_bytes=token)
            response = await exchange.ask(ApiKey.SASL_AUTHENTICATE, AUTHENTICATE_VERSION, request)
            if response.error_code:
                raise PeerLoginFailed(f"{_code_name(response.error_code)}: {response.error_message}")
            lifetime_ms = response.session_lifetime_ms
            token = await trio.to_thread.run_sync(login.next, bytes(response.auth_bytes), abandon_on_cancel=True)
        return trio.current_time() + RENEWED_AFTER * lifetime_ms / 1000 if lifetime_ms > 0 else inf


class _Exchange:
    """Requests and responses on one connection, one at a time."""

    def __init__(self, stream: Stream, client_id: str) -> None:
        self._stream = stream
        self._client_id = client_id
        self._correlation_id = 0

    async def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        self._correlation_id += 1
        header = encode_request_header(RequestHeader(key, version, self._correlation_id, self._client_id))
        body = header + encode(request, version)
        await self._stream.send_parts([len(body).to_bytes(4, "big") + body])
        (size,) = struct.unpack(">i", await self._receive(4))
        if not 4 <= size <= RESPONSE_BYTES_MAX:
            raise ProtocolError(f"a response of {size} bytes to {key.name}")
        frame = await self._receive(size)
        correlation_id, position = parse_response_header(frame, key, version)
        if correlation_id != self._correlation_id:
            raise ProtocolError(f"correlation id {correlation_id}, expected {self._correlation_id}")
        return decode(API_INFO[key].response_class(), memoryview(frame)[position:], version)

    async def _receive(self, size: int) -> bytes:
        buffer, filled = bytearray(size), 0
        while filled < size:
            received = await self._stream.receive_into(memoryview(buffer)[filled:])
            if not received:
                raise EOFError("the broker closed the connection during the login")
            filled += received
        return bytes(buffer)


def _code_name(code: int) -> str:
    return ErrorCode(code).name if code in ErrorCode.__members__.values() else f"error code {code}"


def peer_login(config: BrokerConfig, listener: str) -> PeerLogin:
    """The login of this broker on a listener. Raises LoginConfigError."""
    mechanism = config.get_str(INTER_BROKER)
    maker = CLIENTS.get(mechanism)
    if maker is None:
        raise LoginConfigError(
            f"{INTER_BROKER}={mechanism} is not available", f"set {INTER_BROKER} to one of {', '.join(CLIENTS)}"
        )
    return PeerLogin(mechanism, maker(config, listener, mechanism))


Maker = Callable[["BrokerConfig", str, str], Begin]
"""(config, listener, mechanism) -> what starts a login. Raises LoginConfigError."""


def _plain(config: BrokerConfig, listener: str, mechanism: str) -> Begin:
    username, password = _credentials(config, listener, mechanism, PLAIN_MODULE)
    return lambda host: _Plain(username, password)


def _scram(config: BrokerConfig, listener: str, mechanism: str) -> Begin:
    username, password = _credentials(config, listener, mechanism, SCRAM_MODULE)
    return lambda host: _Scram(BY_NAME[mechanism], username, password)


def _gssapi(config: BrokerConfig, listener: str, mechanism: str) -> Begin:
    from kpybroker.broker.security.kerberos import initiator

    return initiator(config, listener)


def _oauthbearer(config: BrokerConfig, listener: str, mechanism: str) -> Begin:
    from kpybroker.broker.security.bearer_logins import initiator

    return initiator(config, listener)


CLIENTS: Final[dict[str, Maker]] = {
    "PLAIN": _plain,
    **dict.fromkeys(BY_NAME, _scram),
    "GSSAPI": _gssapi,
    "OAUTHBEARER": _oauthbearer,
}
"""Mechanism -> what makes the client's side of it."""


def _credentials(config: BrokerConfig, listener: str, mechanism: str, class_name: str) -> tuple[str, Secret]:
    key = mechanism_key(listener, mechanism, JAAS)
    fix = f'set {key}={class_name} required username="..." password="...";'
    try:
        modules = login_modules(config, listener, mechanism)
    except ConfigError as error:
        raise LoginConfigError(str(error), fix) from error
    username, password = (option(modules, class_name, name) for name in ("username", "password"))
    if not username or not password:
        raise LoginConfigError(
            f"brokers log in with {mechanism} on listener {listener}, but its JAAS module has no username and password",
            fix,
        )
    return username, Secret(password)
