"""OAUTHBEARER (RFC 7628, KIP-255), as Kafka's `OAuthBearerSaslServer`: a bearer token, and extensions of the client.

One step if the token is good. If it is not, the broker sends a small JSON document, the client confirms that with one
byte, and only then the login fails, with the same document as its message.

Whether a token is good is up to a `Validator`: `bearer_tokens` has the one for unsecured tokens, `broker.security.jwks`
the one for signed ones. No token, and no claim of one that is refused, is in an error or a log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed
from kpybroker.core.security.scram import unescape_name

NAME: Final = "OAUTHBEARER"
SEPARATOR: Final = "\x01"
CONFIRMED: Final = b"\x01"
"""How a client ends a login that is refused."""
INVALID_TOKEN: Final = "invalid_token"
INSUFFICIENT_SCOPE: Final = "insufficient_scope"

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_FIRST = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)")


class TokenRefused(Exception):
    """The token is not good. `log_reason` names no claim's value; `scope` is what the token lacks, if that is why."""

    def __init__(self, log_reason: str, scope: str | None = None) -> None:
        super().__init__(log_reason)
        self.scope = scope

    def as_json(self) -> str:
        """What the client gets: Kafka's text, byte for byte."""
        if self.scope is None:
            return f'{{"status":"{INVALID_TOKEN}"}}'
        return f'{{"status":"{INSUFFICIENT_SCOPE}", "scope":{json.dumps(self.scope)}}}'


class BearerToken(NamedTuple):
    """What a good token says: who has it, and until when (milliseconds since the epoch)."""

    subject: str
    expires_ms: int


class Validator(Protocol):
    """Decides about tokens."""

    def validate(self, token: str, now_ms: int) -> BearerToken:
        """What the token says. Raises TokenRefused."""


class FirstMessage(NamedTuple):
    """The client's message. Its repr shows the token, so it must not be logged."""

    authorization_id: str
    token: str
    extensions: Mapping[str, str]


def parse_first_message(message: bytes) -> FirstMessage:
    """The client's message. Raises LoginFailed, which shows nothing of it."""
    try:
        match = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise LoginFailed(log_reason="Invalid OAUTHBEARER client first message")
    extensions = dict(pair.split("=", 1) for pair in match["pairs"].split(SEPARATOR) if pair)
    auth = extensions.pop("auth", None)
    if auth is None:
        raise LoginFailed(log_reason="Invalid OAUTHBEARER client first message: 'auth' not specified")
    parts = _AUTH.fullmatch(auth)
    if parts is None or parts["scheme"].lower() != "bearer":
        raise LoginFailed(log_reason="Invalid OAUTHBEARER client first message: invalid 'auth' format")
    authorization_id = unescape_name(match["authzid"] or "")
    if authorization_id is None:
        raise LoginFailed(log_reason="Invalid OAUTHBEARER client first message: invalid authorization id")
    return FirstMessage(authorization_id, parts["token"], extensions)


@dataclass(frozen=True, slots=True)
class OAuthBearerMechanism:
    """OAUTHBEARER of one listener. `blocks`: the validator may read keys from another machine."""

    validator: Validator
    blocks: bool = False

    @property
    def name(self) -> str:
        """Always OAUTHBEARER."""
        return NAME

    def begin(self) -> OAuthBearerLogin:
        """A new login."""
        return OAuthBearerLogin(self.validator)


class OAuthBearerLogin:
    """One login: one step, or two if the token is refused."""

    __slots__ = ("_refused", "_validator")

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        self._refused: TokenRefused | None = None

    def step(self, response: bytes, now_ms: int) -> bytes | LoggedIn:
        """The client's message with its token; after a refusal, its confirmation."""
        refused, self._refused = self._refused, None
        if refused is not None and response == CONFIRMED:
            raise LoginFailed(refused.as_json(), log_reason=f"bearer token refused: {refused}")
        first = parse_first_message(response)
        try:
            token = self._validator.validate(first.token, now_ms)
        except TokenRefused as error:
            self._refused = error
            return error.as_json().encode()
        if first.authorization_id and first.authorization_id != token.subject:
            raise LoginFailed(
                f"Authentication failed: Client requested an authorization id ({first.authorization_id}) that is "
                f"different from the token's principal name ({token.subject})"
            )
        return LoggedIn(Principal("User", token.subject), expires_ms=token.expires_ms)
