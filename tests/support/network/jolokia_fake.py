"""A small Jolokia over HTTP, for what a client makes of its responses.

`tests/client/metrics/test_fake.py` holds it to what the broker's own endpoint responds. `compat_tests` has the agent.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON = dict[str, Any]
NOT_FOUND = "javax.management.InstanceNotFoundException"


class FakeJolokia:
    """`mbeans` by name, in the order of keys in which the server has them. `asked` are the requests so far.

    `replace` makes status and body of the next HTTP responses. `headers` are those of the last request.
    """

    def __init__(self, mbeans: dict[str, JSON] | None = None) -> None:
        self.mbeans: dict[str, JSON] = mbeans or {}
        self.asked: list[JSON] = []
        self.headers: dict[str, str] = {}
        self.replace: Callable[[list[JSON]], tuple[int, bytes]] | None = None
        self.address = ""

    def respond(self, body: bytes) -> tuple[int, bytes]:
        """Status and body."""
        requests = json.loads(body)
        self.asked += requests
        if self.replace is not None:
            return self.replace(requests)
        return 200, json.dumps([self.response(request) for request in requests]).encode()

    def response(self, request: JSON) -> JSON:
        """The response to one request."""
        pattern = request["mbean"]
        echo = {"request": {"type": request["type"], "mbean": pattern}, "timestamp": 0}
        found = {name: values for name, values in self.mbeans.items() if _matches(pattern, name)}
        if request["type"] == "search":
            return {**echo, "value": list(found), "status": 200}
        if not found:
            return {**echo, "error_type": NOT_FOUND, "error": f"{NOT_FOUND} : {pattern}", "status": 404}
        is_pattern = any(wildcard in pattern for wildcard in "*?")
        return {**echo, "value": found if is_pattern else next(iter(found.values())), "status": 200}


def _matches(pattern: str, name: str) -> bool:
    """Without quoted values."""
    (domain, wanted), (of, has) = (_parts(text) for text in (pattern, name))
    is_open = wanted.pop("*", None) is not None
    if not fnmatchcase(of, domain) or not (is_open or wanted.keys() == has.keys()):
        return False
    return all(key in has and fnmatchcase(has[key], value) for key, value in wanted.items())


def _parts(text: str) -> tuple[str, dict[str, str]]:
    domain, _, rest = text.partition(":")
    pairs = (part.partition("=") for part in rest.split(","))
    return domain, {key: value for key, _, value in pairs}


@contextmanager
def serving(fake: FakeJolokia) -> Iterator[FakeJolokia]:
    """On a port of its own: `fake.address` is `HOST:PORT`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fake.headers = {key.lower(): value for key, value in self.headers.items()}
            if not self.path.startswith("/jolokia"):
                status, body = 404, b"nothing here"
            else:
                status, body = fake.respond(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
