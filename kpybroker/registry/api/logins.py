"""Middleware that asks for a login (Basic), and what a login costs.

Hashing a password is slow on purpose, and takes 16 MiB. So it is done by few threads, which do nothing else; few wait
for them, and of one address fewer; wrong passwords are throttled (`core.doors.attempts`). A login that was right is
remembered, as a keyed hash, and never waits: neither for others' guesses, nor behind them.
"""

from __future__ import annotations

import base64
import hmac
import json
import math
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from anyio import CapacityLimiter, Event, to_thread
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kpybroker.core.doors.attempts import Attempts
from kpybroker.core.doors.crowd import network_of
from kpybroker.registry.api.users import hashed, is_right

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
KNOWN_MAX: Final = 10_000
HASHING_MAX: Final = 2
"""Threads that hash."""
WAITING_MAX: Final = 64
WAITING_OF_ADDRESS_MAX: Final = 8
"""Those that are hashed included. A right login that many connections of a client send at once is one."""
BUSY_S: Final = 1
"""What a client is asked to wait where there is no room."""


class _Credentials(NamedTuple):
    name: str
    password: str


class Login:
    """Middleware: a request without the right name and password is refused, with 401, or 429 where it has to wait."""

    def __init__(self, app: ASGIApp, users: Mapping[str, str], now: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._users = users
        self._now = now
        self._key = secrets.token_bytes(32)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._unknown = hashed(secrets.token_hex())
        """Hashed for unknown names, so that they take as long as known ones."""
        self._attempts = Attempts()
        self._hashing = _Hashing()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, or refuse it."""
        if scope["type"] == "http":
            address = (scope.get("client") or ("",))[0]
            wait_s = await self._wait_s(address, Headers(scope=scope).get("authorization", ""))
            if wait_s is not None:
                await _refusal(wait_s)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _wait_s(self, address: str, header: str) -> float | None:
        """None for a right login, 0 for a wrong one, else how long it has to wait."""
        login = _credentials(header)
        if login is None:
            return 0
        mark = hmac.digest(self._key, f"{login.name}:{login.password}".encode(), "sha256")
        if mark in self._known:
            self._known.move_to_end(mark)
            return None
        # Not the name itself: a stranger's may be long, and is kept.
        name = hmac.digest(self._key, login.name.encode(), "sha256").hex()
        wait_s = self._attempts.wait_s(address, name, self._now())
        if wait_s > 0:
            return wait_s
        stored = self._users.get(login.name, self._unknown)
        is_known = await self._hashing.run(network_of(address), mark, lambda: is_right(login.password, stored))
        if is_known is None:
            return BUSY_S
        if is_known and login.name in self._users:
            self._remember(mark)
            self._attempts.succeeded(address, name, self._now())
            return None
        self._attempts.failed(address, name, self._now())
        return 0

    def _remember(self, mark: bytes) -> None:
        self._known[mark] = None
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)


class _Hashing:
    """The threads that hash, and who waits for them."""

    def __init__(self) -> None:
        self._limiter: CapacityLimiter | None = None  # it belongs to an event loop
        self._running: dict[bytes, _Run] = {}
        self._of_address: Counter[str] = Counter()

    async def run(self, address: str, mark: bytes, work: Callable[[], bool]) -> bool | None:
        """What `work` returns, in one of the threads; None where too many wait. The same `mark` is worked on once."""
        known = self._running.get(mark)
        if known is not None:
            await known.is_done.wait()
            return known.result
        if len(self._running) >= WAITING_MAX or self._of_address[address] >= WAITING_OF_ADDRESS_MAX:
            return None
        if self._limiter is None:
            self._limiter = CapacityLimiter(HASHING_MAX)
        one = self._running[mark] = _Run()
        self._of_address[address] += 1
        try:
            one.result = await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            one.is_done.set()
            del self._running[mark]
            self._of_address[address] -= 1
            self._of_address += Counter()  # forget those of no one
        return one.result


class _Run:
    def __init__(self) -> None:
        self.is_done = Event()
        self.result: bool | None = None


def _refusal(wait_s: float) -> Response:
    if wait_s > 0:
        body = {"error_code": 429, "message": "Too many logins: try again later"}
        return Response(json.dumps(body), 429, {"content-type": CONTENT_TYPE, "retry-after": str(math.ceil(wait_s))})
    headers = {"content-type": CONTENT_TYPE, "www-authenticate": 'Basic realm="schema registry"'}
    return Response(json.dumps({"error_code": 401, "message": "Unauthorized"}), 401, headers)


def _credentials(header: str) -> _Credentials | None:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return _Credentials(name, password) if colon else None
