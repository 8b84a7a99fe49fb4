"""The channel: HTTP/1.1 on loopback, `POST /v1/<method>` with a JSON object of arguments.

The response is the JSON of the result, or `{"error": {"cause": ..., "fix": ...}}`. `GET /v1` lists the methods.

Rules
- Only loopback: a program that reaches the channel may do anything to the broker. `DOOR` keeps out web pages.
- Bodies, headers and the number of connections are bounded.
- A method whose client goes away is cancelled.
- A failure is a JSON error and a log line, never a traceback in a response.
"""

from __future__ import annotations

import json
import logging
from math import inf
from typing import TYPE_CHECKING, Any, Final

from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.control.errors import ControlError
from kpybroker.control.registry import Registry
from kpybroker.http.doors import FORM, Door
from kpybroker.http.doors import JSON as JSON_TYPES
from kpybroker.http.messages import HttpError, Request, Response
from kpybroker.http.server import HttpServer, Limits, Served

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

logger = logging.getLogger("kafka.server.KafkaServer")

HOST = "127.0.0.1"
PREFIX = "/v1"
BODY_BYTES_MAX = 64 << 20
CONNECTIONS_MAX = 256
LIMITS: Final = Limits(CONNECTIONS_MAX, idle_s=inf)
DOOR: Final = Door(frozenset(("localhost",)), JSON_TYPES | {FORM}, BODY_BYTES_MAX)
"""`FORM` for curl."""


def json_response(status: int, value: Any) -> Response:
    """A response. Raises ValueError or TypeError for what is not JSON."""
    return Response(status, json.dumps(value, allow_nan=False).encode())


def refused(error: ControlError | HttpError) -> Response:
    """The response to a request that was refused."""
    return json_response(error.status, {"error": {"cause": error.cause, "fix": error.fix}})


class ControlServer:
    """Bind with `listen`, then run `serve` until it is cancelled."""

    def __init__(self, hosted: Hosted, registry: Registry) -> None:
        self._hosted = hosted
        self._registry = registry
        self._http = HttpServer(Served(DOOR, self._respond, refused), LIMITS, "The control channel", logger)
        self.serve = self._http.serve
        self.close = self._http.close

    def listen(self, port: int) -> tuple[str, int]:
        """Bind; the address. 0 takes a free port. Raises OSError."""
        return self._http.listen(HOST, port)

    async def _respond(self, request: Request) -> Response:
        try:
            if request.path.rstrip("/") == PREFIX:
                return self._listed(request)
            name = _method_name(request.path)
            method = self._registry[name]
            if request.verb != "POST":
                return _wrong_verb("POST", f"{name} is called by POST")
            return json_response(200, await method.call(self._hosted, _arguments(request.body)))
        except ControlError as error:
            return refused(error)
        except StartupError as error:
            return refused(ControlError(error.cause, error.fix, status=409))
        except Exception as error:
            logger.exception("The control method of %s failed", request.path)
            cause = f"the method failed: {type(error).__name__}: {error}"
            return refused(ControlError(cause, "report it with the broker's log", status=500))

    def _listed(self, request: Request) -> Response:
        if request.verb != "GET":
            return _wrong_verb("GET", f"{PREFIX} lists the methods by GET")
        return json_response(200, self._registry.described())


def _wrong_verb(allowed: str, cause: str) -> Response:
    response = refused(ControlError(cause, f"use {allowed}", status=405))
    return response._replace(headers=(("Allow", allowed),))


def _method_name(path: str) -> str:
    prefix, _, name = path.rpartition("/")
    if prefix != PREFIX:
        raise ControlError(
            f"there is nothing at {path}", f"POST {PREFIX}/<method>; GET {PREFIX} lists them", status=404
        )
    return name


def _arguments(body: bytes) -> dict[str, Any]:
    try:
        arguments = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ControlError(f"the body is not JSON: {error}", "send a JSON object of arguments") from error
    if not isinstance(arguments, dict):
        raise ControlError("the body is not a JSON object", "send the arguments by name, as an object")
    return arguments
