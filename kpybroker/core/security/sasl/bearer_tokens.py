"""What bearer tokens (JSON Web Tokens, RFC 7519) must claim, and tokens without a signature.

`check_claims` has the rules for signed tokens, those of Kafka's ``ValidatorAccessTokenValidator`` and jose4j.
`UnsecuredValidator` is Kafka's `OAuthBearerUnsecuredValidatorCallbackHandler`: it takes any token that is well formed,
so that every client is who it says. It is for development only.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kpybroker.core.security.sasl.oauthbearer import BearerToken, TokenRefused

MILLISECONDS: Final = 1000
TIME_MS_MAX: Final = 253_402_300_799_000
"""The end of the year 9999: later times are read as this one, so that they fit everywhere."""
_BASE64: Final = re.compile(r"[-_A-Za-z0-9]*")

Claims = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a signed token must claim, from the `sasl.oauthbearer` keys."""

    audiences: tuple[str, ...] = ()
    """At least one of them; empty: a token that names an audience is not for us."""
    issuer: str | None = None
    skew_ms: int = 30_000
    subject_claim: str = "sub"
    scope_claim: str = "scope"


def decode_part(part: str) -> dict[str, Any]:
    """The JSON object in a part of a token. Raises TokenRefused, which shows nothing of it."""
    if not _BASE64.fullmatch(part):
        raise TokenRefused("a part of the token is not base 64")
    try:
        values = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise TokenRefused("a part of the token cannot be read") from None
    if not isinstance(values, dict):
        raise TokenRefused("a part of the token is no JSON object")
    return values


def check_claims(claims: Claims, expected: Expected, now_ms: int) -> BearerToken:
    """What a token with a valid signature says. Raises TokenRefused."""
    expires_ms = _time_ms(claims, "exp")
    issued_ms = _time_ms(claims, "iat")
    if now_ms - expected.skew_ms >= expires_ms:
        raise TokenRefused("the token has expired")
    if "nbf" in claims and now_ms + expected.skew_ms < _time_ms(claims, "nbf"):
        raise TokenRefused("the token is not valid yet")
    if expires_ms <= issued_ms:
        raise TokenRefused("the token expires before it was issued")
    if expected.issuer is not None and claims.get("iss") != expected.issuer:
        raise TokenRefused("the token has another issuer than sasl.oauthbearer.expected.issuer")
    _check_audience(claims.get("aud"), expected.audiences)
    _scopes(claims, expected.scope_claim, is_required=True)
    return BearerToken(_subject(claims, expected.subject_claim), expires_ms)


def _check_audience(named: Any, audiences: tuple[str, ...]) -> None:
    if named is None and not audiences:
        return
    named = named if isinstance(named, list) else [named]
    if not any(isinstance(one, str) and one in audiences for one in named):
        raise TokenRefused("the token is not for an audience of sasl.oauthbearer.expected.audience")


def _time_ms(claims: Claims, name: str) -> int:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TokenRefused(f"the claim {name} is missing or no time")
    return max(-TIME_MS_MAX, min(int(value * MILLISECONDS), TIME_MS_MAX))


def _subject(claims: Claims, name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip():
        raise TokenRefused(f"the claim {name} is missing or empty")
    return value


def _scopes(claims: Claims, name: str, *, is_required: bool) -> list[str]:
    value = claims.get(name)
    scopes = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    is_wrong = any(not isinstance(scope, str) or not scope.strip() for scope in scopes)
    if is_required and (is_wrong or len(set(scopes)) != len(scopes)):
        raise TokenRefused(f"the claim {name} has empty or repeated scopes")
    return [scope.strip() for scope in scopes if isinstance(scope, str)]


@dataclass(frozen=True, slots=True)
class UnsecuredValidator:
    """Tokens without a signature. Its fields are the options `unsecuredValidator...` of the JAAS module."""

    subject_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    skew_ms: int = 0

    def validate(self, token: str, now_ms: int) -> BearerToken:
        """As `Validator.validate`."""
        header, _, rest = token.partition(".")
        payload, dot, signature = rest.partition(".")
        if not header or not payload or not dot or signature:
            raise TokenRefused("an unsecured token has two parts and an empty signature")
        if decode_part(header).get("alg") != "none":
            raise TokenRefused("an unsecured token must have the algorithm none")
        claims = decode_part(payload)
        subject, expires_ms = _subject(claims, self.subject_claim), _time_ms(claims, "exp")
        if now_ms - self.skew_ms >= expires_ms:
            raise TokenRefused("the token has expired")
        if claims.get("iat") is not None:
            issued_ms = _time_ms(claims, "iat")
            if issued_ms > now_ms + self.skew_ms:
                raise TokenRefused("the token is issued in the future")
            if expires_ms <= issued_ms:
                raise TokenRefused("the token expires before it was issued")
        has = _scopes(claims, self.scope_claim, is_required=False)
        if missing := [scope for scope in self.required_scope if scope not in has]:
            raise TokenRefused(f"the token lacks the scope {missing[0]!a}", f"[{', '.join(self.required_scope)}]")
        return BearerToken(subject, expires_ms)
