"""Delegation tokens (KIP-48, KIP-373): their times, who may do what with them, and the proof of possession.

The rules are those of Kafka's `DelegationTokenManagerZk` and `KafkaApis`. A token has an id, which is no secret, and an
HMAC of that id by the key of the cluster, which is one: who knows it logs in as the token's owner. It is never stored,
as every broker can compute it.

A token is usable until `expiry_timestamp_ms`. Its owner and its renewers move that time, up to `max_timestamp_ms`.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kpybroker.core.authorizer import ANONYMOUS, Principal
from kpybroker.core.security.secret import Secret
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.znodes import DelegationToken as StoredToken

USER: Final = "User"
ERROR_TIMESTAMP_MS: Final = -1
TIMESTAMP_MS_MAX: Final = (1 << 63) - 1
_HMAC: Final = "sha512"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a delegation token; times are milliseconds since the epoch. It holds no secret."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiry_timestamp_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Whether it can be used no more."""
        return min(self.max_timestamp_ms, self.expiry_timestamp_ms) < now_ms

    def may_be_renewed_by(self, principal: Principal) -> bool:
        """Whether this principal may renew and expire it; the requester may not."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: Principal) -> bool:
        """Whether this principal has asked for it, owns it or may renew it."""
        return principal == self.requester or self.may_be_renewed_by(principal)


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """`delegation.token.max.lifetime.ms` and `delegation.token.expiry.time.ms`."""

    max_ms: int
    expiry_ms: int


def hmac_of(secret_key: Secret, token_id: str) -> bytes:
    """The secret of a token, 64 bytes (HmacSHA512)."""
    return hmac.digest(secret_key.reveal().encode(), token_id.encode(), _HMAC)


def password_of(token_hmac: bytes) -> str:
    """What a client that logs in with the token uses as its SCRAM password: the HMAC in base 64."""
    return base64.b64encode(token_hmac).decode()


# --- who may ask


def check_connection(security_protocol: str, principal: Principal) -> None:
    """Raise KafkaError where tokens may not be asked for: without a login, and after a login with a token.

    ``KafkaApis.allowTokenRequests``.
    """
    is_anonymous = security_protocol == "SSL" and principal == ANONYMOUS
    if principal.token_authenticated or security_protocol == "PLAINTEXT" or is_anonymous:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def check_renewers(renewers: Sequence[Principal]) -> None:
    """Raise KafkaError unless all are users."""
    if any(renewer.type != USER for renewer in renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)


def may_describe(
    token: Token,
    principal: Principal,
    owners: Sequence[Principal] | None,
    is_authorized: Callable[[Token], bool],
) -> bool:
    """Whether a token is in the response to `principal`, that asks for those of `owners` (None: all).

    `is_authorized` decides about tokens that do not concern the principal.
    """
    if owners is not None and not any(token.concerns(owner) for owner in owners):
        return False
    return token.concerns(principal) or is_authorized(token)


# --- what happens to a token


def new_token(
    token_id: str,
    people: tuple[Principal, Principal, tuple[Principal, ...]],
    max_lifetime_ms: int,
    lifetimes: Lifetimes,
    now_ms: int,
) -> Token:
    """A token issued now. `people`: owner, requester and renewers. `max_lifetime_ms` of zero or less: the broker's."""
    owner, requester, renewers = people
    longest_ms = lifetimes.max_ms if max_lifetime_ms <= 0 else min(max_lifetime_ms, lifetimes.max_ms)
    max_timestamp_ms = min(now_ms + longest_ms, TIMESTAMP_MS_MAX)
    expiry_timestamp_ms = min(max_timestamp_ms, now_ms + lifetimes.expiry_ms)
    return Token(token_id, owner, requester, renewers, now_ms, max_timestamp_ms, expiry_timestamp_ms)


def renewed(token: Token, principal: Principal, period_ms: int, lifetimes: Lifetimes, now_ms: int) -> Token:
    """The token, usable for another `period_ms` (negative: the broker's). Raises KafkaError."""
    _check_renewer(token, principal)
    _check_alive(token, now_ms)
    period_ms = lifetimes.expiry_ms if period_ms < 0 else period_ms
    return _usable_for(token, period_ms, now_ms)


def expired(token: Token, principal: Principal, period_ms: int, now_ms: int) -> Token | None:
    """The token, usable for `period_ms` from now; None if it ends at once (negative). Raises KafkaError."""
    _check_renewer(token, principal)
    if period_ms < 0:
        return None
    _check_alive(token, now_ms)
    return _usable_for(token, period_ms, now_ms)


def _usable_for(token: Token, period_ms: int, now_ms: int) -> Token:
    return replace(token, expiry_timestamp_ms=min(token.max_timestamp_ms, now_ms + period_ms))


def _check_renewer(token: Token, principal: Principal) -> None:
    if not token.may_be_renewed_by(principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _check_alive(token: Token, now_ms: int) -> None:
    if token.is_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


# --- in the tree


def to_stored(token: Token) -> StoredToken:
    """As it is kept in the tree."""
    return StoredToken(
        token.token_id,
        str(token.owner),
        str(token.requester),
        tuple(str(renewer) for renewer in token.renewers),
        token.issue_timestamp_ms,
        token.max_timestamp_ms,
        token.expiry_timestamp_ms,
    )


def from_stored(stored: StoredToken) -> Token:
    """The reverse. Raises ValueError where a principal cannot be read."""
    return Token(
        stored.token_id,
        _principal(stored.owner),
        _principal(stored.requester),
        tuple(_principal(renewer) for renewer in stored.renewers),
        stored.issue_timestamp_ms,
        stored.max_timestamp_ms,
        stored.expiry_timestamp_ms,
    )


def _principal(text: str) -> Principal:
    """`User:alice`, as ``SecurityUtils.parseKafkaPrincipal``."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{text!a} is not a principal, which is written as type:name")
    return Principal(kind, name)
