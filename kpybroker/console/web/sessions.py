"""Who may see the pages: sessions after a login with the password, and the tokens that forms carry against CSRF.

Sessions live in memory: a restart of the console ends them. Without a login every browser has a session too, for its
tokens only.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from kpybroker.core.doors.attempts import Attempts, Rules

COOKIE: Final = "kpybroker_console"
SESSION_S_MAX: Final = 12 * 3600.0
SESSIONS_MAX: Final = 1000
RULES: Final = Rules(of_address=10, of_name=None, per_s=60.0)
"""There is one password for all, so wrong ones count for their address alone."""


class Sessions:
    """`now` is a monotonic clock in seconds."""

    def __init__(self, password: str | None, now: Callable[[], float] = time.monotonic) -> None:
        self._password = None if password is None else password.encode()
        self._now = now
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._ends: OrderedDict[str, float] = OrderedDict()
        self._attempts = Attempts(RULES)

    def new_id(self) -> str:
        """An identifier for a browser that has none."""
        return secrets.token_urlsafe(32)

    def log_in(self, password: str, address: str) -> str | None:
        """The id of a new session; None for a wrong password."""
        if self._password is None or not hmac.compare_digest(password.encode(), self._password):
            with self._lock:
                self._attempts.failed(address, "", self._now())
            return None
        session = self.new_id()
        with self._lock:
            self._ends[session] = self._now() + SESSION_S_MAX
            while len(self._ends) > SESSIONS_MAX:
                self._ends.popitem(last=False)
        return session

    def wait_s(self, address: str) -> float:
        """How long a browser at this address has to wait before its password is looked at."""
        with self._lock:
            return self._attempts.wait_s(address, "", self._now())

    def is_logged_in(self, session: str | None) -> bool:
        """Whether the session exists and has not ended."""
        with self._lock:
            end = self._ends.get(session or "")
            return end is not None and self._now() < end

    def log_out(self, session: str | None) -> None:
        """End the session."""
        with self._lock:
            self._ends.pop(session or "", None)

    def token(self, session: str, place: str = "") -> str:
        """What forms of this session carry; of several clusters, those of one."""
        return hmac.new(self._key, f"{session} {place}".encode(), hashlib.sha256).hexdigest()

    def sign(self, session: str, text: str) -> str:
        """A signature of a text that a form of this session carries."""
        return hmac.new(self._key, f"{self.token(session)} {text}".encode(), hashlib.sha256).hexdigest()

    def is_signed(self, session: str | None, text: str, signature: str | None) -> bool:
        """Whether a text was signed for this session."""
        return bool(session and signature) and hmac.compare_digest(self.sign(session or "", text), signature or "")

    def is_token(self, session: str | None, token: str | None, place: str = "") -> bool:
        """Whether a form is of this session, and of this cluster."""
        return bool(session and token) and hmac.compare_digest(self.token(session or "", place), token or "")
