"""What clients of other protocols begin with is recognized, and nothing that could be a frame is."""

from __future__ import annotations

import ssl

import pytest

from kpybroker.broker.network import other_protocols
from kpybroker.broker.network.other_protocols import OtherProtocol, OtherProtocolError, recognized, size_error

LARGEST_FRAME = 104_857_600
"""Kafka's default of `socket.request.max.bytes`."""


def tls_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


FIRST_BYTES = {
    "openssl": (tls_hello(), other_protocols.TLS),
    "tls 1.2": (b"\x16\x03\x03\x02\x00", other_protocols.TLS),
    "GET": (b"GET /metrics HTTP/1.1\r\n", other_protocols.HTTP),
    "OPTIONS": (b"OPTIONS * HTTP/1.1\r\n", other_protocols.HTTP),
    "CONNECT": (b"CONNECT broker:9092 HTTP/1.1\r\n", other_protocols.HTTP),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\n", other_protocols.HTTP_2),
    "SSH": (b"SSH-2.0-OpenSSH_9.2\r\n", other_protocols.SSH),
    "PROXY 1": (b"PROXY TCP4 10.0.0.1 10.0.0.2 50000 9092\r\n", other_protocols.PROXY),
    "PROXY 2": (b"\r\n\r\n\0\r\nQUIT\n\x21\x11", other_protocols.PROXY),
    "Redis": (b"*2\r\n$5\r\nHELLO\r\n", other_protocols.REDIS),
    "Redis inline": (b"PING\r\n", other_protocols.REDIS),
    "AMQP": (b"AMQP\0\0\x09\x01", other_protocols.AMQP),
    "MQTT": (b"\x10\x25\0\4MQTT", other_protocols.MQTT),
    "ZooKeeper": (b"srvr", other_protocols.ZOOKEEPER),
}


@pytest.mark.parametrize(("sent", "protocol"), FIRST_BYTES.values(), ids=FIRST_BYTES)
def test_the_first_bytes_of_another_protocol_are_recognized(sent: bytes, protocol: OtherProtocol) -> None:
    size = int.from_bytes(sent[:4], "big", signed=True)
    assert not 0 <= size <= LARGEST_FRAME, "Kafka clients send such frames"
    error = size_error(size, "a rule")
    assert isinstance(error, OtherProtocolError)
    assert error.protocol is protocol


def test_the_text_for_a_tls_client_names_the_security_protocol_of_the_listener() -> None:
    error = size_error(int.from_bytes(tls_hello()[:4], "big"), "a rule")
    assert isinstance(error, OtherProtocolError)
    assert error.text("SASL_PLAINTEXT").startswith(
        "TLS handshake on a SASL_PLAINTEXT listener: set security.protocol=SASL_PLAINTEXT in the client"
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (-1, "frame of -1 bytes; a rule"),
        (2**31 - 1, "frame of 2147483647 bytes; a rule"),
        (int.from_bytes(b"hell", "big"), "frame of 1751477356 bytes ('hell' as text); a rule"),
    ],
)
def test_any_other_size_is_reported_as_a_size(size: int, text: str) -> None:
    error = size_error(size, "a rule")
    assert not isinstance(error, OtherProtocolError)
    assert str(error) == text


def test_no_size_that_is_accepted_by_default_is_another_protocols() -> None:
    assert not any(recognized(size.to_bytes(4, "big")) for size in range(0, LARGEST_FRAME, 4099))
    assert all(int.from_bytes(first, "big") > LARGEST_FRAME for first in other_protocols._BY_FIRST_BYTES)
