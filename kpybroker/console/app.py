"""The application: routes, static files, and what is shown when something fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.options import ConsoleOptions
from kpybroker.console.pages.retry import NO_FORM, form_of
from kpybroker.console.pages.routes import ROUTES
from kpybroker.console.web.clusters import Clusters
from kpybroker.console.web.context import Console, consoles_of, render
from kpybroker.console.web.forms import status_of
from kpybroker.console.web.guard import Guard, door_of, not_let_in
from kpybroker.console.web.live import Live
from kpybroker.http.asgi import AtTheDoor

TITLES: Final = {
    400: "This cannot be used",
    403: "The cluster does not allow this",
    404: "Not found",
    503: "The cluster did not respond to this",
}
STATIC: Final = Path(__file__).with_name("static")


def make_app(options: ConsoleOptions, live: Live | None = None, clusters: Sequence[ConsoleOptions] = ()) -> Starlette:
    """The ASGI application of one console; nothing is sent to a cluster before its first page.

    `clusters` are those of a console of several, each with its name; `options` are then those of the process.
    """
    console = consoles_of(options, clusters) if clusters else Console(options, live)
    app = Starlette(
        routes=[*ROUTES, Mount("/static", StaticFiles(directory=STATIC), name="static")],
        middleware=[
            Middleware(AtTheDoor, door=door_of(options), refused=not_let_in),
            Middleware(Guard, options=options, sessions=console.sessions),
            *([Middleware(Clusters, consoles=console.clusters)] if clusters else ()),
        ],
        exception_handlers={CommandError: _failed, HTTPException: _refused},
    )
    app.state.console = console
    return app


async def _failed(request: Request, error: Exception) -> Response:
    """The cluster did not do what a page asked. The page asks again by itself, unless it was the reader's input."""
    assert isinstance(error, CommandError)
    status = status_of(error)
    again = request.method == "GET" and status not in (400, 404)
    context: dict[str, Any] = {"error": error, "again": again, "is_refused": status == 403}
    context |= form_of(request) if status == 400 else NO_FORM
    return render(request, "failed.html", status=status, title=TITLES[status], **context)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    cause = "there is no such page" if error.status_code == 404 else error.detail
    shown = CommandError(cause, "go back, or choose a page above")
    return render(
        request,
        "failed.html",
        status=error.status_code,
        title="Not done",
        error=shown,
        again=False,
        is_refused=False,
        **NO_FORM,
    )
