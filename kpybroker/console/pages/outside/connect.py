"""Kafka Connect: its connectors, one of them, and the plugins that one can be made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.queries.connect import connectors
from kpybroker.console.queries.connect.connectors import Listed
from kpybroker.console.queries.connect.rest import Connect
from kpybroker.console.queries.pages import Page, Query
from kpybroker.console.web.context import Console, console_of, render
from kpybroker.console.web.forms import whole_number
from kpybroker.console.web.live import CONNECT, Notes

T = TypeVar("T")


class Part(NamedTuple):
    """One Kafka Connect of the list: its connectors that fit, or why they are not known."""

    connect: Connect
    found: Listed | None
    rows: list[dict[str, Any]]
    page: Page
    error: CommandError | None


async def of_each(console: Console, query: Callable[[Connect], T]) -> dict[str, T | CommandError]:
    """What each Kafka Connect says, or why it does not; all at the same time, so that one that is away keeps none
    waiting.
    """
    found: dict[str, T | CommandError] = {}

    async def ask(one: Connect) -> None:
        try:
            found[one.name] = await console.live.run(partial(query, one), CONNECT)
        except CommandError as error:
            found[one.name] = error

    async with anyio.create_task_group() as tasks:
        for one in console.connects.values():
            tasks.start_soon(ask, one)
    return found


async def listing(request: Request) -> Response:
    """`/connect?q=`: the connectors of each."""
    console, query = console_of(request), dict(request.query_params)
    wanted, number = Query.of(query), whole_number(query, "page", 1, 1, 10**6)
    found = await of_each(console, connectors.listed)
    parts = [_part(one, found[one.name], wanted, number) for one in console.connects.values()]
    return render(request, "connect.html", title="Kafka Connect", parts=parts, text=query.get("q", "").strip())


def _part(connect: Connect, found: Listed | CommandError, wanted: Query, number: int) -> Part:
    if isinstance(found, CommandError):
        return Part(connect, None, [], Page.of(0, 1), found)
    fitting = [row for row in found.rows if wanted.text in row["name"].lower()]
    fitting = wanted.sorted("sort", fitting, connectors.OF_CONNECTORS)
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
    rows = Query.of(request.query_params).sorted("sort", rows, connectors.OF_PLUGINS)
    return render(request, "plugins.html", title="Make a connector", connect=connect.name, rows=rows)
