"""SASL of a client, for the requests that do not go through librdkafka: PLAIN (RFC 4616) and SCRAM (RFC 5802).

A mechanism is a generator of the client's messages, which is sent the server's. Names and passwords are sent as they
are: SASLprep changes only characters that few of them have, and librdkafka does not apply it either.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator, Mapping
from typing import Final

from kpybroker.client.connect.errors import CommandError, usage

Exchange = Generator[bytes, bytes, None]
SCRAM: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
KNOWN: Final = ("PLAIN", *SCRAM)


def mechanism(properties: Mapping[str, str]) -> str:
    """The configured mechanism; GSSAPI is librdkafka's default."""
    return properties.get("sasl.mechanism", "GSSAPI").upper()


def is_known(properties: Mapping[str, str]) -> bool:
    """Whether `exchange` has the configured mechanism."""
    return mechanism(properties) in KNOWN


def exchange(properties: Mapping[str, str]) -> Exchange:
    """The messages of a login with the configured mechanism. Raises CommandError for one that is not here."""
    name = mechanism(properties)
    if name not in KNOWN:
        raise usage(f"this command cannot log in with sasl.mechanism={name}", "use PLAIN, SCRAM-SHA-256 or -512")
    missing = [key for key in ("sasl.username", "sasl.password") if key not in properties]
    if missing:
        raise usage(f"{name} needs {' and '.join(missing)}", "set them in --command-config")
    user, password = properties["sasl.username"], properties["sasl.password"]
    return plain(user, password) if name == "PLAIN" else scram(SCRAM[name], user, password, secrets.token_urlsafe(24))


def plain(user: str, password: str) -> Exchange:
    """One message with both."""
    yield f"\0{user}\0{password}".encode()


def scram(digest: str, user: str, password: str, nonce: str) -> Exchange:
    """Two messages; the server's proof is checked. Raises CommandError if it is wrong."""
    name = user.replace("=", "=3D").replace(",", "=2C")
    first_bare = f"n={name},r={nonce}"
    server_first = (yield f"n,,{first_bare}".encode()).decode()
    fields = _fields(server_first)
    if "e" in fields:
        raise CommandError(f"the login was refused: {fields['e']}", "check the user name and the password")
    if not fields.get("r", "").startswith(nonce):
        raise CommandError("the broker's SCRAM nonce is not an extension of ours", "check who runs at this address")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    without_proof = f"c=biws,r={fields['r']}"
    message = f"{first_bare},{server_first},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = (yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()).decode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
    if not hmac.compare_digest(_fields(server_final).get("v", ""), base64.b64encode(expected).decode()):
        raise CommandError("the broker does not know the password's hash either", "check who runs at this address")


def _fields(message: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in message.split(","))
