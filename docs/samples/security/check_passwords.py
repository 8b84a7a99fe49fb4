"""A check of passwords for PLAIN: `check_passwords:check` in the broker's configuration."""

import hashlib
import hmac

HASHES = {
    # user name -> (salt, hash), made by hashlib.scrypt
    "dora": (
        bytes.fromhex("6b6e756d62657273616c74"),
        hashlib.scrypt(b"dora-secret", salt=bytes.fromhex("6b6e756d62657273616c74"), n=2**14, r=8, p=1),
    ),
}
NO_ONE = (b"salt", bytes(64))


def check(username: str, password: str) -> bool:
    """Runs in a thread, so it may take its time. An unknown user costs as much as a wrong password."""
    salt, expected = HASHES.get(username, NO_ONE)
    made = hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)
    return hmac.compare_digest(made, expected) and username in HASHES
