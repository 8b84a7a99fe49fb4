"""Plays conversations against a registry, and makes responses of two registries comparable.

Ids and times become words: `#1` is the first id that the conversation saw. So two registries that have given away other
ids before say the same. Guids stay: they depend on the schema alone.
"""

from __future__ import annotations

import http.client
import json
import re
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from compat_tests.registry.differential.step import JSON_TYPE, Conversation, Step

TIMEOUT_S: Final = 180.0
NAMED: Final = re.compile(r"@(g?)(\d+)")
NO_ID: Final = "88888"
NO_GUID: Final = "99999999-0000-0000-0000-000000000000"


class Response(NamedTuple):
    """A status, the type of the body without parameters, and the body: a JSON value, or text that is none."""

    status: int
    kind: str
    body: Any

    @property
    def line(self) -> str:
        """As it is recorded."""
        return json.dumps(list(self), separators=(",", ":"))

    @classmethod
    def of(cls, line: str) -> Response:
        """The reverse of `line`."""
        return cls(*json.loads(line))


class Player:
    """A connection to one registry."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)

    def play(self, conversation: Conversation) -> list[Response]:
        """The response to each step."""
        names = _Names()
        return [self._ask(step, names) for step in conversation.steps]

    def _ask(self, step: Step, names: _Names) -> Response:
        headers = {"Accept-Encoding": "identity", "Content-Type": JSON_TYPE, **step.headers}
        if step.content is None:
            headers.pop("Content-Type")
        content = None if step.content is None else step.content.encode()
        path = names.put_in(step.path).replace(" ", "%20")
        try:
            response, data = self._sent(step.method, path, content, headers)
        except ConnectionError:  # RemoteDisconnected is one too: it closed the connection after the response before
            response, data = self._sent(step.method, path, content, headers)
        kind = (response.headers.get("content-type") or "").partition(";")[0]
        return Response(response.status, kind, names.taken_from(step, _loaded(data)))

    def _sent(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            self._connection.request(method, path, content, headers)
            response = self._connection.getresponse()
            return response, response.read()
        except (http.client.HTTPException, OSError):
            self._connection.close()
            raise

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace") or None


class _Names:
    """What a conversation has seen: ids and guids, in the order in which they came."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._guids: list[str] = []

    def put_in(self, path: str) -> str:
        """With the ids and guids that the path names."""

        def found(match: re.Match[str]) -> str:
            known: list[Any] = self._guids if match[1] else self._ids
            number = int(match[2])
            missing = NO_GUID if match[1] else NO_ID
            return str(known[number - 1]) if number <= len(known) else missing

        return NAMED.sub(found, path)

    def taken_from(self, step: Step, value: Any) -> Any:
        """The body with words for what differs from registry to registry."""
        if "/referencedby" in step.path and isinstance(value, list):
            return sorted(self._id(one) if isinstance(one, int) else one for one in value)
        if step.path.startswith("/schemas/ids/") and isinstance(value, list):
            return sorted((self._worded(one) for one in value), key=str)
        return self._worded(value)

    def _worded(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._worded(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {key: self._word(key, one) for key, one in value.items()}

    def _word(self, key: str, value: Any) -> Any:
        match key, value:
            case "id", int():
                return self._id(value)
            case "guid", str():
                if value not in self._guids:
                    self._guids.append(value)
                return value
            case "ts", int() if value > 1_000_000_000_000:
                return "time"
            case "maxId", int():
                return "number"
            case "message", str():
                return self._in_message(value)
        return self._worded(value)

    def _in_message(self, text: str) -> str:
        for number, one in enumerate(self._ids, 1):
            text = re.sub(rf"\b(Schema |id |id=|ID ){one}\b", rf"\g<1>#{number}", text)
        return text

    def _id(self, value: int) -> str:
        if value not in self._ids:
            self._ids.append(value)
        return f"#{self._ids.index(value) + 1}"
