"""The server's side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as Kafka's ``ScramSaslServer``.

Two steps: the client's name and nonce, and in return salt and iterations; then its proof, and in return the server's
signature. Every refusal but that of a foreign authorization id has the same text, and an unknown user takes the same
steps as a wrong password: it gets a salt that is always the same for its name, and is refused at its proof. (Kafka
refuses an unknown user at the first step, by which a client can find out who exists.)

With the extension `tokenauth=true` the name is that of a delegation token, which `token_of` looks up.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed
from kpybroker.core.security.sasl.plain import OTHER_AUTHORIZATION_ID
from kpybroker.core.security.scram import (
    MIN_ITERATIONS,
    SALT_BITS,
    SaltForm,
    ScramCredential,
    ScramMechanism,
    is_proof_of,
    salt_of,
    server_signature,
    unescape_name,
)

TOKEN_AUTH: Final = "tokenauth"

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"[a-zA-Z0-9/+]*={0,2}"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}))?,(?P<bare>(?:m={_VALUE},)?"
    rf"n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL = re.compile(rf"(?P<without_proof>c={_BASE64},r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})")


class TokenLogin(NamedTuple):
    """A delegation token as a credential: its owner logs in, until it expires."""

    credential: ScramCredential
    owner: Principal
    expires_ms: int


@dataclass(frozen=True, slots=True)
class ScramServer:
    """SCRAM of one listener. All callbacks return at once.

    `credential_of(name)` and `token_of(token id)` return None for unknown ones. `new_nonce()` returns printable ASCII
    without commas, of at least 128 random bits. `decoy_key` is a secret of this process. `usual()` is the form of most
    users' credentials, which those of unknown users have too.
    """

    mechanism: ScramMechanism
    credential_of: Callable[[str], ScramCredential | None]
    new_nonce: Callable[[], str]
    decoy_key: bytes
    token_of: Callable[[str], TokenLogin | None] | None = None
    usual: Callable[[], SaltForm] = SaltForm

    @property
    def name(self) -> str:
        """SCRAM-SHA-256 or SCRAM-SHA-512."""
        return self.mechanism.mechanism_name

    @property
    def blocks(self) -> bool:
        """Never: a server computes two HMACs, whatever the iterations are."""
        return False

    def begin(self) -> ScramLogin:
        """A new login."""
        return ScramLogin(self)

    def decoy(self, name: str, form: SaltForm) -> ScramCredential:
        """A credential that no proof fits, in the form of a real one."""
        key = hmac.digest(self.decoy_key, b"key of " + name.encode(), self.mechanism.hash_name)
        return ScramCredential(self._decoy_salt(name, form), key, key, form.iterations)

    def _decoy_salt(self, name: str, form: SaltForm) -> bytes:
        size = SALT_BITS if form.size is None else form.size
        parts = range(size // 64 + 1)
        random = b"".join(hmac.digest(self.decoy_key, b"%d %s" % (part, name.encode()), "sha512") for part in parts)
        if form.size is None:
            return salt_of(int.from_bytes(random) % (1 << SALT_BITS))
        return (base64.urlsafe_b64encode(random) if form.is_text else random)[: form.size]


class _Offered(NamedTuple):
    """What the first step fixes for the second one."""

    credential: ScramCredential
    login: LoggedIn | None
    client_first_bare: str
    server_first: str
    nonce: str


class ScramLogin:
    """One login: two steps."""

    __slots__ = ("_offered", "_server")

    def __init__(self, server: ScramServer) -> None:
        self._server = server
        self._offered: _Offered | None = None

    def step(self, response: bytes, now_ms: int) -> bytes | LoggedIn:
        """The client-first message, then the client-final message."""
        if self._offered is None:
            return self._first(response, now_ms)
        offered, self._offered = self._offered, None
        return self._final(response, offered)

    def _first(self, response: bytes, now_ms: int) -> bytes:
        match = _matched(_CLIENT_FIRST, response, "client-first")
        name = unescape_name(match["name"])
        if name is None:
            raise LoginFailed(log_reason="a SCRAM user name has an = that escapes nothing")
        is_token = _is_token(match["extensions"])
        credential, login = self._known(name, now_ms, is_token=is_token)
        authorization_id = match["authzid"]
        if authorization_id is not None and authorization_id != name:
            raise LoginFailed(OTHER_AUTHORIZATION_ID)
        if credential is not None and credential.iterations < MIN_ITERATIONS:
            raise LoginFailed(log_reason=f"a credential of {credential.iterations} iterations, {MIN_ITERATIONS} needed")
        if credential is None:
            credential = self._server.decoy(name, SaltForm() if is_token else self._server.usual())
        nonce = match["nonce"] + self._server.new_nonce()
        salt = base64.b64encode(credential.salt).decode()
        server_first = f"r={nonce},s={salt},i={credential.iterations}"
        self._offered = _Offered(credential, login, match["bare"], server_first, nonce)
        return server_first.encode()

    def _known(self, name: str, now_ms: int, *, is_token: bool) -> tuple[ScramCredential | None, LoggedIn | None]:
        """The credential, and what the login will be if the proof fits; None for unknown names."""
        if not is_token:
            credential = self._server.credential_of(name)
            return credential, None if credential is None else LoggedIn(Principal("User", name))
        token = None if self._server.token_of is None else self._server.token_of(name)
        if token is None or token.expires_ms <= now_ms:
            return None, None
        owner = Principal(token.owner.type, token.owner.name, token_authenticated=True)
        login = LoggedIn(owner, expires_ms=token.expires_ms, token_authenticated=True)
        return token.credential, login

    def _final(self, response: bytes, offered: _Offered) -> LoggedIn:
        match = _matched(_CLIENT_FINAL, response, "client-final")
        # As Kafka 3.9, not "equals": librdkafka before 2.6.1 repeats its own nonce in front of the whole one. The proof
        # covers what was sent, and what was sent must end in both nonces, so no proof can be used twice.
        if not match["nonce"].endswith(offered.nonce):
            raise LoginFailed(log_reason="invalid nonce in the client-final message")
        auth_message = f"{offered.client_first_bare},{offered.server_first},{match['without_proof']}".encode()
        mechanism = self._server.mechanism
        is_proven = is_proof_of(mechanism, offered.credential, auth_message, _decoded(match["proof"]))
        if not is_proven or offered.login is None:
            raise LoginFailed(log_reason="Invalid client credentials")
        signature = server_signature(mechanism, offered.credential.server_key, auth_message)
        login = offered.login
        reply = b"v=" + base64.b64encode(signature)
        return LoggedIn(login.principal, reply, login.expires_ms, login.token_authenticated)


def _is_token(extensions: str) -> bool:
    """Whether the name is that of a delegation token."""
    given = (extension.partition("=") for extension in extensions.split(","))
    return any(name == TOKEN_AUTH and value.lower() == "true" for name, _, value in given)


def _matched(pattern: re.Pattern[str], message: bytes, what: str) -> re.Match[str]:
    try:
        match = pattern.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise LoginFailed(log_reason=f"invalid SCRAM {what} message")
    return match


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise LoginFailed(log_reason="invalid base64 in a SCRAM message") from None
