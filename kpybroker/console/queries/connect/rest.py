"""`Connect`: one Connect cluster's REST, by the address of any of its workers. Bounded in time and size.

What a plugin says of its keys is remembered for a while, since it is the same until the workers restart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.connect.visible import visible
from kpybroker.client.schemas import http
from kpybroker.console.options import ConnectAddress

STEP_S_MAX: Final = 4.0
"""To connect, and for the first byte: a plugin that checks a login needs a moment."""
WHOLE_S_MAX: Final = 8.0
"""All requests of one page, together."""
BYTES_MAX: Final = 16 * 1024 * 1024
MESSAGE_MAX: Final = 2000
NOT_FOUND: Final = "CONNECTOR_NOT_FOUND"
"""As the name of an error: there is no such connector."""
DONE: Final = frozenset((200, 201, 202, 204))
DENIED: Final = frozenset((http.UNAUTHORIZED, http.FORBIDDEN))
BAD_REQUEST: Final = 400
NO_METHOD: Final = 405
CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
KEPT_S: Final = 300.0
KEPT_MAX: Final = 200
"""Classes whose keys are remembered."""


class ConnectError(CommandError):
    """What Kafka Connect refuses, with the status of its response."""

    def __init__(self, cause: str, fix: str, status: int, exit_code: int = 1) -> None:
        super().__init__(cause, fix, exit_code, name=NOT_FOUND if status == http.NOT_FOUND else "")
        self.status = status


class Key(NamedTuple):
    """What a plugin says of one key of its configuration."""

    name: str
    type: str
    default: str | None
    is_required: bool
    importance: str
    meaning: str
    display_name: str


class Connect:
    """Of any threads. `url` is without the login."""

    def __init__(self, name: str, url: str) -> None:
        parts = urlsplit(http.check_address("--connect", url))
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else None
        self.name = name
        self.url = http.shown(parts.geturl())
        self._client = http.new_client(login, STEP_S_MAX)
        self._lock = threading.Lock()
        self._keys: dict[str, tuple[float, Sequence[Key]]] = {}

    def asking(self) -> Asking:
        """For one page: its requests share WHOLE_S_MAX."""
        return Asking(self, time.monotonic() + WHOLE_S_MAX)

    def exchange(self, method: str, path: str, whole_s: float, body: Any) -> tuple[int, Any]:
        """The status of a response and its JSON. Raises CommandError."""
        bounds = http.Bounds(BYTES_MAX, whole_s, "application/json")
        return http.exchange(self._client, method, self.url + path, bounds, body)

    def known(self, java_class: str) -> Sequence[Key] | None:
        """The keys of a plugin that are remembered."""
        with self._lock:
            found = self._keys.get(java_class)
            return None if found is None or time.monotonic() - found[0] > KEPT_S else found[1]

    def remember(self, java_class: str, keys: Sequence[Key]) -> None:
        """The keys of a plugin; the oldest are forgotten first."""
        with self._lock:
            self._keys.pop(java_class, None)
            self._keys[java_class] = time.monotonic(), keys
            while len(self._keys) > KEPT_MAX:
                self._keys.pop(next(iter(self._keys)))

    def strange(self) -> CommandError:
        """The error of a response that Kafka Connect would not send."""
        return CommandError(f"{self.url} is no Kafka Connect's REST", "check the address of --connect")


class Asking:
    """The requests of one page, which end together."""

    def __init__(self, connect: Connect, deadline: float) -> None:
        self.connect = connect
        self._deadline = deadline

    def ask(self, method: str, path: str, kind: type | None = None, body: Any = None) -> Any:
        """The JSON of a response, which is of this kind where one is named. Raises CommandError."""
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            cause = f"{self.connect.url} did not respond within {WHOLE_S_MAX:g} seconds"
            raise CommandError(cause, "look at the workers' logs; load the page again")
        status, found = self.connect.exchange(method, path, left_s, body)
        if status in DONE and (kind is None or isinstance(found, kind)):
            return found
        if status in DENIED:
            raise http.BadStatus(self.connect.url + path, status)
        if status in DONE or not isinstance(found, dict) or not isinstance(found.get("message"), str):
            raise self._without_words(status)
        raise _refused(status, visible(found["message"])[:MESSAGE_MAX])

    def _without_words(self, status: int) -> CommandError:
        if status == NO_METHOD:
            cause = f"{self.connect.url} is a Kafka Connect that does not have this"
            return ConnectError(cause, "use a newer one", status)
        return self.connect.strange()

    def optional(self, path: str, kind: type) -> Any:
        """The JSON of what older ones do not have; None there. Raises CommandError."""
        try:
            return self.ask("GET", path, kind)
        except ConnectError as error:
            if error.status in (http.NOT_FOUND, NO_METHOD):
                return None
            raise

    def keys(self, java_class: str, *, is_connector: bool) -> Sequence[Key] | None:
        """What a plugin says of its keys; None where it does not. Raises CommandError.

        A connector is asked to check an empty configuration, since that has the keys that all connectors have, too, and
        versions before Kafka 3.2 have nothing else. Where its check fails, and for other plugins, it lists its own.
        """
        found = self.connect.known(java_class)
        if found is None:
            given = self._definitions(java_class) if is_connector else None
            if given is None:
                given = self.optional(f"/connector-plugins/{quote(java_class, safe='')}/config", list)
            if given is None:
                return None
            try:
                found = [key_of(one) for one in given]
            except (KeyError, TypeError, AttributeError):
                raise self.connect.strange() from None
            self.connect.remember(java_class, found)
        return found

    def _definitions(self, java_class: str) -> list[Any] | None:
        try:
            path = f"/connector-plugins/{quote(java_class, safe='')}/config/validate"
            found = self.ask("PUT", path, dict, {"connector.class": java_class})
        except ConnectError:
            return None
        try:
            return [one["definition"] for one in found["configs"]]
        except (KeyError, TypeError):
            raise self.connect.strange() from None

    def config(self, name: str) -> dict[str, str]:
        """The configuration of a connector, with its secrets. Raises CommandError."""
        return texts(self.ask("GET", f"{path_of(name)}/config", dict))


def _refused(status: int, message: str) -> ConnectError:
    if status == CONFLICT:
        return ConnectError(f"Kafka Connect cannot do this now: {message}", "try again in a few seconds", status)
    if status in (BAD_REQUEST, UNPROCESSABLE):
        return ConnectError(message, "correct the configuration", status, 2)
    fix = "see which there are: Connect" if status == http.NOT_FOUND else "look at the workers' logs"
    return ConnectError(f"{message} (status {status})", fix, status)


def key_of(given: Mapping[str, Any]) -> Key:
    """A key of a plugin, from its JSON. Raises KeyError or TypeError for what is none."""
    default = given.get("default_value")
    return Key(
        str(given["name"]),
        str(given.get("type") or "STRING"),
        None if default is None else str(default),
        bool(given.get("required")),
        str(given.get("importance") or ""),
        visible(str(given.get("documentation") or "")),
        visible(str(given.get("display_name") or given["name"])),
    )


def path_of(name: str) -> str:
    """The path of a connector."""
    return f"/connectors/{quote(name, safe='')}"


def texts(given: Mapping[str, Any]) -> dict[str, str]:
    """A configuration as texts: numbers and words of JSON as Connect reads them."""
    return {
        str(key): value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in given.items()
        if value is not None
    }


def connects_of(addresses: Sequence[ConnectAddress]) -> dict[str, Connect]:
    """Every Connect cluster by its name. Raises CommandError."""
    found: dict[str, Connect] = {}
    for one in addresses:
        if one.name in found:
            raise usage(f"--connect names {one.name} twice", "write NAME=URL, each with a name of its own")
        found[one.name] = Connect(one.name, one.url)
    return found
