"""Clients of a development broker, and the metrics that they have pushed (KIP-714). Others have them on `/metrics`."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.show.cells import shown
from kpybroker.console.pages.retry import NO_FORM
from kpybroker.console.queries import control as queries
from kpybroker.console.queries.pages import Page, Query
from kpybroker.console.web.context import call_control, render
from kpybroker.console.web.forms import whole_number

ROWS_MAX: Final = 200
"""Series on a page."""


async def listing(request: Request) -> Response:
    """`/clients`: those that have pushed metrics."""
    query = dict(request.query_params)
    client_id, number = query.get("client_id", "").strip(), whole_number(query, "page", 1, 1, 10**6)
    rows = await call_control(request, lambda control: queries.clients(control, client_id))
    rows = Query.of(query).sorted("sort", rows, queries.OF_CLIENTS)
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
        error = CommandError("this client is not known any more", "see which clients there are: /clients")
        context = {"error": error, "again": False, "is_refused": False, **NO_FORM}
        return render(request, "failed.html", status=404, title="Not found", **context)
    found["series"] = Query.of(query).sorted("sort", found["series"], queries.OF_SERIES)
    page = Page.of(len(found["series"]), number, ROWS_MAX)
    title = f"Client {shown(found['client_id'])}"
    return render(request, "client.html", title=title, client=found, page=page, text=text)
