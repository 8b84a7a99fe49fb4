"""`Guard`: what holds for every request, before a page sees it, and the headers of every response.

- A request for an unknown host name is refused, so that no other site reaches the console by DNS rebinding.
- Without a session, where there is a login, every path but the login's and the static files leads to the login.
- A request that changes something must come from a page of the console (`Sec-Fetch-Site`, `Origin`); its form's token
  is checked by `forms.read_form`.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kpybroker.console.options import LOOPBACK, ConsoleOptions
from kpybroker.console.web.sessions import COOKIE, SESSION_S_MAX, Sessions

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OPEN: Final = ("/login", "/static/")
ANYWHERE: Final = ("0.0.0.0", "::", "")


class Guard:
    """Middleware. It sets `session` of the request's state."""

    def __init__(self, app: ASGIApp, options: ConsoleOptions, sessions: Sessions) -> None:
        self._app = app
        self._options = options
        self._sessions = sessions
        bound = () if options.host in ANYWHERE else (options.host,)
        self._hosts = {name.lower() for name in (*LOOPBACK, *bound, *options.hosts)}
        self._any_host = options.host in ANYWHERE and not options.hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        session = request.cookies.get(COOKIE)
        is_new = session is None
        scope.setdefault("state", {})["session"] = session or self._sessions.new_id()
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
        if not self._any_host and _host_name(request.headers) not in self._hosts:
            text = "this console does not serve this host name\nfix: start it with --allowed-host NAME\n"
            return PlainTextResponse(text, 421)
        if scope["method"] not in ("GET", "HEAD") and not _is_same_origin(request.headers):
            return PlainTextResponse("this request is from another site\nfix: use the console's own pages\n", 403)
        if scope["path"].startswith(OPEN) or self._may_pass(request, session):
            return None
        if self._options.password is None:
            text = f"the proxy did not send {self._options.user_header}\nfix: open the console through the proxy\n"
            return PlainTextResponse(text, 401)
        path = scope["path"] + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        return RedirectResponse(f"/login?next={quote(path)}", 303)

    def _may_pass(self, request: HTTPConnection, session: str | None) -> bool:
        header = self._options.user_header
        if header is not None and request.headers.get(header):
            return True
        return not self._options.has_login or self._sessions.is_logged_in(session)


def cookie(scope: Scope, session: str) -> str:
    """The value of Set-Cookie for a session."""
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{COOKIE}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={int(SESSION_S_MAX)}{secure}"


def _host_name(headers: Headers) -> str:
    try:
        return (urlsplit(f"//{headers.get('host', '')}").hostname or "").lower()
    except ValueError:
        return ""


def _is_same_origin(headers: Headers) -> bool:
    """As the browser says; a client that is no browser sends neither header, and has no cookie to misuse."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")
