"""All clusters of a console that has several, each with a way to it."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kpybroker.console.web.clusters import LIST
from kpybroker.console.web.context import console_of, render


async def listing(request: Request) -> Response:
    """`/`, and every address that names no cluster: what was asked for, in each of them."""
    clusters = console_of(request).clusters
    asked: str = getattr(request.state, "asked", "")
    if not clusters or not asked:
        raise HTTPException(404)
    is_page = asked not in ("/", LIST) and not asked.startswith("/c/")
    page = asked if is_page else "/"
    rows = [
        {"name": one.name, "bootstrap": one.options.settings.bootstrap, "page": one.prefix + page}
        for one in clusters.values()
    ]
    status = 200 if asked == "/" else 404
    return render(request, "clusters.html", status=status, title="Clusters", rows=rows, is_found=status == 200)
