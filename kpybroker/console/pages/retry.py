"""The form of a page again, with what was typed, for a reader whose input cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.requests import Request

from kpybroker.console.pages.messages import decoders
from kpybroker.console.queries import groups, logs, messages
from kpybroker.console.web.context import console_of

MESSAGES: Final = "/topics/{name}/messages"
NO_FORM: Final[Mapping[str, Any]] = {"form": None}


def _of_messages(request: Request) -> dict[str, Any]:
    """What the form of messages offers."""
    known = decoders(console_of(request).registry)
    return {"name": request.path_params["name"], "starts": messages.STARTS, "decoders": list(known)}


_FORMS: Final[Mapping[str, tuple[str, Callable[[Request], Mapping[str, Any]]]]] = {
    "/topics": ("topics", lambda _: {}),
    MESSAGES: ("messages", _of_messages),
    "/groups": ("groups", lambda _: {"states": groups.STATES, "types": groups.TYPES, "absent": {}}),
    "/transactions": ("transactions", lambda _: {}),
    "/logs": ("logs", lambda _: {"levels": logs.LEVELS}),
}


def form_of(request: Request) -> Mapping[str, Any]:
    """The context of `failed.html` with the template of the page's form, if it has one."""
    path = request.url.path
    if "name" in request.path_params and path.endswith("/messages"):
        path = MESSAGES
    if request.method != "GET" or path not in _FORMS:
        return NO_FORM
    name, context = _FORMS[path]
    return {"form": f"forms/{name}.html", **context(request)}
