"""Requests to a Jolokia: several in one POST, each POST on a connection of its own. Raises CommandError, nothing else.

Numbers stay the texts that were sent: what Java wrote as 1.0E-5 is printed as 1.0E-5.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.metrics.address import Address

RESPONSE_BYTES_MAX: Final = 256 << 20
PIECE_BYTES: Final = 64 << 10
REQUESTS_MAX: Final = 100
"""In one POST: more, our endpoint refuses."""
ERROR_CHARS_MAX: Final = 300
IS_SERVED: Final = "start the broker with kpybroker.metrics.port, or Kafka with Jolokia's agent, and give that address"
Response = dict[str, Any]


class Number(str):
    """A number as it was sent."""


class NotYet(CommandError):
    """What may be there a moment later, while a broker starts."""


class Jolokia(NamedTuple):
    """`authorization` is a header. `timeout_s` is for one POST."""

    address: Address
    timeout_s: float
    authorization: str | None = None

    def ask(self, requests: Sequence[dict[str, Any]]) -> list[Response]:
        """A response for each request; Numbers in it, `status` too, are `Number`s. Raises CommandError."""
        responses: list[Response] = []
        for start in range(0, len(requests), REQUESTS_MAX):
            some = requests[start : start + REQUESTS_MAX]
            responses += self._understood(self._post(json.dumps(some).encode()), len(some))
        return responses

    def _post(self, body: bytes) -> bytes:
        where, address = self.address.text, self.address
        deadline = time.monotonic() + self.timeout_s
        connection: http.client.HTTPConnection
        if address.scheme == "https":
            connection = http.client.HTTPSConnection(address.host, address.port, timeout=self.timeout_s)
        else:
            connection = http.client.HTTPConnection(address.host, address.port, timeout=self.timeout_s)
        headers = {"Content-Type": "application/json", "Connection": "close"}
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        try:
            connection.request("POST", f"{address.path}/", body, headers)
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                raise _refused(where, response.status, has_login=self.authorization is not None)
            return self._body(response, deadline)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _unreachable(error, self) from None
        finally:
            connection.close()

    def _body(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        found = bytearray()
        while piece := response.read1(PIECE_BYTES):
            found += piece
            if len(found) > RESPONSE_BYTES_MAX:
                raise CommandError(
                    f"{self.address.text} sends more than {RESPONSE_BYTES_MAX >> 20} MiB at once",
                    "ask for fewer MBeans: --object-name",
                )
            if time.monotonic() > deadline:
                raise TimeoutError
        if response.length:  # `read1` takes the end of the stream for that of the body
            raise http.client.IncompleteRead(b"", response.length)
        return bytes(found)

    def _understood(self, body: bytes, count: int) -> list[Response]:
        try:
            found = json.loads(body, parse_int=Number, parse_float=Number, parse_constant=Number)
        except (ValueError, RecursionError):
            raise self._no_jolokia("it does not send JSON") from None
        if isinstance(found, dict) and "error" in found:
            raise failed(found)
        if not isinstance(found, list) or len(found) != count:
            raise self._no_jolokia("it does not send a response for each request")
        if not all(isinstance(one, dict) and "status" in one for one in found):
            raise self._no_jolokia("its responses have no status")
        return found

    def _no_jolokia(self, reason: str) -> CommandError:
        return CommandError(f"{self.address.text} is no Jolokia: {reason}", IS_SERVED)


def failed(response: Response) -> CommandError:
    """What Jolokia reports."""
    text = str(response.get("error") or f"status {response.get('status')}")
    fix = "grant it in the policy of Jolokia's agent" if str(response.get("status")) == "403" else "look at its log"
    return CommandError(f"Jolokia reports: {text[:ERROR_CHARS_MAX]}", fix)


def _refused(where: str, status: int, *, has_login: bool) -> CommandError:
    if status in (401, 407):
        if has_login:
            return CommandError(f"{where} does not accept the login (HTTP {status})", "check the file of --auth-file")
        return CommandError(f"{where} asks for a login (HTTP {status})", "give --auth-file FILE with USER:PASSWORD")
    if status == 403:
        return CommandError(f"{where} refuses this client (HTTP 403)", "allow its address and POST in Jolokia's policy")
    if status == 404:
        return CommandError(f"{where} does not exist (HTTP 404)", f"give the URL with its path; {IS_SERVED}")
    if status == 405:
        return CommandError(f"{where} refuses POST (HTTP 405)", IS_SERVED)
    kind = NotYet if status >= 500 else CommandError
    return kind(f"{where} responds with HTTP {status}", IS_SERVED)


def _unreachable(error: Exception, asked: Jolokia) -> CommandError:
    """Why a POST failed."""
    where, host = asked.address.text, asked.address.host
    match error:
        case ssl.SSLCertVerificationError():
            fix = "name the file of its authority in the environment: SSL_CERT_FILE"
            return CommandError(f"the certificate of {where} is not valid: {error.verify_message}", fix)
        case ssl.SSLError():
            return CommandError(f"{where} does not speak TLS: {error.reason or error}", "give it with http://")
        case socket.gaierror():
            return NotYet(f"the name {host} cannot be resolved: {error.strerror}", "give a name or an address")
        case TimeoutError():
            fix = "look whether the broker is overloaded; --timeout gives it more time"
            if asked.address.scheme == "https":
                fix = "give it with http:// if it has no TLS; --timeout gives it more time"
            return NotYet(f"{where} did not respond within {asked.timeout_s:g} s", fix)
        case ConnectionRefusedError():
            return NotYet(f"{where} refuses connections", IS_SERVED)
        case http.client.IncompleteRead():
            return NotYet(f"{where} closed the connection within its response", "try again; look at its log")
        case ConnectionError():
            fix = "give the port of its metrics, not Kafka's own, and https:// if it has TLS"
            return NotYet(f"{where} closed the connection without a response", fix)
        case http.client.HTTPException() | ValueError():
            fix = "give the port of its metrics, not Kafka's own, and https:// if it has TLS"
            return CommandError(f"{where} does not speak HTTP", fix)
        case OSError():
            return NotYet(f"{where} cannot be reached: {error.strerror or error}", "check address and network")
        case _:
            raise error
