"""`Forwarder`: a follower sends what writes to the leader, and passes its response on. Confluent's header marks it."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

import httpx

from kpybroker.registry.errors import FORWARDING_FAILED, NO_LEADER, RegistryError

logger = logging.getLogger("kpybroker.registry")

HEADER: Final = "X-Forward"
PASSED: Final = ("authorization", "content-type", "accept")
WAIT_S_MAX: Final = 20.0


class Response(NamedTuple):
    """As the leader sent it."""

    status: int
    content: bytes
    content_type: str


class Forwarder:
    """Of any threads. `ca_file` has the authorities that the instances' certificates are checked with."""

    def __init__(self, ca_file: str | None = None) -> None:
        context = ssl.create_default_context(cafile=ca_file)
        self._client = httpx.Client(timeout=WAIT_S_MAX, trust_env=False, follow_redirects=False, verify=context)

    def send(self, leader: str | None, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Response:
        """The leader's response. Raises RegistryError 50003 or 50004; a request is forwarded once."""
        if leader is None or headers.get(HEADER.lower()):
            raise RegistryError(NO_LEADER, "Leader not known.")
        passed = {name.encode(): headers[name].encode("latin-1") for name in PASSED if name in headers}
        sent = {**passed, HEADER.encode(): b"true"}
        try:
            made = self._client.request(method, leader + _as_received(target), headers=sent, content=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            logger.warning("a request was not forwarded leader=%s cause=%s", leader, error)
            why = f"The request could not be forwarded: the leader, {leader}, cannot be reached."
            raise RegistryError(FORWARDING_FAILED, why) from None
        return Response(made.status_code, made.content, made.headers.get("content-type", ""))


def _as_received(target: str) -> str:
    """A path and a query in which the client's library resolves nothing: `..` may be a subject, and `#` part of one."""
    path, mark, query = target.replace("#", "%23").partition("?")
    parts = (part.replace(".", "%2E") if part in (".", "..") else part for part in path.split("/"))
    return "/".join(parts) + mark + query
