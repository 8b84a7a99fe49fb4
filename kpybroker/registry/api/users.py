"""Users with hashed passwords, one `NAME:scrypt$...` a line of a file."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path
from typing import Final

from kpybroker.client.connect.errors import usage

COST: Final = 2**14
BLOCK: Final = 8
SALT_BYTES: Final = 16


def hashed(password: str, salt: bytes | None = None) -> str:
    """What a file of users holds for a password."""
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    made = hashlib.scrypt(password.encode(), salt=salt, n=COST, r=BLOCK, p=1)
    return f"scrypt${COST}${BLOCK}${salt.hex()}${made.hex()}"


def is_right(password: str, stored: str) -> bool:
    """Whether this is the password; False for a hash that cannot be read."""
    try:
        _, cost, block, salt, wanted = stored.split("$")
        made = hashlib.scrypt(password.encode(), salt=bytes.fromhex(salt), n=int(cost), r=int(block), p=1)
    except ValueError:
        return False
    return hmac.compare_digest(made.hex(), wanted)


def load_users(file: str) -> dict[str, str]:
    """Hashes by name. Raises CommandError, which never holds a line of the file."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise usage(f"{file} cannot be read: {error}", "kpybroker registry --add-user NAME writes one") from None
    users = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, stored = line.strip().partition(":")
        if not (name and colon and stored.startswith("scrypt$") and stored.count("$") == 4):
            raise usage(
                f"line {number} of {file} is no NAME:scrypt$...", "kpybroker registry --add-user NAME writes it"
            )
        users[name] = stored
    if not users:
        raise usage(f"{file} holds no user", "kpybroker registry --add-user NAME writes one")
    return users


def add_user(file: str, name: str, password: str) -> None:
    """Write a user into a file, or another password for one. Raises CommandError."""
    if not name or ":" in name or not name.isprintable():
        raise usage(f"{name!r} cannot be a user's name", "a name is printable, and has no colon")
    if not password:
        raise usage("the password is empty", "write it to standard input")
    path = Path(file)
    kept = []
    try:
        if path.exists():
            kept = [line for line in path.read_text(encoding="utf-8").splitlines() if line.partition(":")[0] != name]
        path.touch(mode=0o600)
        path.write_text("".join(f"{line}\n" for line in [*kept, f"{name}:{hashed(password)}"]), encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise usage(f"{file} cannot be written: {error}", "name a file that this user may write") from None
