"""Log in with the password, and out."""

from __future__ import annotations

import math

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kpybroker.console.web.context import console_of, render
from kpybroker.console.web.forms import LOGIN_BYTES_MAX, read_form
from kpybroker.console.web.guard import cookie


async def form(request: Request) -> Response:
    """`GET /login`"""
    return _form(request, request.query_params.get("next", "/"))


async def log_in(request: Request) -> Response:
    """`POST /login`: a new session, and on to the page that was asked for."""
    fields = await read_form(request, LOGIN_BYTES_MAX)
    sessions, address = console_of(request).sessions, request.state.address
    target = fields.get("next", "/")
    wait_s = sessions.wait_s(address)
    if wait_s > 0:
        problem = f"too many wrong passwords from {address}: wait for {math.ceil(wait_s)} seconds"
        return _form(request, target, problem, 429)
    session = sessions.log_in(fields.get("password", ""), address)
    if session is None:
        return _form(request, target, "this is not the password", 403)
    response = RedirectResponse(own_path(target), 303)
    response.headers["Set-Cookie"] = cookie(request.scope, session)
    return response


async def log_out(request: Request) -> Response:
    """`POST /logout`"""
    await read_form(request, LOGIN_BYTES_MAX)
    console_of(request).sessions.log_out(request.state.session)
    return RedirectResponse("/login", 303)


def _form(request: Request, target: str, problem: str | None = None, status: int = 200) -> Response:
    return render(request, "login.html", status=status, title="Log in", next=own_path(target), problem=problem)


def own_path(target: str) -> str:
    """A path of this console; `/` for anything that could lead to another host."""
    is_path = target.startswith("/") and not target.startswith("//") and "\\" not in target and target.isprintable()
    return target if is_path else "/"
