"""What a stranger sends before a login: SASL messages, tokens, key sets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

from joserfc import jwk

from kpybroker.broker.security.jwks import JwksUnavailable, parse_keys
from kpybroker.broker.security.scram_users import parse_initial_users
from kpybroker.core.security.sasl.bearer_tokens import UnsecuredValidator
from kpybroker.core.security.sasl.mechanism import LoginFailed
from kpybroker.core.security.sasl.oauthbearer import TokenRefused, parse_first_message
from kpybroker.core.security.sasl.plain import PlainMechanism, of_users
from kpybroker.core.security.sasl.scram_login import ScramServer
from kpybroker.core.security.scram import (
    ScramMechanism,
    client_proof,
    make_credential,
    parse_credential,
    salted_password,
)
from kpybroker.core.security.secret import Secret
from tests.fuzz.target import Target, of_text, texts

NOW_MS = 1_700_000_000_000
NONCE = "fyko+d2lbbFgONRv9qkxdawL"
SALT, ITERATIONS = b"salt", 4096
CREDENTIAL = make_credential(ScramMechanism.SHA_256, "pencil", SALT, ITERATIONS)


def scram(data: bytes) -> None:
    """A first message, and after a NUL a final one."""
    first, _, final = data.partition(b"\0")
    server = ScramServer(
        ScramMechanism.SHA_256, lambda name: CREDENTIAL if name == "user" else None, lambda: NONCE, b"key"
    )
    login = server.begin()
    login.step(first, NOW_MS)
    login.step(final, NOW_MS)


def scrams() -> Iterable[bytes]:
    """A login with the password, and one with a token that there is not."""
    first = "n=user,r=abc"
    offered = f"r=abc{NONCE},s={base64.b64encode(SALT).decode()},i={ITERATIONS}"
    final = f"c=biws,r=abc{NONCE}"
    salted = salted_password(ScramMechanism.SHA_256, "pencil", SALT, ITERATIONS)
    proof = client_proof(ScramMechanism.SHA_256, salted, f"{first},{offered},{final}".encode())
    yield f"n,,{first}\0{final},p={base64.b64encode(proof).decode()}".encode()
    yield b"y,a=b,n=u=2C,r=x,tokenauth=true\0c=eSw="


def plain(data: bytes) -> None:
    PlainMechanism(of_users({"user": Secret("password")})).begin().step(data, NOW_MS)


def bearer(data: bytes) -> None:
    """A first message with a token that has no signature."""
    UnsecuredValidator().validate(parse_first_message(data).token, NOW_MS)


def bearers() -> Iterable[bytes]:
    parts = ({"alg": "none"}, {"sub": "a", "exp": 2_000_000_000, "iat": 1, "scope": ["x"]})
    token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    yield f"n,a=b,\x01auth=Bearer {token}.\x01key=value\x01\x01".encode()
    yield f"n,,\x01auth=Bearer {token}.\x01\x01".encode()


def key_sets() -> Iterable[bytes]:
    """One key of each kind that there is."""
    made = (
        jwk.ECKey.generate_key("P-256", private=False),
        jwk.RSAKey.generate_key(2048, private=False),
        jwk.OKPKey.generate_key("Ed25519", private=False),
        jwk.OctKey.generate_key(256),
    )
    for key in made:
        yield json.dumps({"keys": [{**key.as_dict(), "use": "sig", "kid": "1"}]}).encode()


TARGETS = (
    Target(
        "scram",
        scram,
        (LoginFailed,),
        scrams,
        ("kpybroker.core.security.sasl.scram_login", "kpybroker.core.security.scram"),
    ),
    Target("plain", plain, (LoginFailed,), lambda: [b"\0user\0password"], ("kpybroker.core.security.sasl.plain",)),
    Target(
        "bearer-tokens",
        bearer,
        (LoginFailed, TokenRefused),
        bearers,
        ("kpybroker.core.security.sasl.oauthbearer", "kpybroker.core.security.sasl.bearer_tokens"),
    ),
    Target("key-sets", parse_keys, (JwksUnavailable,), key_sets, ("kpybroker.broker.security.jwks",)),
    Target(
        "scram-credentials",
        of_text(parse_credential),
        (ValueError,),
        texts("salt=AAAA,stored_key=AAAA,server_key=AAAA,iterations=4096"),
        ("kpybroker.core.security.scram",),
    ),
    Target(
        "initial-users",
        of_text(parse_initial_users),
        (ValueError,),
        texts("SCRAM-SHA-256=[name=alice,password=secret,iterations=8192],SCRAM-SHA-512=[name=b,password=c]"),
        ("kpybroker.broker.security.scram_users",),
    ),
)
