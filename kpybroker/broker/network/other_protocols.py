"""Clients of other protocols, recognized by their first four bytes, where a Kafka client has the size of a frame, and
on a listener with TLS the header of a record.

Only a size that is refused anyway is looked at, so no request costs more. A protocol whose first bytes are a small
number (PostgreSQL) or whose server speaks first (MySQL) is not recognized.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpybroker.wire.errors import ProtocolError

_HTTP_BODY = b"This is the port of a Kafka broker, which does not serve HTTP. Connect to it with a Kafka client.\n"
HTTP_REPLY = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
    % (len(_HTTP_BODY), _HTTP_BODY)
)
"""The same for every request: nothing that was sent is in it."""


@dataclass(frozen=True, slots=True)
class OtherProtocol:
    """What the log says of a client, with `{listener}` for the listener's security protocol, and what it receives."""

    text: str
    reply: bytes = b""


TLS = OtherProtocol(
    "TLS handshake on a {listener} listener: set security.protocol={listener} in the client, or connect to a listener "
    "with TLS"
)
PLAIN_KAFKA = OtherProtocol(
    "plain-text Kafka request on a {listener} listener, which is encrypted: set security.protocol={listener} in the "
    "client, or connect to a listener without TLS"
)
NOT_TLS = OtherProtocol(
    "what was sent on a {listener} listener is not a TLS handshake: set security.protocol={listener}"
)
HTTP = OtherProtocol("HTTP request on a Kafka port: connect with a Kafka client", HTTP_REPLY)
HTTP_2 = OtherProtocol("HTTP/2 request on a Kafka port: connect with a Kafka client")
SSH = OtherProtocol("SSH client on a Kafka port: check the port that it connects to")
PROXY = OtherProtocol("PROXY protocol header, which is not supported: switch it off in the load balancer")
REDIS = OtherProtocol("Redis client on a Kafka port: check the port that it connects to")
AMQP = OtherProtocol("AMQP client on a Kafka port: connect with a Kafka client")
MQTT = OtherProtocol("MQTT client on a Kafka port: connect with a Kafka client")
ZOOKEEPER = OtherProtocol("ZooKeeper command on a Kafka port: connect to ZooKeeper")

_BY_FIRST_BYTES = {
    **dict.fromkeys((b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"PATC", b"OPTI", b"CONN", b"TRAC"), HTTP),
    b"PRI ": HTTP_2,
    b"SSH-": SSH,
    b"PROX": PROXY,
    b"\r\n\r\n": PROXY,  # its version 2
    b"AMQP": AMQP,
    **dict.fromkeys((b"PING", b"*1\r\n", b"*2\r\n", b"*3\r\n", b"*4\r\n"), REDIS),
    **dict.fromkeys((b"ruok", b"stat", b"srvr", b"mntr", b"conf", b"cons", b"envi", b"isro"), ZOOKEEPER),
}
_TLS_HANDSHAKE = b"\x16\x03"
_MQTT_CONNECT = 0x10
_MQTT_NAME_LENGTH = b"\0\4"


class OtherProtocolError(ProtocolError):
    """A client that does not speak Kafka's protocol."""

    def __init__(self, protocol: OtherProtocol) -> None:
        super().__init__(protocol.text)
        self.protocol = protocol

    def text(self, security_protocol: str) -> str:
        """The cause and what to do, on a listener with this security protocol."""
        return self.protocol.text.format(listener=security_protocol)


def size_error(size: int, rule: str) -> ProtocolError:
    """The error of a frame whose size breaks `rule`; what was sent instead of a frame, where that is recognized."""
    first = size.to_bytes(4, "big", signed=True)
    protocol = recognized(first)
    if protocol is not None:
        return OtherProtocolError(protocol)
    shown = f" ({first.decode()!r} as text)" if first.isascii() and first.decode().isprintable() else ""
    return ProtocolError(f"frame of {size} bytes{shown}; {rule}")


def recognized(first: bytes) -> OtherProtocol | None:
    """The protocol whose clients begin with these four bytes."""
    if first[:2] == _TLS_HANDSHAKE:
        return TLS
    if first[0] == _MQTT_CONNECT and first[2:] == _MQTT_NAME_LENGTH:
        return MQTT
    return _BY_FIRST_BYTES.get(first)


def instead_of_tls(first: bytes) -> OtherProtocol:
    """What a client speaks whose first bytes, up to four, are not those of a TLS handshake."""
    if first[:1] == b"\0":
        return PLAIN_KAFKA
    return (recognized(first) if len(first) == 4 else None) or NOT_TLS
