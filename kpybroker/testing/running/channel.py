"""A client of the control channel: method calls as HTTP requests, from any number of threads.

A call takes an idle connection or opens one, so that a call that waits for long is in no other's way.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kpybroker.testing.errors import BrokerGone, TestingError, UsageError, WaitTimeout

if TYPE_CHECKING:
    from http.client import HTTPConnection

CALL_S_MAX: Final = 60.0
IDLE_CONNECTIONS_MAX: Final = 8

MAKES_FAULTS: Final = frozenset(("add_fault", "load_faults", "disk_fault", "shrink_isr", "lag_follower"))
"""Methods that return the ids of faults."""

HOLDS: Final = {"cap_versions": "cap_versions", "pause": "resume", "partition_network": "heal_network"}
"""Methods that hold something back, with those that undo it."""
_BY_STATUS: Final[dict[int, type[TestingError]]] = {408: WaitTimeout, 500: TestingError}


class Channel:
    """`why_gone` is asked when the broker does not respond."""

    def __init__(self, host: str, port: int, why_gone: Callable[[], TestingError | None]) -> None:
        self.address: Final = (host, port)
        self.on_made: Callable[[int], None] = lambda fault_id: None
        """Receives the id of each fault that is made through this channel."""
        self.on_held: Callable[[str, dict[str, Any]], None] = lambda undo, arguments: None
        """Receives what undoes each call that holds something back."""
        self._why_gone = why_gone
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        self._pid = os.getpid()
        self._is_closed = False

    def call(self, method: str, /, *, wait_s: float = 0, **arguments: Any) -> Any:
        """The method's result. `wait_s`: how long the method itself may wait. Raises TestingError."""
        import json

        body = json.dumps(arguments).encode()
        status, data = self._exchange(f"/v1/{method}", body, wait_s + CALL_S_MAX)
        result = json.loads(data)
        if status == 200:
            if method in MAKES_FAULTS:
                for made in result if isinstance(result, list) else [result]:
                    self.on_made(made["id"])
            if method in HOLDS and (method != "cap_versions" or arguments.get("as_version") or arguments.get("apis")):
                self.on_held(HOLDS[method], {"broker": arguments["broker"]} if method == "pause" else {})
            return result
        error = result["error"]
        raise _BY_STATUS.get(status, UsageError)(error["cause"], error["fix"])

    def close(self) -> None:
        """Close the idle connections; those in use are closed when their calls end."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _exchange(self, path: str, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        from http.client import HTTPException

        connection, is_fresh = self._take(timeout_s)
        while True:
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                status, data = response.status, response.read()
            except TimeoutError as error:
                connection.close()
                raise TestingError(
                    f"{path} has not returned after {timeout_s:g} s", "look at the broker's log: broker.log()"
                ) from error
            except (OSError, HTTPException) as error:
                connection.close()
                if is_fresh:
                    raise self._gone(error) from error
                connection, is_fresh = self._new(timeout_s), True  # the idle connection had ended
            except BaseException:
                connection.close()
                raise
            else:
                self._give_back(connection)
                return status, data

    def _gone(self, error: Exception) -> TestingError:
        known = self._why_gone()
        return known or BrokerGone(f"the broker's control channel does not respond: {error}", "start it again")

    def _take(self, timeout_s: float) -> tuple[HTTPConnection, bool]:
        with self._lock:
            if self._pid != os.getpid():  # a fork: the connections are its parent's
                self._idle, self._pid = [], os.getpid()
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            return self._new(timeout_s), True
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        return connection, False

    def _new(self, timeout_s: float) -> HTTPConnection:
        from http.client import HTTPConnection

        return HTTPConnection(*self.address, timeout=timeout_s)

    def _give_back(self, connection: HTTPConnection) -> None:
        with self._lock:
            is_kept = not self._is_closed and connection.sock is not None and len(self._idle) < IDLE_CONNECTIONS_MAX
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()
