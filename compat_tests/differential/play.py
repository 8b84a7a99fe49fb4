"""Plays a script on one broker over bare sockets and returns its responses, as plain values."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compat_tests.differential.messages import FALLBACK_VERSION, plain_response, request_frame
from compat_tests.differential.script import Ask, Close, Frame, Response, ResponseTo, Script, at, fill_in
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.wire.api import ApiKey

RESPONSE_DEADLINE_S = 60.0
UNTIL_DEADLINE_S = 180.0
UNTIL_PAUSE_S = 0.02
IDENTIFIED = {
    ApiKey.PRODUCE: (13, "topic_data"),
    ApiKey.OFFSET_COMMIT: (10, "topics"),
    ApiKey.OFFSET_FETCH: (10, "groups"),
}
"""The versions from which requests have no names of topics but ids, and where: a step that names one gets its id."""
NO_SUCH_TOPIC = b"\x01" * 16
GAVE_UP = "not within the limit"
"""In place of a response that a step waited for."""
CLOSED: dict[str, Any] = {"the broker": "closed the connection"}
SILENT: dict[str, Any] = {"the broker": f"did not respond within {RESPONSE_DEADLINE_S} s"}


@dataclass(frozen=True, slots=True)
class Heard:
    """One step's response; `api` is None where it could not be understood as any."""

    label: str
    api: ApiKey | None
    response: dict[str, Any]


class _Connection:
    """One socket. `pending` are the requests whose responses were not read yet."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), RESPONSE_DEADLINE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending: list[tuple[ApiKey, int, int]] = []

    def send(self, frame: bytes) -> None:
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes | None:
        """The next frame, or None at the connection's end. Raises TimeoutError."""
        head = self._exactly(4)
        return None if head is None else self._exactly(struct.unpack(">i", head)[0])

    def _exactly(self, count: int) -> bytes | None:
        received = bytearray()
        while len(received) < count:
            try:
                piece = self._socket.recv(count - len(received))
            except ConnectionError:
                return None
            if not piece:
                return None
            received += piece
        return bytes(received)

    def close(self) -> None:
        self._socket.close()


class Player:
    """Plays one script in one version on the broker at `port`. Connections are opened when first used."""

    def __init__(self, port: int, script: Script, version: int, names: Mapping[str, Any]) -> None:
        self._port = port
        self._script = script
        self._version = version
        self._names = dict(names)
        self._topic_ids: dict[str, bytes] = {}
        self._connections: dict[str, _Connection] = {}
        self._correlation_id = 0

    def play(self) -> list[Heard]:
        try:
            return [heard for number, step in enumerate(self._script.steps) if (heard := self._step(number, step))]
        finally:
            for connection in self._connections.values():
                connection.close()

    def _step(self, number: int, step: Ask | ResponseTo | Frame | Close) -> Heard | None:
        if isinstance(step, Close):
            self._drop(step.on)
            return None
        if isinstance(step, ResponseTo):
            api, version, _ = self._connections[step.on].pending[0]
            response = self._response(step.on)
            self._bind(step.bind, response)
            return Heard(f"step {number}: response to {api.name} v{version} on {step.on}", api, response)
        if isinstance(step, Frame):
            return Heard(f"step {number}: {step.what}", None, self._frame(step))
        version = self._script.version_of(step, self._version)
        if step.response is not Response.NOW:
            self._send(step, version)
            return None
        began = time.monotonic()
        response = self._ask(step, version)
        self._learn_ids(response)
        if step.waits_ms is not None:
            response["waited"] = time.monotonic() - began >= step.waits_ms / 1000
        self._bind(step.bind, response)
        waits_only = not step.compared and _holds_all(response, step.until, self._names)
        return None if waits_only else Heard(f"step {number}: {step.api.name} v{version}", step.api, response)

    def _ask(self, step: Ask, version: int) -> dict[str, Any]:
        deadline = time.monotonic() + UNTIL_DEADLINE_S
        while True:
            self._send(step, version)
            response = self._response(step.on)
            for path, condition in (step.only or {}).items():
                _keep(response, path, fill_in(condition, self._names))
            if _holds_all(response, step.until, self._names):
                return response
            if time.monotonic() > deadline:
                return {GAVE_UP: dict(step.until or {}), "last response": response}
            time.sleep(UNTIL_PAUSE_S)

    def _learn_ids(self, response: Mapping[str, Any]) -> None:
        """The newest id of each topic that a response identifies."""
        for topic in response.get("topics") or ():
            if isinstance(topic, dict) and topic.get("name") and any(topic.get("topic_id", b"")):
                self._topic_ids[topic["name"]] = topic["topic_id"]

    def _with_ids(self, fields: Any) -> Any:
        """Requests' topics that have a name and no id get the id by which the topic was last known."""
        if isinstance(fields, list):
            return [self._with_ids(one) for one in fields]
        if not isinstance(fields, dict):
            return fields
        found = {key: self._with_ids(value) for key, value in fields.items()}
        if "name" in found and "topic_id" not in found:
            found["topic_id"] = self._topic_ids.get(found["name"], NO_SUCH_TOPIC)
        return found

    def _connection(self, name: str) -> _Connection:
        if name not in self._connections:
            self._connections[name] = _Connection(self._port)
        return self._connections[name]

    def _drop(self, name: str) -> None:
        self._connections.pop(name).close()

    def _send(self, step: Ask, version: int) -> None:
        self._correlation_id += 1
        fields = fill_in(step.fields, self._names)
        oldest, where = IDENTIFIED.get(step.api, (version + 1, ""))
        if version >= oldest:
            fields[where] = self._with_ids(fields[where])
        frame = request_frame(step.api, version, self._correlation_id, fields)
        connection = self._connection(step.on)
        connection.send(frame)
        if step.response is not Response.NONE:
            connection.pending.append((step.api, version, self._correlation_id))

    def _response(self, name: str) -> dict[str, Any]:
        connection = self._connections[name]
        api, version, correlation_id = connection.pending.pop(0)
        try:
            frame = connection.receive()
        except TimeoutError:
            self._drop(name)
            return dict(SILENT)
        if frame is None:
            self._drop(name)
            return dict(CLOSED)
        if api is ApiKey.API_VERSIONS and version > SERVED[api][1]:
            version = FALLBACK_VERSION
        return plain_response(api, version, frame, correlation_id)

    def _frame(self, step: Frame) -> dict[str, Any]:
        connection = self._connection(step.on)
        connection.send(step.content(self._names))
        try:
            frame = connection.receive()
        except TimeoutError:
            self._drop(step.on)
            return dict(SILENT)
        self._drop(step.on)
        return dict(CLOSED) if frame is None else {"response": frame.hex()}

    def _bind(self, bind: Mapping[str, str], response: dict[str, Any]) -> None:
        for name, path in bind.items():
            try:
                self._names[name] = at(response, path)
            except (KeyError, IndexError, TypeError):
                # an older version lacks it, or the broker refused: the comparison says
                self._names[name] = None


def _holds_all(response: dict[str, Any], until: Mapping[str, Any] | None, names: Mapping[str, Any]) -> bool:
    return all(_holds(response, path, fill_in(value, names)) for path, value in (until or {}).items())


def _holds(response: dict[str, Any], path: str, value: Any) -> bool:
    try:
        found = at(response, path)
    except KeyError:
        return (
            "the broker" not in response and GAVE_UP not in response
        )  # this version has no such field: nothing to wait for
    except (IndexError, TypeError):  # TypeError: a part of the path is null
        return False
    return bool(found in value) if isinstance(value, list) else bool(found == value)


def _keep(response: dict[str, Any], path: str, condition: str) -> None:
    """Leave out of the array at `path` what other scripts made: `condition` is field=prefix."""
    *outer, last = path.split(".")
    field, prefix = condition.split("=", 1)
    holder = at(response, ".".join(outer)) if outer else response
    if holder.get(last) is not None:
        holder[last] = [element for element in holder[last] if str(element[field]).startswith(prefix)]
