"""PLAIN (RFC 4616), as Kafka's ``PlainSaslServer``: user name and password in one token.

The password is checked by a callback, `Check`. `of_users` makes the one that Kafka has by default: users and passwords
of the JAAS configuration, compared in constant time, an unknown user like a wrong password.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed
from kpybroker.core.security.secret import Secret

NAME = "PLAIN"
INVALID = "Authentication failed: Invalid username or password"
OTHER_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"
NOT_VERIFIED = "Authentication failed: credentials for user could not be verified"

Check = Callable[[str, str], bool]
"""(user name, password) -> whether they belong together. Any exception: they could not be verified."""


def of_users(users: Mapping[str, Secret]) -> Check:
    """The check against a fixed table of users."""
    passwords = {name: secret.reveal().encode() for name, secret in users.items()}

    def check(username: str, password: str) -> bool:
        expected = passwords.get(username)
        is_equal = hmac.compare_digest(expected if expected is not None else b"\0", password.encode())
        return is_equal and expected is not None

    return check


@dataclass(frozen=True, slots=True)
class PlainMechanism:
    """PLAIN of one listener. `blocks`: the check does I/O or computes for long."""

    check: Check
    blocks: bool = False

    @property
    def name(self) -> str:
        """Always PLAIN."""
        return NAME

    def begin(self) -> PlainLogin:
        """A new login."""
        return PlainLogin(self.check)


class PlainLogin:
    """One login: a single step."""

    __slots__ = ("_check",)

    def __init__(self, check: Check) -> None:
        self._check = check

    def step(self, response: bytes, now_ms: int) -> LoggedIn:
        """Check the token `[authzid] NUL authcid NUL passwd`."""
        parts = response.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            raise LoginFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, username, password = parts
        if not username or not password:
            missing = "username" if not username else "password"
            raise LoginFailed(f"Authentication failed: {missing} not specified")
        try:
            is_valid = self._check(username, password)
        except Exception as error:
            # The exception may hold the password, and its traceback does: neither is passed on.
            raise LoginFailed(NOT_VERIFIED, log_reason=f"{NOT_VERIFIED} ({type(error).__name__})") from None
        if is_valid is not True:
            raise LoginFailed(INVALID)
        if authorization_id and authorization_id != username:
            raise LoginFailed(OTHER_AUTHORIZATION_ID)
        return LoggedIn(Principal("User", username))
