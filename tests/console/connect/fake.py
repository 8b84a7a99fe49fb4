"""A Kafka Connect of two plugins, as its REST looks from outside. What it says is what Kafka Connect 3.9.1 and 4.3.1
say; `compat_tests/console/connect/test_kafka_connect.py` asks both the same.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

VERSION: Final = "4.3.1"
WORKER: Final = "10.0.0.7:8083"
SINK: Final = "org.example.TableSinkConnector"
BARE: Final = "org.example.BareSourceConnector"
"""A plugin that does not say what its keys are."""
TRACE: Final = "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask\n\tat org.example.Table.put"


def key(name: str, kind: str = "STRING", default: str | None = None, **more: Any) -> dict[str, Any]:
    """The definition of a key, as Connect sends it."""
    found = {
        "name": name,
        "type": kind,
        "required": more.pop("required", False),
        "default_value": default,
        "importance": "MEDIUM",
        "documentation": f"What {name} is for.",
        "group": "Common",
        "width": "MEDIUM",
        "display_name": name,
        "dependents": [],
    }
    return {**found, **more}


KEYS: Final = {
    SINK: [
        key("name", required=True, importance="HIGH"),
        key("connector.class", required=True, importance="HIGH"),
        key("tasks.max", "INT", "1", importance="HIGH"),
        key("topics", "LIST", "", importance="HIGH"),
        key("table.url", required=True, importance="HIGH", documentation="Where the <b>tables</b> are."),
        key("table.code", "PASSWORD", required=True, importance="HIGH"),
        key("table.create", "BOOLEAN", "false"),
        key("batch.size", "INT", "100", importance="LOW"),
        key("table.access.key", importance="LOW"),
        key("token.cache.size", "INT", "10", importance="LOW"),
    ],
}


OF_ALL: Final = ("name", "connector.class", "tasks.max", "topics")
"""Keys that every sink has, which a plugin does not list among its own."""


class FakeConnect:
    """`url` has no login. `mode` says how it responds: well, slowly, not at all, or as another service."""

    def __init__(self) -> None:
        self.url = ""
        self.login: str | None = None
        self.mode = "well"
        self.released = threading.Event()
        self.configs: dict[str, dict[str, str]] = {}
        self.states: dict[str, list[str]] = {}
        """The state of each connector, then those of its tasks."""
        self.offsets: dict[str, list[dict[str, Any]]] = {}
        self.trace = TRACE
        self.asked: list[tuple[str, str]] = []

    def add(self, name: str, java_class: str = SINK, *states: str, **config: str) -> None:
        """A connector; keys have `_` for `.`."""
        keys = {key.replace("_", "."): value for key, value in config.items()}
        self.configs[name] = {"name": name, "connector.class": java_class, **keys}
        self.states[name] = list(states or ("RUNNING", "RUNNING"))
        self.offsets[name] = [
            {"partition": {"kafka_topic": "orders", "kafka_partition": 0}, "offset": {"kafka_offset": 7}}
        ]

    def respond(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        """The status and the JSON of a response."""
        self.asked.append((method, target))
        parts = urlsplit(target)
        for wanted, pattern, work in ROUTES:
            match = re.fullmatch(pattern, parts.path)
            if match and wanted == method:
                return work(self, [unquote(one) for one in match.groups()], parse_qs(parts.query), body)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


Work = Callable[[FakeConnect, list[str], Mapping[str, list[str]], Any], tuple[int, Any]]


def _info(fake: FakeConnect, name: str) -> dict[str, Any]:
    tasks = [{"connector": name, "task": task} for task in range(len(fake.states[name]) - 1)]
    return {"name": name, "config": fake.configs[name], "tasks": tasks, "type": "sink"}


def _status(fake: FakeConnect, name: str) -> dict[str, Any]:
    def one(state: str) -> dict[str, Any]:
        found = {"state": state, "worker_id": WORKER}
        return {**found, "trace": fake.trace} if state == "FAILED" else found

    own, *tasks = fake.states[name]
    shown = [{"id": number, **one(state)} for number, state in enumerate(tasks)]
    return {"name": name, "connector": one(own), "tasks": shown, "type": "sink"}


def _known(work: Work) -> Work:
    def checked(fake: FakeConnect, path: list[str], query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        if path[0] not in fake.configs:
            return 404, {"error_code": 404, "message": f"No status found for connector {path[0]}"}
        return work(fake, path, query, body)

    return checked


def _listed(fake: FakeConnect, _: list[str], query: Mapping[str, list[str]], __: Any) -> tuple[int, Any]:
    if not query.get("expand"):
        return 200, sorted(fake.configs)
    makers = {"status": _status, "info": _info}
    return 200, {
        name: {part: makers[part](fake, name) for part in query.get("expand", ())} for name in sorted(fake.configs)
    }


def _problems(java_class: str, config: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for one in KEYS.get(java_class, ()):
        name, value = one["name"], config.get(one["name"])
        if one["required"] and not value:
            found[name] = f'Missing required configuration "{name}" which has no default value.'
        elif one["type"] == "INT" and value and not value.lstrip("-").isdigit():
            found[name] = f"Invalid value {value} for configuration {name}: Not a number of type INT"
    if config.get("table.url", "").startswith("jdbc") and config.get("table.code") != "s3same!":
        found["table.url"] = f"Cannot log in with {config.get('table.code')}"
    return found


def _validate(fake: FakeConnect, path: list[str], _: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
    if path[0] not in KEYS:
        return 500, {"error_code": 500, "message": f"Failed to find any class that implements Connector: {path[0]}"}
    found = _problems(path[0], body)
    configs = [
        {
            "definition": one,
            "value": {
                "name": one["name"],
                "value": body.get(one["name"]),
                "recommended_values": [],
                "errors": [found[one["name"]]] if one["name"] in found else [],
                "visible": True,
            },
        }
        for one in KEYS.get(path[0], ())
    ]
    return 200, {"name": path[0], "error_count": len(found), "groups": ["Common"], "configs": configs}


def _keys(fake: FakeConnect, path: list[str], _: Mapping[str, list[str]], __: Any) -> tuple[int, Any]:
    if path[0] not in KEYS:
        return 404, {"error_code": 404, "message": f"Unknown plugin {path[0]}."}
    return 200, [one for one in KEYS[path[0]] if one["name"] not in OF_ALL]


def _plugins(*_: Any) -> tuple[int, Any]:
    return 200, [{"class": one, "type": "sink", "version": VERSION} for one in (SINK, BARE)]


def _create(fake: FakeConnect, _: list[str], __: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
    name = body["name"]
    if name in fake.configs:
        return 409, {"error_code": 409, "message": f"Connector {name} already exists"}
    return _configured(fake, name, body["config"], 201)


def _configured(fake: FakeConnect, name: str, config: dict[str, str], status: int) -> tuple[int, Any]:
    found = _problems(config.get("connector.class", ""), config)
    if found:
        text = "\n".join(found.values())
        cause = f"Connector configuration is invalid and contains the following {len(found)} error(s):\n{text}"
        return 400, {"error_code": 400, "message": cause}
    fake.configs[name] = {**config, "name": name}
    fake.states.setdefault(name, ["RUNNING", "RUNNING"])
    return status, _info(fake, name)


def _patched(fake: FakeConnect, path: list[str], _: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
    config = {**fake.configs[path[0]], **body}
    return _configured(fake, path[0], {name: text for name, text in config.items() if text is not None}, 200)


def _restart(fake: FakeConnect, path: list[str], query: Mapping[str, list[str]], _: Any) -> tuple[int, Any]:
    is_failed, has_tasks = (query.get(name) == ["true"] for name in ("onlyFailed", "includeTasks"))
    fake.states[path[0]] = [
        "RUNNING" if (number == 0 or has_tasks) and (state == "FAILED" or not is_failed) else state
        for number, state in enumerate(fake.states[path[0]])
    ]
    return (202, _status(fake, path[0])) if has_tasks else (204, None)


def _restart_task(fake: FakeConnect, path: list[str], _: Mapping[str, list[str]], __: Any) -> tuple[int, Any]:
    fake.states[path[0]][1 + int(path[1])] = "RUNNING"
    return 204, None


def _become(state: str) -> Work:
    def work(fake: FakeConnect, path: list[str], _: Mapping[str, list[str]], __: Any) -> tuple[int, Any]:
        count = 1 if state == "STOPPED" else max(2, len(fake.states[path[0]]))
        fake.states[path[0]] = [state] * count
        return (204 if state == "STOPPED" else 202), None

    return work


def _delete(fake: FakeConnect, path: list[str], _: Mapping[str, list[str]], __: Any) -> tuple[int, Any]:
    del fake.configs[path[0]], fake.states[path[0]]
    return 204, None


def _forget(fake: FakeConnect, path: list[str], _: Mapping[str, list[str]], __: Any) -> tuple[int, Any]:
    fake.offsets[path[0]] = []
    return 200, {"message": "The offsets for this connector have been reset successfully"}


ONE: Final = "/connectors/([^/]+)"
ROUTES: Final[tuple[tuple[str, str, Work], ...]] = (
    ("GET", "/", lambda *_: (200, {"version": VERSION, "commit": "0", "kafka_cluster_id": "a"})),
    ("GET", "/connectors", _listed),
    ("POST", "/connectors", _create),
    ("GET", "/connector-plugins", _plugins),
    ("GET", "/connector-plugins/([^/]+)/config", _keys),
    ("PUT", "/connector-plugins/([^/]+)/config/validate", _validate),
    ("GET", ONE, _known(lambda fake, path, *_: (200, _info(fake, path[0])))),
    ("DELETE", ONE, _known(_delete)),
    ("GET", f"{ONE}/status", _known(lambda fake, path, *_: (200, _status(fake, path[0])))),
    ("GET", f"{ONE}/config", _known(lambda fake, path, *_: (200, fake.configs[path[0]]))),
    ("PUT", f"{ONE}/config", lambda fake, path, _, body: _configured(fake, path[0], body, 200)),
    ("PATCH", f"{ONE}/config", _known(_patched)),
    ("GET", f"{ONE}/topics", _known(lambda fake, path, *_: (200, {path[0]: {"topics": ["orders"]}}))),
    ("GET", f"{ONE}/offsets", _known(lambda fake, path, *_: (200, {"offsets": fake.offsets.get(path[0], [])}))),
    ("DELETE", f"{ONE}/offsets", _known(_forget)),
    ("POST", f"{ONE}/restart", _known(_restart)),
    ("POST", f"{ONE}/tasks/([0-9]+)/restart", _known(_restart_task)),
    ("PUT", f"{ONE}/pause", _known(_become("PAUSED"))),
    ("PUT", f"{ONE}/resume", _known(_become("RUNNING"))),
    ("PUT", f"{ONE}/stop", _known(_become("STOPPED"))),
)


@contextmanager
def serving(fake: FakeConnect) -> Iterator[FakeConnect]:
    """Its REST, on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            if fake.mode == "slow":
                fake.released.wait(60)
            wanted = None if fake.login is None else f"Basic {base64.b64encode(fake.login.encode()).decode()}"
            if wanted is not None and self.headers.get("authorization") != wanted:
                self._send(401, b"<html>Unauthorized</html>")
            elif fake.mode.startswith("{") or fake.mode.startswith("<"):
                self._send(200, fake.mode.encode())
            else:
                status, found = fake.respond(self.command, self.path, body)
                self._send(status, b"" if found is None else json.dumps(found).encode())

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _do

        def _send(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            if status != 204:
                self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        fake.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
