"""SCRAM credentials (RFC 5802) in Kafka's format, and the arithmetic of both sides of a login.

The primitives are the standard library's, which are OpenSSL's: `hashlib.pbkdf2_hmac` and `hmac`. A credential holds no
password: `stored_key` checks a client's proof, `server_key` proves the server to the client. As in Kafka, names and
passwords are used as UTF-8, without SASLprep.

Limits are Kafka's: `MIN_ITERATIONS` for every credential, `MAX_ITERATIONS` for those of AlterUserScramCredentials.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
SALT_BITS = 130
"""Of a salt that is made here."""
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
_OWN_SALT = re.compile(rb"[0-9a-z]{25,26}")


class ScramMechanism(Enum):
    """The two mechanisms: (Kafka's type code in requests, the name of the hash)."""

    SHA_256 = (1, "sha256")
    SHA_512 = (2, "sha512")

    @property
    def type_code(self) -> int:
        """``ScramMechanism.type`` of the admin requests."""
        return self.value[0]

    @property
    def hash_name(self) -> str:
        """The name that `hashlib` knows."""
        return self.value[1]

    @property
    def mechanism_name(self) -> str:
        """`SCRAM-SHA-256`, also the key of its credentials in `/config/users`."""
        return f"SCRAM-SHA-{self.hash_name[3:]}"

    @property
    def size(self) -> int:
        """Bytes of a hash, and so of every key, signature and proof."""
        return int(self.hash_name[3:]) // 8


BY_NAME = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
BY_TYPE = {mechanism.type_code: mechanism for mechanism in ScramMechanism}


@dataclass(frozen=True, slots=True, repr=False)
class ScramCredential:
    """What a server keeps of a user's password. Its repr shows no key."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


class SaltForm(NamedTuple):
    """What anyone sees of a credential who asks for it: its iterations, and the form of its salt.

    `size` None: as `salt_of` makes it, which is in two sizes. Else so many bytes, of text or not.
    """

    size: int | None = None
    is_text: bool = True
    iterations: int = MIN_ITERATIONS


def form_of(credential: ScramCredential) -> SaltForm:
    """That of a credential."""
    salt = credential.salt
    size = None if _OWN_SALT.fullmatch(salt) else len(salt)
    return SaltForm(size, salt.isascii(), credential.iterations)


def salt_of(number: int) -> bytes:
    """A salt in the form of Kafka's tools (``ScramFormatter.secureRandomBytes``): `SALT_BITS` random bits in base 36.

    It has 26 digits, or 25.
    """
    digits = bytearray()
    for _ in range(26):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits)).lstrip(b"0").rjust(25, b"0")


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """RFC 5802's SaltedPassword: takes about a millisecond for 4096 iterations."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(mechanism: ScramMechanism, salt: bytes, salted: bytes, iterations: int) -> ScramCredential:
    """The credential of a salted password, which AlterUserScramCredentials sends."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", mechanism.hash_name), iterations)


def make_credential(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
    """The credential of a password."""
    return credential_of(mechanism, salt, salted_password(mechanism, password, salt, iterations), iterations)


# --- Kafka's text


def format_credential(credential: ScramCredential) -> str:
    """The value in `/config/users`: Kafka's ``ScramCredentialUtils.credentialToString``, byte for byte."""
    return (
        f"salt={_base64(credential.salt)},stored_key={_base64(credential.stored_key)},"
        f"server_key={_base64(credential.server_key)},iterations={credential.iterations}"
    )


def parse_credential(text: str) -> ScramCredential:
    """The reverse. Raises ValueError, which does not show the text."""
    fields = dict(item.split("=", 1) for item in text.split(",") if item.find("=") > 0)
    if fields.keys() != {"salt", "stored_key", "server_key", "iterations"} or text.count(",") != 3:
        raise ValueError("not a SCRAM credential: salt, stored_key, server_key and iterations expected")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        return ScramCredential(salt, stored_key, server_key, int(fields["iterations"]))
    except (binascii.Error, ValueError):
        raise ValueError("not a SCRAM credential: a field has an invalid value") from None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# --- a login


def is_proof_of(mechanism: ScramMechanism, credential: ScramCredential, auth_message: bytes, proof: bytes) -> bool:
    """Whether the client that sent `proof` knows the password. Takes the same time for every proof."""
    signature = hmac.digest(credential.stored_key, auth_message, mechanism.hash_name)
    client_key = bytes(a ^ b for a, b in zip(signature, proof.ljust(mechanism.size, b"\0"), strict=False))
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    return hmac.compare_digest(stored_key, credential.stored_key) and len(proof) == mechanism.size


def server_signature(mechanism: ScramMechanism, server_key: bytes, auth_message: bytes) -> bytes:
    """What proves to the client that the server knows its credential."""
    return hmac.digest(server_key, auth_message, mechanism.hash_name)


def client_proof(mechanism: ScramMechanism, salted: bytes, auth_message: bytes) -> bytes:
    """What proves to the server that the client knows the password."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    signature = hmac.digest(stored_key, auth_message, mechanism.hash_name)
    return bytes(a ^ b for a, b in zip(client_key, signature, strict=True))


# --- names in messages


def escape_name(name: str) -> str:
    """A user name as a `saslname`."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescape_name(sasl_name: str) -> str | None:
    """The user name of a `saslname`; None where an `=` escapes nothing."""
    if any(not part.startswith(("3D", "2C")) for part in sasl_name.split("=")[1:]):
        return None
    return sasl_name.replace("=2C", ",").replace("=3D", "=")
