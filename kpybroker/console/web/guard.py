"""`Guard`: what holds for every request that the door lets in, before a page sees it, and the headers of responses.

- `door_of` says what is let in: by which names, and from which sites (`kpybroker.http.doors`).
- Without a session, where there is a login, every path but the login's and the static files leads to the login.
- What a proxy says, its user and whether browsers use TLS, counts from the addresses of trusted proxies only.
- Whose address it is that wrong passwords are counted for: a proxy's, unless that was named with `--trusted-proxy`.

The token of a form is checked by `forms.read_form`.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kpybroker.console.options import OWN_MACHINE, ConsoleOptions
from kpybroker.console.web.forms import FORM_BYTES_MAX
from kpybroker.console.web.sessions import COOKIE, SESSION_S_MAX, Sessions
from kpybroker.http.asgi import App
from kpybroker.http.doors import ANY_NAME, ANYWHERE, FORM, Door, names_of
from kpybroker.http.messages import HttpError

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OPEN: Final = ("/login", "/static/")
TYPES: Final = frozenset(("", FORM))


def door_of(options: ConsoleOptions) -> Door:
    """What is let in. Behind the login with a password, a page that has its name resolved to ours has no session to
    misuse; a proxy's header it could send itself, where it is on the proxy's machine."""
    is_any = options.host in ANYWHERE and not options.hosts and options.password is not None
    is_any = is_any and options.user_header is None
    names = (*options.hosts, *((ANY_NAME,) if is_any else ()))
    return Door(names_of(options.host, socket.gethostname(), names), TYPES, FORM_BYTES_MAX)


def not_let_in(refusal: HttpError) -> App:
    """The response to what the door refuses."""
    fix = "start the console with --allowed-host NAME" if refusal.status == 421 else refusal.fix
    return PlainTextResponse(f"{refusal.cause}\nfix: {fix}\n", refusal.status, HEADERS)


class Guard:
    """Middleware. It sets `session` and `user` of the request's state; `user` is whom a proxy names, or None."""

    def __init__(self, app: ASGIApp, options: ConsoleOptions, sessions: Sessions) -> None:
        self._app = app
        self._options = options
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        session = request.cookies.get(COOKIE)
        is_new = session is None
        state = scope.setdefault("state", {})
        state["session"] = session or self._sessions.new_id()
        state["user"] = None
        state["address"] = self._address(scope, request)
        if self._is_proxy(scope):
            state["user"] = request.headers.get(self._options.user_header or "") or None
            if request.headers.get("x-forwarded-proto", "").lower() == "https":
                scope["scheme"] = "https"
        refusal = self._refusal(scope, request, session)

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "no-store"
                    if is_new and "set-cookie" not in headers:
                        headers["Set-Cookie"] = cookie(scope, scope["state"]["session"])
            await send(message)

        await (refusal or self._app)(scope, receive, secured)

    def _refusal(self, scope: Scope, request: HTTPConnection, session: str | None) -> Response | None:
        if scope["path"].startswith(OPEN) or self._may_pass(scope, session):
            return None
        if self._options.password is None:
            return PlainTextResponse(self._not_through_the_proxy(scope, request), 401)
        path = scope["path"] + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        return RedirectResponse(f"/login?next={quote(path)}", 303)

    def _not_through_the_proxy(self, scope: Scope, request: HTTPConnection) -> str:
        header = self._options.user_header or ""
        if request.headers.get(header):
            return f"{header} counts from trusted proxies only\nfix: start the console with --trusted-proxy ADDRESS\n"
        return f"the proxy did not send {header}\nfix: open the console through the proxy\n"

    def _is_proxy(self, scope: Scope) -> bool:
        return self._is_of_proxies(_peer(scope))

    def _is_of_proxies(self, text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._options.proxies)

    def _address(self, scope: Scope, request: HTTPConnection) -> str:
        """Where a request comes from: what proxies say counts only if they were named, since this machine is one by
        default, and any user of it could say so."""
        found = _peer(scope)
        if self._options.proxies is OWN_MACHINE:
            return found
        for text in reversed(request.headers.get("x-forwarded-for", "").split(",")):
            if not self._is_of_proxies(found):
                break
            found = text.strip() or found
        return found

    def _may_pass(self, scope: Scope, session: str | None) -> bool:
        if scope["state"]["user"] is not None:
            return True
        return not self._options.has_login or self._sessions.is_logged_in(session)


def cookie(scope: Scope, session: str) -> str:
    """The value of Set-Cookie for a session."""
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{COOKIE}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={int(SESSION_S_MAX)}{secure}"


def _peer(scope: Scope) -> str:
    found: str = (scope.get("client") or ("",))[0]
    return found
