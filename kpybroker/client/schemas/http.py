"""HTTP for what is not Kafka: metrics and schemas. Bounded in time and size; a password in an address is never shown.

Proxies and other settings of the environment are left out: the addresses are given by the operator. Redirects are not
followed.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import httpx

from kpybroker.client.connect.errors import CommandError, keep_secret, usage

STEP_S_MAX: Final = 2.0
"""To connect, and for each piece."""
WHOLE_S_MAX: Final = 4.0
OK: Final = 200
NOT_FOUND: Final = 404


UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403


class BadStatus(CommandError):
    """A response with another status than 200."""

    def __init__(self, url: str, status: int) -> None:
        fix = "give the login of a user who may read it" if status in (UNAUTHORIZED, FORBIDDEN) else "check the address"
        super().__init__(f"{shown(url)} responds with status {status}", fix)
        self.status = status


def check_address(option: str, url: str) -> str:
    """The address without a slash at its end; its password is a secret from now on. Raises CommandError."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good:
        raise usage(f"{option} is no address", "write http://HOST:PORT/PATH")
    if parts.password:
        keep_secret([parts.password, unquote(parts.password)])
    return url.rstrip("/")


def shown(url: str) -> str:
    """The address without user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def new_client(login: str | None = None, step_s: float = STEP_S_MAX) -> httpx.Client:
    """A client for any threads; `login` is USER:PASSWORD. `step_s` is how long it waits for each piece."""
    trusted = ssl.create_default_context()  # the system's authorities, or SSL_CERT_FILE
    user, _, password = (login or "").partition(":")
    auth = None if login is None else httpx.BasicAuth(user, password)
    return httpx.Client(timeout=step_s, trust_env=False, follow_redirects=False, verify=trusted, auth=auth)


def lines(client: httpx.Client, url: str, bytes_max: int) -> Iterator[str]:
    """The lines of a response. Raises CommandError."""
    deadline, size = time.monotonic() + WHOLE_S_MAX, 0
    try:
        with client.stream("GET", url) as response:
            if response.status_code != OK:
                raise BadStatus(url, response.status_code)
            for line in response.iter_lines():
                size += len(line)
                if size > bytes_max:
                    raise CommandError(f"{shown(url)} sends more than {bytes_max} bytes", "check the address")
                if time.monotonic() > deadline:
                    raise CommandError(f"{shown(url)} takes longer than {WHOLE_S_MAX:g} seconds", "try again later")
                yield line
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        why = str(error) or type(error).__name__
        raise CommandError(
            f"{shown(url)} cannot be read: {why}", "start what serves it, or check the address"
        ) from None


class Bounds(NamedTuple):
    """What one exchange may take: bytes of the response, seconds until it is whole; and how JSON is named."""

    bytes_max: int
    whole_s: float = WHOLE_S_MAX
    media: str = "application/vnd.schemaregistry.v1+json"


def exchange(client: httpx.Client, method: str, url: str, bounds: Bounds, body: Any = None) -> tuple[int, Any]:
    """The status of a response and its JSON; None for what is not JSON. `body` is sent as JSON. Raises CommandError."""
    deadline, data = time.monotonic() + bounds.whole_s, bytearray()
    headers = {"Accept": ", ".join(dict.fromkeys((bounds.media, "application/json")))}
    if body is not None:
        headers["Content-Type"] = bounds.media
    content = None if body is None else json.dumps(body).encode()
    try:
        with client.stream(method, url, content=content, headers=headers) as response:
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > bounds.bytes_max:
                    raise CommandError(f"{shown(url)} sends more than {bounds.bytes_max} bytes", "check the address")
                if time.monotonic() > deadline:
                    cause = f"{shown(url)} takes longer than {bounds.whole_s:g} seconds"
                    raise CommandError(cause, "try again later")
            status = response.status_code
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        why = str(error) or type(error).__name__
        fix = "start what serves it, or check the address; what changes something may have been done"
        raise CommandError(f"{shown(url)} does not respond: {why}", fix) from None
    try:
        return status, json.loads(data)
    except (ValueError, RecursionError):
        return status, None
