"""`GET /metrics`, as Prometheus asks for it; `?spelling=` asks for another spelling than the configured one. And
`/jolokia`.

A page is read and written in slices, and sent as it is written, so that requests of clients pass in between.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import trio

from kpybroker.broker.lifecycle.errors import EXIT_PORT, StartupError
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.jolokia import endpoint
from kpybroker.http.doors import FORM, JSON, Door, is_loopback, names_of
from kpybroker.http.messages import HttpError, Request, Response
from kpybroker.http.server import HttpServer, Limits, Served
from kpybroker.metrics.clients.text import exposition_of_clients
from kpybroker.metrics.spelling import Spelling
from kpybroker.metrics.text import CONTENT_TYPE, exposition

if TYPE_CHECKING:
    from kpybroker.broker.client_metrics.received import Query
    from kpybroker.broker.metrics.measured import Reader
    from kpybroker.broker.metrics.ticker import Ticker
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.metrics.mbeans import Family
    from kpybroker.metrics.reading import Reading

logger = logging.getLogger("kafka.server.KafkaServer")

LIMITS: Final = Limits(connections=64)
BODY_BYTES_MAX: Final = 64 << 10
PIECE_CHARS: Final = 64 << 10
WANTED_COST: Final = 50
"""Units of a `YieldBudget` that one family costs: it may be held against the patterns of a hundred requests."""
PATH: Final = "/metrics"
PLAIN: Final = "text/plain; charset=utf-8"


def door_of(config: BrokerConfig) -> Door:
    """What the port lets in.

    At another address than loopback, monitoring uses names that the broker cannot know, such as a container's, and a
    program that reaches the port can read it without a browser: so the page for Prometheus is served by any name,
    unless the names are set. Jolokia, whose requests cost more, is not.
    """
    host, allowed = config.get_str("kpybroker.metrics.host"), config.get_list("kpybroker.metrics.allowed.hosts")
    own = [endpoint.host for endpoint in (*config.listeners, *config.advertised_listeners)]
    is_open = not allowed and not is_loopback(host)
    return Door(
        names_of(host, socket.gethostname(), [*own, *allowed]),
        JSON | {FORM},  # the form is what curl says of -d
        BODY_BYTES_MAX,
        reads_by_any_name=frozenset((PATH, "/")) if is_open else frozenset(),
    )


class MetricsServer:
    """Bind with `listen`, then run `serve` until it is cancelled. `clients` reads what clients have pushed."""

    def __init__(
        self,
        readers: Sequence[Reader],
        spelling: Spelling,
        ticker: Ticker,
        door: Door,
        clients: Query | None = None,
    ) -> None:
        self._readers = readers
        self._clients = clients
        self._jolokia = endpoint.Jolokia(self.read, lambda: ticker.rates, ticker.clock)
        self._spelling = spelling
        self._http = HttpServer(Served(door, self._respond, _refused), LIMITS, "The metrics' port", logger)
        self.serve = self._http.serve
        self.close = self._http.close

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Bind; the address. Raises StartupError."""
        try:
            return self._http.listen(host, port)
        except OSError as error:
            raise StartupError(
                f"/metrics cannot be served at {host}:{port}: {error.strerror or error}",
                "change kpybroker.metrics.port (0 takes a free one) or kpybroker.metrics.host",
                EXIT_PORT,
            ) from error

    async def _respond(self, request: Request) -> Response:
        if f"{request.path}/".startswith(f"{endpoint.PATH}/"):
            return await self._jolokia.respond(request)
        if request.path not in (PATH, "/"):
            raise HttpError(f"there is nothing at {request.path}", f"GET {PATH}", 404)
        if request.verb not in ("GET", "HEAD"):
            raise HttpError(f"{request.verb} is not allowed", f"GET {PATH}", 405)
        if request.path == "/":
            return Response(200, f"kpybroker: the metrics are at {PATH}\n".encode(), content_type=PLAIN)
        spelling = self._asked_spelling(request.query)
        if request.verb == "HEAD":
            return Response(200, content_type=CONTENT_TYPE)
        readings = await self.read()
        text = exposition(readings, spelling)
        if self._clients is not None:
            text = chain(text, exposition_of_clients(self._clients()))
        return Response(200, content_type=CONTENT_TYPE, stream=_pieces(text))

    def _asked_spelling(self, query: str) -> Spelling:
        (asked,) = parse_qs(query).get("spelling", [""])[-1:]
        try:
            return Spelling(asked) if asked else self._spelling
        except ValueError:
            names = ", ".join(spelling.value for spelling in Spelling)
            raise HttpError("there is no such spelling", f"one of {names}", 400) from None

    async def read(self, wanted: Callable[[Family], bool] | None = None) -> list[Reading]:
        """What readers with a family that is wanted read, their other families included. Without `wanted`, of all."""
        budget = YieldBudget()
        readings: list[Reading] = []
        for reader in self._readers:
            if wanted is None or await _wants(reader, wanted, budget):
                readings += await reader.read(budget)
            await trio.lowlevel.checkpoint()
        return readings


async def _wants(reader: Reader, wanted: Callable[[Family], bool], budget: YieldBudget) -> bool:
    for family in reader.families:
        if wanted(family):
            return True
        await budget.spend(WANTED_COST)
    return False


async def _pieces(lines: Iterator[str]) -> AsyncGenerator[bytes, None]:
    """The text in pieces of a useful size; others run after each slice."""
    waiting: list[str] = []
    size = 0
    for text in lines:
        waiting.append(text)
        size += len(text)
        if size >= PIECE_CHARS:
            yield "".join(waiting).encode()
            waiting, size = [], 0
        elif len(text) > PIECE_CHARS // 8 or not text:
            await trio.lowlevel.checkpoint()
    if waiting:
        yield "".join(waiting).encode()


def _refused(error: HttpError) -> Response:
    headers = (("Allow", "GET, HEAD"),) if error.status == 405 else ()
    return Response(error.status, f"{error.cause}\n{error.fix}\n".encode(), headers, PLAIN)
