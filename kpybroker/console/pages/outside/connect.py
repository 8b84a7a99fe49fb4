"""Kafka Connect: its connectors, one of them, and the plugins that one can be made of."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.queries.connect import connectors
from kpybroker.console.queries.connect.connectors import Listed
from kpybroker.console.queries.connect.rest import Connect
from kpybroker.console.queries.pages import Page
from kpybroker.console.web.context import console_of, render
from kpybroker.console.web.forms import whole_number
from kpybroker.console.web.live import CONNECT, Notes


class Part(NamedTuple):
    """One Kafka Connect of the list: its connectors that fit, or why they are not known."""

    connect: Connect
    found: Listed | None
    rows: list[dict[str, Any]]
    page: Page
    error: CommandError | None


async def listing(request: Request) -> Response:
    """`/connect?q=`: each Kafka Connect is asked at the same time, so that one that is away keeps none waiting."""
    console, query = console_of(request), dict(request.query_params)
    text, number = query.get("q", "").strip(), whole_number(query, "page", 1, 1, 10**6)
    found: dict[str, Listed | CommandError] = {}

    async def ask(one: Connect) -> None:
        try:
            found[one.name] = await console.live.run(partial(connectors.listed, one), CONNECT)
        except CommandError as error:
            found[one.name] = error

    async with anyio.create_task_group() as tasks:
        for one in console.connects.values():
            tasks.start_soon(ask, one)
    parts = [_part(one, found[one.name], text.lower(), number) for one in console.connects.values()]
    return render(request, "connect.html", title="Kafka Connect", parts=parts, text=text)


def _part(connect: Connect, found: Listed | CommandError, text: str, number: int) -> Part:
    if isinstance(found, CommandError):
        return Part(connect, None, [], Page.of(0, 1), found)
    fitting = [row for row in found.rows if text in row["name"].lower()]
    page = Page.of(len(fitting), number)
    return Part(connect, found, fitting[page.first : page.last], page, None)


def connect_of(request: Request) -> Connect:
    """The Kafka Connect that the address names. Raises HTTPException."""
    connects = console_of(request).connects
    name = request.query_params.get("connect", "")
    if not name and len(connects) == 1:
        return next(iter(connects.values()))
    if name not in connects:
        raise HTTPException(404, f"there is no Kafka Connect {name[:100]!r}")
    return connects[name]


async def one(request: Request) -> Response:
    """`/connector?connect=&name=`"""
    connect, name = connect_of(request), request.query_params.get("name", "")
    if not name:
        raise HTTPException(404)
    notes = Notes()
    found = await console_of(request).live.run(partial(connectors.described, connect, name, notes), CONNECT)
    context: dict[str, Any] = {"found": found, "connect": connect.name, "name": name, "notes": notes}
    return render(request, "connector.html", title=f"Connector {name}", **context)


async def plugins(request: Request) -> Response:
    """`/connect/plugins?connect=`: what a connector can be made of."""
    connect = connect_of(request)
    rows = await console_of(request).live.run(partial(connectors.plugins, connect), CONNECT)
    return render(request, "plugins.html", title="Make a connector", connect=connect.name, rows=rows)
