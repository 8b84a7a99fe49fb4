"""Numbers and charts of `/metrics`, which pages load after they are shown: a page never waits for them."""

from __future__ import annotations

from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.queries.outside.metrics import CHARTS, Metrics
from kpybroker.console.web.context import Console, console_of


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
    """`/metrics/{page}/{key}.json?topic=`: as a chart takes it."""
    console, metrics = _source(request)
    page, key = request.path_params["page"], request.path_params["key"]
    if key not in CHARTS[page]:
        raise HTTPException(404)
    try:
        times, numbers = await console.live.run(
            partial(metrics.points, page, key, request.query_params.get("topic", ""))
        )
    except CommandError:
        times, numbers = [], []
    return JSONResponse([times, numbers])
