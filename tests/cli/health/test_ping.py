"""`kpybroker ping`: what it says of a broker, of what is none, and of one that starts late."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from kpybroker.broker.requests.served.apis import SERVED, listed_for
from kpybroker.cli.health.no_broker import NoBroker
from kpybroker.cli.health.ping import PAUSE_S, RESPONSE_BYTES_MAX, count_apis, parse_address, wait_until
from tests.cli.test_main import finish, ready, two_lines
from tests.support.network.ports import free_port

TIMEOUT_S = 20.0


@contextmanager
def responding(*pieces: bytes) -> Iterator[int]:
    """A server that reads one request, sends `pieces` and closes; its port."""

    def serve() -> None:
        with server, server.accept()[0] as connection:
            connection.recv(1000)
            for piece in pieces:
                connection.sendall(piece)

    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    yield server.getsockname()[1]
    thread.join()


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def test_a_broker_responds(tmp_path: Path) -> None:
    with ready("dev", "--port", "0", "--data-dir", str(tmp_path)) as (_, host, port):
        address = f"{host}:{port}"
        assert finish("ping", address) == (0, f"{address} responds and serves {len(listed_for(SERVED, ''))} APIs\n", "")


def test_it_waits_for_a_broker_that_starts_later(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "kpybroker", "ping", "--wait", "60", f"localhost:{port}"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting,
        ready("dev", "--port", str(port), "--data-dir", str(tmp_path)),
    ):
        out, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, out.split(" and ")[0]) == (0, f"localhost:{port} responds")


def test_nothing_listens() -> None:
    code, out, err = finish("ping", f"127.0.0.1:{free_port()}")
    assert (code, out) == (1, "")
    cause, fix = two_lines(err)
    assert "refuses connections" in cause
    assert "start the broker" in fix


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:65536", "a:b"])
def test_an_address_without_host_and_port_is_a_bad_option(address: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not HOST:PORT, such as 127\.0\.0\.1:9092"):
        parse_address(address)


def test_an_ipv6_address_is_in_brackets() -> None:
    assert parse_address("[::1]:9092") == ("::1", 9092)


def test_a_response_may_arrive_in_pieces() -> None:
    two_apis = bytes(4) + bytes(2) + (2).to_bytes(4, "big") + bytes(12)
    response = framed(two_apis)
    with responding(response[:2], response[2:7], response[7:]) as port:
        assert count_apis("127.0.0.1", port, TIMEOUT_S) == 2


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not respond as a Kafka broker does: it speaks HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x32", "does not respond as a Kafka broker does: it speaks TLS"),
        (framed(b"\0\0"), "does not respond as a Kafka broker does"),
        (framed(bytes(10)), "error code 0, 0 APIs"),
        (framed(bytes(4) + b"\0\x23" + bytes(4)), "error code 35, 0 APIs"),
        (framed(bytes(100))[:50], "closed the connection without a response"),
        (b"", "closed the connection without a response"),
    ],
)
def test_what_responds_is_no_broker(response: bytes, cause: str) -> None:
    with responding(response) as port, pytest.raises(NoBroker) as caught:
        count_apis("127.0.0.1", port, TIMEOUT_S)
    assert cause in caught.value.cause
    assert "--command-config FILE" in caught.value.fix


def test_a_response_is_bounded() -> None:
    with responding((RESPONSE_BYTES_MAX + 1).to_bytes(4, "big")) as port, pytest.raises(NoBroker):
        count_apis("127.0.0.1", port, TIMEOUT_S)


def test_a_server_that_accepts_and_never_responds_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(NoBroker) as caught:
        count_apis("127.0.0.1", deaf.getsockname()[1], 0.05)
    assert "did not respond within 0.05 s" in caught.value.cause


def test_an_attempt_is_repeated_until_the_time_is_over() -> None:
    moments = iter(range(100))
    pauses: list[float] = []

    def attempt() -> int:
        raise NoBroker(f"attempt {len(pauses) + 1}", "")

    with pytest.raises(NoBroker, match="attempt 3"):
        wait_until(attempt, 3.0, lambda: float(next(moments)), pauses.append)
    assert pauses == [PAUSE_S, PAUSE_S]
