"""Numbers and charts of `/metrics`, which pages load after they are shown: a page never waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.console.queries.outside.metrics import CHARTS, Metrics
from kpybroker.console.queries.samples import DEFAULT, RANGES, Point
from kpybroker.console.web.context import Console, console_of

FRESH_S: Final = 1.8
"""A number that was read within so many seconds serves all viewers of a chart, which ask every two."""


def _source(request: Request) -> tuple[Console, Metrics]:
    console = console_of(request)
    if console.metrics is None or request.path_params["page"] not in CHARTS:
        raise HTTPException(404)
    return console, console.metrics


async def now(request: Request) -> Response:
    """`/metrics/{page}?topic=`: a part of a page with the newest numbers, or why there are none."""
    console, metrics = _source(request)
    page, topic = request.path_params["page"], request.query_params.get("topic", "")
    error, numbers = None, []
    try:
        numbers = await console.live.run(partial(metrics.now, page, topic))
    except CommandError as failed:
        error = failed
    return HTMLResponse(console.text("metrics_now.html", numbers=numbers, error=error))


async def chart(request: Request) -> Response:
    """`/metrics/{page}/{key}.json?topic=&range=`: as a chart takes it."""
    console, metrics = _source(request)
    page, key = request.path_params["page"], request.path_params["key"]
    if key not in CHARTS[page]:
        raise HTTPException(404)
    kept, topic = range_of(request), request.query_params.get("topic", "")
    try:
        points = await console.live.run(partial(metrics.points, page, key, topic, kept))
    except CommandError:
        points = []
    return drawn(points)


def range_of(request: Request) -> str:
    """How long a chart reaches back: one of RANGES. Raises CommandError."""
    found = request.query_params.get("range", DEFAULT)
    if found not in RANGES:
        raise usage(f"{found[:20]!r} is no range of a chart", f"one of {', '.join(RANGES)}")
    return found


def drawn(points: Sequence[Point]) -> Response:
    """Times in seconds, and values with null in each gap."""
    values = [None if point.value is None else round(point.value, 3) for point in points]
    return JSONResponse([[point.at for point in points], values])
