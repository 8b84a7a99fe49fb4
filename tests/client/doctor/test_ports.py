"""What a port speaks."""

from __future__ import annotations

import pytest

from kpybroker.client.doctor import ports
from kpybroker.client.doctor.ports import is_loopback, is_unspecified, resolve, speech
from tests.support.network.wire_server import bytes_server, kafka_server


def test_kafka() -> None:
    with kafka_server({}) as address:
        assert speech(address, 5).kind == ports.KAFKA


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", ports.HTTP),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ports.OTHER),
        (b"\x15\x03\x03\0\2\2\x0a", ports.TLS),
        (b"", ports.CLOSED),
        (None, ports.SILENT),
    ],
)
def test_another_protocol(said: bytes | None, kind: str) -> None:
    with bytes_server(lambda words: said) as address:
        found = speech(address, 0.2)
    assert found.kind == kind
    assert (found.head != b"") == (kind == ports.OTHER)


@pytest.mark.parametrize(
    "said", [b"Zookeeper version: 3.8.4", b"srvr is not executed because it is not in the whitelist.\n"]
)
def test_zookeeper_replies_to_its_own_words_only(said: bytes) -> None:
    with bytes_server(lambda words: said if words == b"srvr" else b"") as address:
        assert speech(address, 0.5).kind == ports.ZOOKEEPER


def test_http_may_respond_only_to_http() -> None:
    with bytes_server(lambda words: b"HTTP/1.0 200 OK\r\n" if words.startswith(b"GET") else b"") as address:
        assert speech(address, 0.5).kind == ports.HTTP


def test_addresses() -> None:
    assert resolve("127.0.0.1", 1) == ["127.0.0.1"]
    assert [is_loopback(h) for h in ("localhost", "127.8.8.8", "::1", "10.0.0.1", "host")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert [is_unspecified(h) for h in ("0.0.0.0", "::", "host", "127.0.0.1")] == [True, True, False, False]
