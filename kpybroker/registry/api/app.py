"""The ASGI application: from a request to its handler, and from an error to its JSON.

Paths are matched as they were sent: a subject may have a slash in it, which clients write as %2F. Requests that write
have few threads of their own, so that those that read get responses while the cluster is away. A request that needs to
know more of a text (`Unknown`) waits without a thread, and is run again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kpybroker.core.doors.crowd import network_of
from kpybroker.http.asgi import App, AtTheDoor
from kpybroker.http.doors import LOOPBACK_NAMES, Door
from kpybroker.http.messages import HttpError
from kpybroker.registry.api import bodies
from kpybroker.registry.api.absent import missing
from kpybroker.registry.api.accept import CONTENT_TYPE, chosen
from kpybroker.registry.api.call import Call, Empty, Result, Text
from kpybroker.registry.api.context_paths import rewritten
from kpybroker.registry.api.forward import Forwarder
from kpybroker.registry.api.routes import ENTRIES, Entry
from kpybroker.registry.errors import STORE_ERROR, RegistryError
from kpybroker.registry.service import Service
from kpybroker.registry.texts.questions import Question, Unknown

logger = logging.getLogger("kpybroker.registry")

TAKEN: Final = frozenset(
    {CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json", "application/octet-stream", ""}
)
WRITES_MAX: Final = 16
"""At the same time; further ones wait."""
ROUNDS_MAX: Final = 1000
"""How often a request asks for replies: each time for others, unless they are forgotten in between."""
BODY_BYTES_MAX: Final = 4 << 20

LOOPBACK_DOOR: Final = Door(LOOPBACK_NAMES, TAKEN, BODY_BYTES_MAX)
"""Of an instance that only this machine reaches."""

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    service: Service, forwarder: Forwarder, door: Door = LOOPBACK_DOOR, middleware: Sequence[Middleware] = ()
) -> Starlette:
    """The application of one instance. `middleware` sees what the door lets in, before its path is touched."""
    writers: list[CapacityLimiter] = []
    by_path: dict[str, dict[str, Entry]] = {}
    for entry in ENTRIES:
        by_path.setdefault(entry.path, {})[entry.method] = entry
    return Starlette(
        routes=[
            Route(path, _endpoint(service, forwarder, entries, writers), methods=list(entries))
            for path, entries in by_path.items()
        ],
        middleware=[Middleware(AtTheDoor, door=door, refused=_not_let_in), *middleware, Middleware(RawPath)],
        exception_handlers={RegistryError: _refused, HTTPException: _no_such},
    )


class RawPath:
    """Middleware: `path` keeps its percent signs, without a slash at its end, and no longer starts with a context."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            path = raw.partition(b"?")[0].decode("latin-1").rstrip("/") or "/"
            query = scope["query_string"].decode("latin-1")
            try:
                path, query = rewritten(path, query)
            except ValueError as error:
                refused = await _refused(Request(scope), RegistryError(400, str(error)))
                await refused(scope, receive, send)
                return
            scope["path"], scope["query_string"] = path, query.encode("latin-1")
        await self._app(scope, receive, send)


def _endpoint(
    service: Service, forwarder: Forwarder, entries: Mapping[str, Entry], writers: list[CapacityLimiter]
) -> Endpoint:
    """`writers` is filled by the first request: a limiter belongs to an event loop."""

    async def responded(request: Request) -> Response:
        entry = entries["GET" if request.method == "HEAD" else request.method]
        if chosen(request.headers.get("accept", "")) is None:
            raise RegistryError(406, "HTTP 406 Not Acceptable")
        content = await _content(request)
        body = _body(request, content, entry)
        path = {name: unquote(value) for name, value in request.path_params.items()}

        def run() -> Response | list[Question]:
            """Raises neither of the usual exceptions: in a future they keep the texts until cycles are collected."""
            try:
                call = Call(service, path, request.query_params, body).of_alias(entry.path)
                found = None if entry.known is None else entry.known(call)
                if found is not None:
                    return respond(request, found)
                if entry.writes and not service.is_leader:
                    return _forwarded(service, forwarder, request, content)
                return respond(request, entry.handler(call))
            except RegistryError as error:
                return _refusal(request, error)
            except Unknown as unknown:
                return unknown.questions

        if not writers:
            writers.append(CapacityLimiter(WRITES_MAX))
        client = "" if request.client is None else network_of(request.client.host)
        for _ in range(ROUNDS_MAX):
            made = await to_thread.run_sync(run, limiter=writers[0] if entry.writes else None)
            if isinstance(made, Response):
                return made
            refused = await service.learn(made, client)  # no thread waits
            if refused is not None:
                return _refusal(request, refused)
        return _refusal(request, RegistryError(STORE_ERROR, "it needs more than can be kept; try again"))

    async def endpoint(request: Request) -> Response:
        try:
            return await responded(request)
        except (RegistryError, HTTPException, ClientDisconnect):
            raise
        except Exception as error:  # a bug, or a library that fails for what a client sent: the others go on
            logger.error("a request failed method=%s path=%s", request.method, request.url.path, exc_info=error)
            return respond(request, {"error_code": STORE_ERROR, "message": "Internal Server Error"}, 500)

    return endpoint


def _forwarded(service: Service, forwarder: Forwarder, request: Request, content: bytes) -> Response:
    query = request.url.query
    target = request.scope["path"] + (f"?{query}" if query else "")
    made = forwarder.send(service.leader_url, request.method, target, request.headers, content)
    return Response(made.content, made.status, {"content-type": made.content_type or CONTENT_TYPE})


async def _content(request: Request) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
    return bytes(content)


def _body(request: Request, content: bytes, entry: Entry) -> dict[str, Any]:
    """The members of the JSON object; empty where a request has none. Raises RegistryError 400, 415 or 422."""
    if entry.body is None:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in TAKEN:
        raise RegistryError(415, "HTTP 415 Unsupported Media Type")
    value = bodies.loaded(content)
    if isinstance(value, str) and entry.body is bodies.MODE:
        value = {"mode": value}
    return bodies.members(value, entry.body)


def respond(request: Request, result: Result, status: int = 200) -> Response:
    """JSON, in the type that the client accepts."""
    if isinstance(result, Empty):
        return Response(status_code=204)
    kind = chosen(request.headers.get("accept", "")) or CONTENT_TYPE
    return Response(_encoded(result), status, {"content-type": kind})


def _encoded(result: Result) -> bytes:
    """UTF-8. Earlier versions stored texts with half a surrogate pair: it is an escape in JSON, and `?` in a text."""
    if isinstance(result, Text):
        return result.text.encode("utf-8", "replace")
    try:
        return json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(result, separators=(",", ":")).encode()


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError)
    return _refusal(request, error)


def _refusal(request: Request, error: RegistryError) -> Response:
    return respond(request, {"error_code": error.code, "message": error.message}, error.status)


def _not_let_in(refusal: HttpError) -> App:
    body = {"error_code": refusal.status, "message": f"{refusal.cause}: {refusal.fix}"}
    return Response(json.dumps(body), refusal.status, {"content-type": CONTENT_TYPE})


async def _no_such(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"HTTP {error.status_code} {error.detail}"
    what = missing(request.scope["path"])
    if what is not None:
        message += f": this registry has no {what}"
    shown = {"error_code": error.status_code, "message": message}
    return respond(request, shown, error.status_code)
