"""The client's side of OAUTHBEARER: its message, and tokens that it makes itself.

`UnsecuredTokens` is Kafka's `OAuthBearerUnsecuredLoginCallbackHandler`: the claims are options of the JAAS module, and
nothing is signed. It is for development only.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kpybroker.core.security.sasl.bearer_tokens import MILLISECONDS, decode_part
from kpybroker.core.security.sasl.oauthbearer import CONFIRMED as CONFIRMED
from kpybroker.core.security.sasl.oauthbearer import SEPARATOR, TokenRefused

LIFETIME: Final = "unsecuredLoginLifetimeSeconds"
LIFETIME_S: Final = 3600
UNSECURED_EXTENSION: Final = "unsecuredLoginExtension_"
EXTENSION: Final = "extension_"
RESERVED: Final = frozenset({"exp", "iat"})
"""Claims that the lifetime decides; options for them have no effect."""
_TOKEN: Final = re.compile(r"[-_.a-zA-Z0-9]+")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")


class Lifetime(NamedTuple):
    """When a token was issued and when it expires, in milliseconds since the epoch."""

    issued_ms: int
    expires_ms: int


def is_token(text: str) -> bool:
    """Whether it can be sent as a token."""
    return _TOKEN.fullmatch(text) is not None


def lifetime_of(token: str) -> Lifetime | None:
    """What the token says, without a check of its signature; None where it says nothing, as opaque tokens do."""
    try:
        claims = decode_part(token.split(".")[1])
        return Lifetime(*(int(float(claims[name]) * MILLISECONDS) for name in ("iat", "exp")))
    except (TokenRefused, IndexError, KeyError, TypeError, ValueError, OverflowError):
        return None


def first_message(token: str, extensions: Mapping[str, str]) -> bytes:
    """The message that `oauthbearer.parse_first_message` reads."""
    pairs = "".join(f"{name}={value}{SEPARATOR}" for name, value in extensions.items())
    return f"n,,{SEPARATOR}auth=Bearer {token}{SEPARATOR}{pairs}{SEPARATOR}".encode()


def extensions_of(options: Mapping[str, str], prefix: str) -> Mapping[str, str]:
    """SASL extensions (KIP-342): the options that begin with `prefix`. Raises ValueError, with the option's name."""
    found = {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
    for name, value in found.items():
        if name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
            raise ValueError(f"the option {prefix}{name} is no valid SASL extension")
    return found


def _number(text: str) -> float:
    number = float(text)
    json.dumps(number, allow_nan=False)
    return number


def _list(text: str) -> list[str]:
    return text[1:].split(text[0]) if len(text) > 1 else []


_CLAIMS: Final[Mapping[str, Any]] = {
    "unsecuredLoginStringClaim_": str,
    "unsecuredLoginNumberClaim_": _number,
    "unsecuredLoginListClaim_": _list,
}
"""Prefix of an option -> what makes a claim's value of the option's. The first character of a list is its separator."""


@dataclass(frozen=True, slots=True)
class UnsecuredTokens:
    """Makes tokens without a signature, with these claims."""

    claims: Mapping[str, Any]
    lifetime_s: int

    def make(self, now_ms: int) -> str:
        """A token that is valid from now on."""
        times = {"exp": now_ms / MILLISECONDS + self.lifetime_s, "iat": now_ms / MILLISECONDS}
        return f"{_encoded({'alg': 'none'})}.{_encoded({**self.claims, **times})}."


def unsecured_tokens(options: Mapping[str, str]) -> UnsecuredTokens | None:
    """By the options `unsecuredLogin...` of a JAAS module; None where none of them is about a token.

    Raises ValueError, which says what is wrong with which option.
    """
    claims: dict[str, Any] = {}
    for name, text in options.items():
        for prefix, value_of in _CLAIMS.items():
            claim = name.removeprefix(prefix)
            if claim != name and claim not in RESERVED:
                try:
                    claims[claim] = value_of(text)
                except ValueError:
                    raise ValueError(f"the option {name} is no number") from None
    principal = options.get("unsecuredLoginPrincipalClaimName", "").strip() or "sub"
    lifetime = options.get(LIFETIME, "").strip() or str(LIFETIME_S)
    if not claims and LIFETIME not in options:
        return None
    if not str(claims.get(principal, "")).strip():
        raise ValueError(f"the option unsecuredLoginStringClaim_{principal} is missing or empty")
    if not lifetime.isdecimal() or int(lifetime) == 0:
        raise ValueError(f"the option {LIFETIME} is no number of seconds")
    return UnsecuredTokens(claims, int(lifetime))


def _encoded(values: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")
