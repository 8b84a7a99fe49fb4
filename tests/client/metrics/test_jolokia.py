"""Addresses, logins, and what is said of a port that is no Jolokia."""

from __future__ import annotations

import socket
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.metrics import jolokia
from kpybroker.client.metrics.address import parse_address
from kpybroker.client.metrics.jolokia import REQUESTS_MAX, Jolokia
from tests.support.network.jolokia_fake import FakeJolokia, serving
from tests.support.network.ports import free_port
from tests.support.programs.command_line import invoke

ONE = [{"type": "read", "mbean": "a:b=c"}]


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("localhost:9404", "http://localhost:9404/jolokia"),
        ("[::1]:9404", "http://[::1]:9404/jolokia"),
        ("http://kafka.example.com", "http://kafka.example.com:80/jolokia"),
        ("https://kafka.example.com/", "https://kafka.example.com:443/jolokia"),
        ("https://kafka.example.com:8778/a/jolokia/", "https://kafka.example.com:8778/a/jolokia"),
    ],
)
def test_an_address_is_a_host_and_port_or_an_url(text: str, url: str) -> None:
    assert parse_address(text).text == url


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost", "9404", ":9404", "localhost:", "localhost:0", "localhost:70000", "localhost:x", "[::1"),
        *("ftp://localhost:9404", "http://", "http://h:1/?a=b", "http://h:1/#a", "h:1\r\nX: y", "h :1", "hö:1"),
    ],
)
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(CommandError, match="is no address") as caught:
        parse_address(text)
    assert caught.value.exit_code == 2
    assert caught.value.fix.startswith("give HOST:PORT, or an URL")


def test_a_password_in_the_address_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, "metrics", "list", "http://alice:alice-secret@localhost:9404")
    assert result.code == 2
    assert result.err.splitlines() == [
        "kpybroker: the address has a user name in it",
        "fix: write USER:PASSWORD into a file, and give --auth-file FILE",
    ]


def test_a_login_is_read_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "login"
    file.write_bytes("alice:sécret:1\r\nmore".encode())
    with serving(FakeJolokia({"a:b=c": {"Value": 1}})) as fake:
        assert invoke(monkeypatch, "metrics", "list", fake.address, "--auth-file", str(file)).lines == ["a:b=c"]
        kind, _, encoded = fake.headers["authorization"].partition(" ")
        assert (kind, b64decode(encoded).decode()) == ("Basic", "alice:sécret:1")
        fake.replace = lambda requests: (200, b'{"error": "not s\xc3\xa9cret:1", "status": 500}')
        result = invoke(monkeypatch, "metrics", "list", fake.address, "--auth-file", str(file))
        assert result.err.splitlines()[0] == "kpybroker: Jolokia reports: not ***"


@pytest.mark.parametrize(
    ("text", "cause"), [(None, "cannot be read"), (b"", "is not USER:PASSWORD"), (b":x", "is not USER:PASSWORD")]
)
def test_a_file_without_a_login_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: bytes | None, cause: str
) -> None:
    file = tmp_path / "login"
    if text is not None:
        file.write_bytes(text)
    result = invoke(monkeypatch, "metrics", "list", "127.0.0.1:1", "--auth-file", str(file))
    assert result.code == 2
    assert cause in result.err.splitlines()[0]


@contextmanager
def port_that(serves: Callable[[socket.socket], None]) -> Iterator[str]:
    """An address whose connections `serves` has, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        serves(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def says(data: bytes) -> Callable[[socket.socket], None]:
    """Receives a request and its body, sends `data`, and closes."""

    def serve(connection: socket.socket) -> None:
        received = b""
        while b"a:b=c" not in received and (piece := connection.recv(65536)):
            received += piece
        connection.sendall(data)

    return serve


def drips(connection: socket.socket) -> None:
    """A body without an end."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(bytes(1024))


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


NO_JOLOKIA = r"is no Jolokia: "


@pytest.mark.parametrize(
    ("data", "cause", "fix"),
    [
        (b"", "closed the connection without a response", "not Kafka's own"),
        (b"SSH-2.0-OpenSSH_9\r\n", "does not speak HTTP", "give the port of its metrics"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", r"asks for a login \(HTTP 401\)", "--auth-file FILE"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", r"refuses this client \(HTTP 403\)", "policy"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", r"does not exist \(HTTP 404\)", "give the URL with its path"),
        (b"HTTP/1.1 405 Not Allowed\r\n\r\n", r"refuses POST \(HTTP 405\)", "kpybroker.metrics.port"),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "responds with HTTP 302", "kpybroker.metrics.port"),
        (ok(b"<html>"), f"{NO_JOLOKIA}it does not send JSON", "Jolokia's agent"),
        (ok(b"[" * 100_000), f"{NO_JOLOKIA}it does not send JSON", "Jolokia's agent"),
        (ok(b"[]"), f"{NO_JOLOKIA}it does not send a response for each request", "Jolokia's agent"),
        (ok(b"{}"), f"{NO_JOLOKIA}it does not send a response for each request", "Jolokia's agent"),
        (ok(b"[1]"), f"{NO_JOLOKIA}its responses have no status", "Jolokia's agent"),
        (ok(b'{"error": "no bulk", "status": 403}'), "Jolokia reports: no bulk", "policy"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[", "closed the connection within its response", "try again"),
    ],
)
def test_what_is_no_jolokia_is_said(data: bytes, cause: str, fix: str) -> None:
    with port_that(says(data)) as address, pytest.raises(CommandError, match=cause) as caught:
        Jolokia(parse_address(address), 60).ask(ONE)
    assert fix in caught.value.fix


def test_a_port_that_is_closed_is_said() -> None:
    with pytest.raises(CommandError, match="refuses connections") as caught:
        Jolokia(parse_address(f"127.0.0.1:{free_port()}"), 60).ask(ONE)
    assert caught.value.fix.startswith("start the broker with kpybroker.metrics.port")


def test_a_name_that_does_not_exist_is_said() -> None:
    with pytest.raises(CommandError, match=r"the name kafka\.invalid cannot be resolved"):
        Jolokia(parse_address("kafka.invalid:9404"), 60).ask(ONE)


def test_tls_where_there_is_none_is_said() -> None:
    with (
        port_that(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")) as address,
        pytest.raises(CommandError, match="does not speak TLS"),
    ):
        Jolokia(parse_address(f"https://{address}"), 60).ask(ONE)


def is_silent(connection: socket.socket) -> None:
    """Reads until the client closes. A request may arrive in several pieces."""
    while connection.recv(1 << 20):
        pass


@pytest.mark.parametrize("serves", [is_silent, drips])
def test_a_response_that_does_not_end_is_given_up(serves: Callable[[socket.socket], None]) -> None:
    with port_that(serves) as address, pytest.raises(CommandError, match=r"did not respond within 0\.2 s"):
        Jolokia(parse_address(address), 0.2).ask(ONE)


def test_a_response_that_is_too_large_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jolokia, "RESPONSE_BYTES_MAX", 1 << 20)
    with port_that(drips) as address, pytest.raises(CommandError, match="sends more than 1 MiB at once"):
        Jolokia(parse_address(address), 60).ask(ONE)


def test_many_requests_are_sent_in_several_posts() -> None:
    with serving(FakeJolokia({"a:b=c": {"Value": 1}})) as fake:
        posts: list[int] = []

        def counted(requests: list[dict[str, str]]) -> tuple[int, bytes]:
            posts.append(len(requests))
            return 200, b"[%s]" % b",".join([b'{"status": 200}'] * len(requests))

        fake.replace = counted
        assert len(Jolokia(parse_address(fake.address), 60).ask(ONE * (REQUESTS_MAX + 1))) == REQUESTS_MAX + 1
        assert posts == [REQUESTS_MAX, 1]
