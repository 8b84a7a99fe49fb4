"""How pages look: a form on every page, and nothing else."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kpybroker.console.pages.login import own_path
from kpybroker.console.web import look
from kpybroker.console.web.forms import LOGIN_BYTES_MAX, read_form


async def change(request: Request) -> Response:
    """`POST /look`: keep a choice, and back to the page that it was made on."""
    form = await read_form(request, LOGIN_BYTES_MAX)
    found = look.changed(look.look_of(request.cookies.get(look.COOKIE)), form)
    response = RedirectResponse(own_path(form.get("next", "/")), 303)
    response.headers["Set-Cookie"] = look.cookie_of(found)
    return response
