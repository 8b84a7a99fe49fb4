"""The first page: the cluster, its controller and its brokers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kpybroker.console.queries import brokers
from kpybroker.console.web.context import console_of, render


async def page(request: Request) -> Response:
    """`/`: what each broker is, and how full."""
    found, notes = await console_of(request).live.ask(brokers.described)
    return render(request, "cluster.html", title="Cluster", cluster=found, notes=notes)
