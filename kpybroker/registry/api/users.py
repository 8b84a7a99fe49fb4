"""Users with hashed passwords, one `NAME:scrypt$...` a line of a file, and middleware that asks for a login (Basic).

Hashing is slow on purpose, so a login that was right is remembered, as a keyed hash, for as long as the process runs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kpybroker.client.connect.errors import usage

COST: Final = 2**14
BLOCK: Final = 8
SALT_BYTES: Final = 16
KNOWN_MAX: Final = 10_000
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"


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


class Login:
    """Middleware: a request without the right name and password is refused with 401."""

    def __init__(self, app: ASGIApp, users: Mapping[str, str]) -> None:
        self._app = app
        self._users = users
        self._key = secrets.token_bytes(32)
        self._known: set[bytes] = set()
        self._unknown = hashed(secrets.token_hex())
        """Hashed for unknown names, so that they take as long as known ones."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or await self._may_pass(Headers(scope=scope).get("authorization", "")):
            await self._app(scope, receive, send)
            return
        body = json.dumps({"error_code": 401, "message": "Unauthorized"})
        headers = {"content-type": CONTENT_TYPE, "www-authenticate": 'Basic realm="schema registry"'}
        await Response(body, 401, headers)(scope, receive, send)

    async def _may_pass(self, header: str) -> bool:
        mark = hmac.digest(self._key, header.encode(), "sha256")
        if mark in self._known:
            return True
        login = _credentials(header)
        if login is None:
            return False
        name, password = login
        is_known = await run_in_threadpool(is_right, password, self._users.get(name, self._unknown))
        if is_known and name in self._users:
            if len(self._known) < KNOWN_MAX:
                self._known.add(mark)
            return True
        return False


def _credentials(header: str) -> tuple[str, str] | None:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return (name, password) if colon else None
