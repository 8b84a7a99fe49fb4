"""A small service that responds with suggestions from the compacted topics.

    python -m kpybroker.pipelines.suggestion.service --bootstrap-servers HOST:PORT \\
        --topic shop-suggestions --topic shop-user-suggestions --port 8090

`GET /products/ID` and `GET /users/ID` are the suggestions as the pipeline wrote them, `GET /` how many there are. It
is ready when it has read the topics once, and follows them from then on. Needs the extras `spark` and `console`.

Exit codes: 0 stopped, 1 failed, 2 a wrong argument.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.options import check_reachable
from kpybroker.pipelines.sinks.client_settings import for_librdkafka
from kpybroker.pipelines.suggestion.store import Follower, Store

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

READY = "suggestion service ready at "
STOP_SECONDS_MAX = 2
PATHS = {"products": "product", "users": "user"}


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What is read, and where it is served."""

    bootstrap_servers: str
    topics: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 0
    kafka: tuple[tuple[str, str], ...] = ()


def parse(arguments: Sequence[str]) -> ServiceOptions:
    """Raises `PipelineError` with exit code 2."""
    parser = is_a.Parser(prog="python -m kpybroker.pipelines.suggestion.service", allow_abbrev=False)
    parser.add_argument("--bootstrap-servers", required=True, type=is_a.bootstrap_servers, metavar="HOST:PORT")
    text = "of suggestions for products, for users, or both; may be given more than once"
    parser.add_argument("--topic", required=True, action="append", type=is_a.topic, help=text)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (127.0.0.1)")
    parser.add_argument("--port", default=8090, type=_port, help="port to listen at; 0 takes a free one (8090)")
    text = "setting of the Java client, as in the pipelines"
    parser.add_argument("--kafka", action="append", default=[], type=is_a.pair, metavar="KEY=VALUE", help=text)
    found = parser.parse_args(arguments)
    topics = tuple(dict.fromkeys(found.topic))
    return ServiceOptions(found.bootstrap_servers, topics, found.host, found.port, tuple(found.kafka))


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port")
    return int(text)


def make_app(store: Store) -> Starlette:
    """The routes over a store."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def suggestions(kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def of_one(request: Request) -> Response:
            name = request.path_params["name"]
            found = store.rows[kind].get(name)
            if found is None:
                return JSONResponse({"error": f"no suggestions for this {kind}", kind: name}, 404)
            return Response(found, media_type="application/json")

        return of_one

    async def counts(_request: Request) -> Response:
        return JSONResponse({path: len(store.rows[kind]) for path, kind in PATHS.items()})

    async def unknown(request: Request, _error: Exception) -> Response:
        return JSONResponse({"error": "use /products/ID or /users/ID", "path": request.url.path}, 404)

    # a name may have slashes in it
    routes = [Route(f"/{path}/{{name:path}}", suggestions(kind)) for path, kind in PATHS.items()]
    return Starlette(routes=[*routes, Route("/", counts)], exception_handlers={404: unknown})


def serve(options: ServiceOptions) -> None:
    """Serve until SIGINT or SIGTERM. Raises `PipelineError` for what the user can fix."""
    try:
        import uvicorn

        store = Store()
        app = make_app(store)
    except ImportError:
        raise PipelineError("The service needs starlette and uvicorn.", "pip install 'kpybroker[console]'") from None
    check_reachable(options.bootstrap_servers)
    client = for_librdkafka({**dict(options.kafka), "bootstrap.servers": options.bootstrap_servers})
    with _bound(options.host, options.port) as listener:
        follower = Follower(client, options.topics, store)
        try:
            follower.catch_up()
            config = uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=STOP_SECONDS_MAX,
            )
            logging.getLogger("uvicorn").setLevel(logging.WARNING)
            _run(uvicorn.Server(config), listener, follower, store)
        finally:
            follower.stop()
    if follower.failure is not None:
        raise follower.failure


def _run(server: uvicorn.Server, listener: socket.socket, follower: Follower, store: Store) -> None:
    def stop(*_: object) -> None:
        server.should_exit = True

    # uvicorn sends itself the signal again once it has stopped, and the follower is still to be stopped then
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    follower.start(stop)
    host, port = listener.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    counts = " ".join(f"{path}={len(store.rows[kind])}" for path, kind in PATHS.items())
    print(f"{READY}http://{name}:{port}/ {counts}", flush=True)
    server.run(sockets=[listener])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        # the error's own text repeats the address
        reason = os.strerror(error.errno) if error.errno else str(error)
        cause = f"Cannot listen at {host}:{port}: {reason}."
        raise PipelineError(cause, "Choose another --port, or check --host.") from None


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code."""
    try:
        serve(parse(arguments))
    except PipelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
