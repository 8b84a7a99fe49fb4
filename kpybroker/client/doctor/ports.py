"""Names, connections, and what a port speaks."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from contextlib import suppress
from typing import Any, Final, NamedTuple

from kpybroker.client.connect import tls
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import CLIENT_ID, Settings
from kpybroker.client.connect.wire import SIZE, WireBroker
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsRequest

PROBE_S_MAX: Final = 5.0
HEAD_BYTES: Final = 64
KAFKA, TLS, HTTP, ZOOKEEPER, CLOSED, SILENT, OTHER = "kafka", "tls", "http", "zookeeper", "closed", "silent", "other"

Address = tuple[str, int]


class Speech(NamedTuple):
    """What a port speaks; `head` are its first bytes where nothing else is known of it."""

    kind: str
    head: bytes = b""


def resolve(host: str, port: int) -> list[str]:
    """The host's addresses, in the system's order. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def connect_time_ms(ip: str, port: int, settings: Settings) -> float:
    """How long a connection takes. Raises OSError.

    A client that speaks TLS does so before it leaves: a broker warns of one that connects and goes.
    """
    begin = time.perf_counter()
    with socket.create_connection((ip, port), timeout=min(settings.timeout_s, PROBE_S_MAX)) as connection:
        taken = time.perf_counter() - begin
        if tls.is_tls(settings.protocol):
            with suppress(OSError):
                trusting(settings).wrap_socket(connection, server_hostname=ip).close()
    return taken * 1000


def trusting(settings: Settings) -> ssl.SSLContext:
    """TLS as the client is configured, with its own certificate; no certificate of a broker is checked."""
    try:
        context = tls.context(settings.properties)
    except CommandError:
        return tls.unverified()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def is_loopback(host: str) -> bool:
    """Whether this name or address means the machine it is used on."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_unspecified(host: str) -> bool:
    """0.0.0.0 and ::, which no client can connect to."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def speech(address: Address, timeout_s: float, context: ssl.SSLContext | None = None) -> Speech:
    """What the port speaks: first a plain request of Kafka's, then TLS, HTTP and ZooKeeper's words. Raises OSError.

    With a context, the client speaks TLS, and that is tried first: what is right leaves no warning in the broker's log.
    """
    limit = min(timeout_s, PROBE_S_MAX)
    if context is not None and _accepts_tls(address, limit, context):
        return Speech(TLS)
    head = _say(address, _kafka_request(), limit)
    found = _recognize(head)
    if found.kind in (KAFKA, HTTP):
        return found
    if found.kind == TLS or _accepts_tls(address, limit, context or tls.unverified()):
        return Speech(TLS)
    for words in (b"GET / HTTP/1.0\r\n\r\n", b"srvr"):
        other = _recognize(_say(address, words, limit))
        if other.kind in (HTTP, ZOOKEEPER):
            return other
    return found


def _kafka_request() -> bytes:
    header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, 1, CLIENT_ID))
    body = encode(ApiVersionsRequest(), 0)
    return SIZE.pack(len(header) + len(body)) + header + body


def _say(address: Address, words: bytes, timeout_s: float) -> bytes | None:
    """The first bytes of the response; empty if it closes, None if it says nothing."""
    with socket.create_connection(address, timeout=timeout_s) as connection:
        try:
            connection.sendall(words)
            return connection.recv(HEAD_BYTES)
        except TimeoutError:
            return None
        except OSError:
            return b""


def _recognize(head: bytes | None) -> Speech:
    if head is None:
        return Speech(SILENT)
    if not head:
        return Speech(CLOSED)
    if head[:2] in (b"\x15\x03", b"\x16\x03"):
        return Speech(TLS)
    if head.startswith(b"HTTP/"):
        return Speech(HTTP)
    if head.startswith((b"Zookeeper version", b"srvr is not executed", b"This ZooKeeper")):
        return Speech(ZOOKEEPER)
    if len(head) >= 8 and head[4:8] == b"\0\0\0\1":  # our correlation id
        return Speech(KAFKA)
    return Speech(OTHER, head)


def _accepts_tls(address: Address, timeout_s: float, context: ssl.SSLContext) -> bool:
    try:
        with (
            socket.create_connection(address, timeout=timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=address[0]),
        ):
            return True
    except ssl.SSLError as error:
        # an alert is TLS too: the broker may want a certificate, or another version
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


def verified(address: Address, settings: Settings) -> tuple[dict[str, Any], str | None]:
    """The certificate after a handshake as configured, and TLS's version. Raises OSError or CommandError."""
    with (
        socket.create_connection(address, timeout=min(settings.timeout_s, PROBE_S_MAX)) as plain,
        tls.context(settings.properties).wrap_socket(plain, server_hostname=address[0]) as secured,
    ):
        return dict(secured.getpeercert() or {}), secured.version()


def open_broker(address: Address, settings: Settings, *, encrypted: bool) -> WireBroker:
    """A connection that knows the broker's versions; no certificate is checked. Raises CommandError."""
    context = trusting(settings) if encrypted else None
    broker = WireBroker(address, settings._replace(timeout_s=min(settings.timeout_s, PROBE_S_MAX)), context=context)
    try:
        broker.handshake()
    except BaseException:
        broker.close()
        raise
    return broker
