"""Clients of a development broker, and the metrics that they have pushed (KIP-714). Others have them on `/metrics`."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kpybroker.console.queries import control as queries
from kpybroker.console.queries.pages import Page
from kpybroker.console.web.context import call_control, render
from kpybroker.console.web.forms import whole_number


async def listing(request: Request) -> Response:
    """`/clients`: those that have pushed metrics."""
    query = dict(request.query_params)
    client_id, number = query.get("client_id", "").strip(), whole_number(query, "page", 1, 1, 10**6)
    rows = await call_control(request, lambda control: queries.clients(control, client_id))
    page = Page.of(len(rows), number)
    return render(request, "clients.html", title="Clients", rows=rows, page=page, client_id=client_id)


async def one(request: Request) -> Response:
    """`/clients/{broker}/{instance}`: the last value of each series."""
    query, place = dict(request.query_params), request.path_params
    text, number = query.get("q", "").strip(), whole_number(query, "page", 1, 1, 10**6)
    found = await call_control(
        request, lambda control: queries.client(control, place["instance"], place["broker"], text)
    )
    if found is None:
        raise HTTPException(404, "this client is not known any more: it has ended, or has not pushed for a while")
    page = Page.of(len(found["series"]), number, 200)
    return render(request, "client.html", title=f"Client {found['client_id']}", client=found, page=page, text=text)
