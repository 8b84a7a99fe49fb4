"""Several clusters in one console: `/c/NAME/...` is the page of one of them, and nothing else is.

- The cluster is in the address, and no cookie says it: two tabs of one browser show two clusters.
- What a page of a cluster leads to is in the same cluster: `placed` does that for every page at once, and `Clusters`
  for what redirects. A form's token and a preview's signature are of one cluster, so its forms change no other.
- Each has connections, memory and limits of its own, so one that is away keeps none waiting.
- An address without a cluster leads to the list of them. With one cluster there is none of this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

UNDER: Final = "/c/"
LIST: Final = "/clusters"
"""The page of all clusters, which has no other address than `/`."""
OF_ALL: Final = ("/login", "/logout", "/look", "/static/")
ADDRESS: Final = re.compile(
    r'((?:href|action|src|hx-get|hx-post|data-follow|data-search|data-chart)=")/(?!c/|static/|(?:login|logout|look)")'
)
"""In HTML of our templates, where a quote in a text is escaped, so that no text looks like this."""


def prefix_of(name: str) -> str:
    """What the addresses of a cluster begin with; empty where there is one only."""
    return f"{UNDER}{name}" if name else ""


def placed(html: str, prefix: str) -> str:
    """A page whose addresses are in the cluster."""
    return ADDRESS.sub(rf"\1{prefix}/", html) if prefix else html


class Placed(Protocol):
    """The console of one cluster."""

    @property
    def prefix(self) -> str:
        """What its addresses begin with."""


class Clusters:
    """Middleware: which cluster's console serves a request. Pages see the path without the cluster."""

    def __init__(self, app: ASGIApp, consoles: Mapping[str, Placed]) -> None:
        self._app = app
        self._consoles = consoles

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        if scope["type"] != "http" or path.startswith(OF_ALL):
            await self._app(scope, receive, send)
            return
        name, _, rest = path.removeprefix(UNDER).partition("/")
        console = self._consoles.get(name) if path.startswith(UNDER) else None
        if console is None or f"/{rest}".startswith(OF_ALL):
            query = scope["query_string"].decode("latin-1")
            state = {**scope["state"], "asked": f"{path}?{query}" if query else path}
            await self._app({**scope, "path": LIST, "method": "GET", "state": state}, receive, send)
            return

        async def within(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                target = headers.get("location", "")
                if target.startswith("/") and not target.startswith(UNDER):
                    headers["location"] = f"{console.prefix}{target}"
            await send(message)

        await self._app({**scope, "path": f"/{rest}", "state": {**scope["state"], "console": console}}, receive, within)
