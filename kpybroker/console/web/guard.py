"""`Guard`: what holds for every request, before a page sees it, and the headers of every response.

- A request for an unknown host name is refused, so that no other site reaches the console by DNS rebinding.
- Without a session, where there is a login, every path but the login's and the static files leads to the login.
- What a proxy says, its user and whether browsers use TLS, counts from the addresses of trusted proxies only.
- A request that changes something must come from a page of the console (`Sec-Fetch-Site`, `Origin`); its form's token
  is checked by `forms.read_form`.
"""

from __future__ import annotations

from ipaddress import ip_address
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
    """Middleware. It sets `session` and `user` of the request's state; `user` is whom a proxy names, or None."""

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
        state = scope.setdefault("state", {})
        state["session"] = session or self._sessions.new_id()
        state["user"] = None
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
        if not self._any_host and _host_name(request.headers) not in self._hosts:
            text = "this console does not serve this host name\nfix: start it with --allowed-host NAME\n"
            return PlainTextResponse(text, 421)
        if scope["method"] not in ("GET", "HEAD") and not _is_same_origin(request.headers):
            return PlainTextResponse("this request is from another site\nfix: use the console's own pages\n", 403)
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
        try:
            peer = ip_address((scope.get("client") or ("",))[0])
        except ValueError:
            return False
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self._options.proxies)

    def _may_pass(self, scope: Scope, session: str | None) -> bool:
        if scope["state"]["user"] is not None:
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
