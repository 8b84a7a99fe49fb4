"""Every door of the product over real sockets, with one table of attacks: metrics, Jolokia, control, console, registry.

And the pure rules, for doors that a development broker does not have.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from kpybroker.http.doors import ANY_NAME, Door, is_loopback, names_of, refusal
from tests.http.attacks import ATTACKS, HALF_HEADS, LET_IN, Attack

START_S = 180.0
DOORS = ("metrics", "jolokia", "control", "console", "registry")
PATHS = {"metrics": "/metrics", "jolokia": "/jolokia", "control": "/v1", "console": "/login", "registry": "/subjects"}
CROWD = 600
"""More than any of the doors has seats for."""


class Place(NamedTuple):
    """Where a door is, and a path behind it that can be read."""

    host: str
    port: int
    path: str

    def request(self, verb: str, headers: tuple[tuple[str, str], ...], body: bytes = b"") -> bytes:
        """`{own}` in a header is the origin of a page of this door."""
        own = f"http://{self.host}:{self.port}"
        given = {"Host": f"{self.host}:{self.port}", "Connection": "close"} | dict(headers)
        lines = [f"{verb} {self.path} HTTP/1.1", *(f"{k}: {v}".replace("{own}", own) for k, v in given.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1") + body

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=START_S)

    def send(self, data: bytes) -> bytes:
        """Everything that is received until the door closes."""
        with self.connect() as sock:
            sock.sendall(data)
            return read_to_end(sock)

    def status(self, verb: str, headers: tuple[tuple[str, str], ...] = (), body: bytes = b"") -> int:
        return int(self.send(self.request(verb, headers, body)).split()[1])


def read_to_end(sock: socket.socket) -> bytes:
    found = b""
    try:
        while piece := sock.recv(65536):
            found += piece
    except ConnectionError:
        pass
    return found


@pytest.fixture(scope="module")
def doors() -> Iterator[dict[str, Place]]:
    """All of them, of one development broker."""
    command = [sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--ephemeral", "--log-format", "json"]
    options = ["--control", "0", "--console", "0", "--registry", "0", "--override", "kpybroker.metrics.port=0"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            urls = {**ready, "metrics": ready["metrics"][0], "jolokia": ready["metrics"][0]}
            places = {}
            for name in DOORS:
                parts = urlsplit(urls[name])
                assert parts.hostname is not None
                assert parts.port is not None
                places[name] = Place(parts.hostname, parts.port, PATHS[name])
            yield places
        finally:
            process.terminate()
            process.communicate()


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.verb} {attack.kind}")
def test_attacks_are_refused(doors: dict[str, Place], name: str, attack: Attack) -> None:
    assert doors[name].status(attack.verb, attack.headers) == attack.status


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("headers", LET_IN, ids=str)
def test_programs_and_people_are_let_in(
    doors: dict[str, Place], name: str, headers: tuple[tuple[str, str], ...]
) -> None:
    assert doors[name].status("GET", headers) == 200


@pytest.mark.parametrize("name", DOORS)
def test_a_body_that_no_header_announces_is_cut_off(doors: dict[str, Place], name: str) -> None:
    kind = "application/x-www-form-urlencoded" if name == "console" else "application/json"
    headers = (("Content-Type", kind), ("Transfer-Encoding", "chunked"))
    piece = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    sent = 0
    with doors[name].connect() as sock:
        sock.sendall(doors[name].request("POST", headers))
        try:
            while sent < 1 << 30:
                sock.sendall(piece)
                sent += len(piece)
        except ConnectionError:
            pass
    assert sent < 1 << 30
    assert doors[name].status("GET") == 200


@pytest.mark.parametrize("name", DOORS)
def test_a_head_without_an_end_is_refused(doors: dict[str, Place], name: str) -> None:
    head = doors[name].request("GET", ()).removesuffix(b"\r\n\r\n") + b"\r\nX: " + b"x" * (1 << 20)
    assert doors[name].send(head)[:10] in (b"HTTP/1.1 4", b"")  # nothing: reset while it was sent
    assert doors[name].status("GET") == 200


@pytest.mark.parametrize("name", DOORS)
def test_a_crowd_that_says_nothing_keeps_no_one_out(doors: dict[str, Place], name: str) -> None:
    """Half heads, in more connections than there are seats; requests before and after get responses, each at once."""
    crowd = []
    try:
        for number in range(CROWD):
            crowd.append(doors[name].connect())
            crowd[-1].sendall(HALF_HEADS[number % len(HALF_HEADS)])
            if number % 100 == 0:
                assert doors[name].status("GET") == 200
        assert doors[name].status("GET") == 200
    finally:
        for sock in crowd:
            sock.close()


def test_half_a_request_is_not_waited_for(doors: dict[str, Place]) -> None:
    """Each way to stop in the middle of a head, at each door at once: all are closed by the door."""
    half = [(name, data) for name in DOORS for data in HALF_HEADS]
    socks = [doors[name].connect() for name, _ in half]
    try:
        for sock, (_, data) in zip(socks, half, strict=True):
            sock.sendall(data)
        end = time.monotonic() + START_S
        for sock, (name, data) in zip(socks, half, strict=True):
            sock.settimeout(max(0.1, end - time.monotonic()))
            assert read_to_end(sock) == b"", (name, data)
    finally:
        for sock in socks:
            sock.close()


# --- the rules alone


@pytest.mark.parametrize(
    ("host", "allowed", "asked", "status"),
    [
        ("0.0.0.0", (), "machine:1", None),
        ("0.0.0.0", (), "kafka", 421),
        ("0.0.0.0", ("kafka",), "Kafka.:9404", None),
        ("0.0.0.0", (ANY_NAME,), "anything.example", None),
        ("::", (), "[2001:db8::1]:9404", None),
        ("broker.example", (), "broker.example", None),
        ("broker.example", (), "sub.broker.example", 421),
        ("broker.example", (), "broker.example.evil.example", 421),
    ],
)
def test_the_names_of_a_server(host: str, allowed: tuple[str, ...], asked: str, status: int | None) -> None:
    found = refusal(Door(names_of(host, "Machine", allowed)), "GET", "/", {"host": asked})
    assert (None if found is None else found.status) == status


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("http://here", "here", True),
        ("http://here", "HERE:80", True),
        ("http://here:80", "here", True),
        ("https://here", "here:443", True),
        ("http://here", "here:443", False),
        ("https://here", "here:80", False),
        ("http://here", "here:8080", False),
        ("http://here:8080", "here:80", False),
        ("http://here:80:80", "here", False),
        ("http://", ":80", False),
        ("null", "null", False),
    ],
)
def test_a_page_of_the_same_origin(origin: str, host: str, is_own: bool) -> None:
    door = Door(frozenset((ANY_NAME,)))
    assert (refusal(door, "POST", "/", {"host": host, "origin": origin}) is None) is is_own


def test_what_may_be_read_by_any_name_is_only_read() -> None:
    door = Door(frozenset(), reads_by_any_name=frozenset(("/metrics",)))
    asked = {"host": "kafka.namespace.svc:9404"}
    assert refusal(door, "GET", "/metrics", asked) is None
    for verb, path in (("POST", "/metrics"), ("GET", "/jolokia"), ("GET", "/metrics/../jolokia"), ("GET", "//metrics")):
        found = refusal(door, verb, path, asked)
        assert found is not None
        assert found.status == 421
    assert refusal(door, "GET", "/metrics", {**asked, "sec-fetch-site": "cross-site"}) is not None


def test_a_refusal_quotes_little_and_escapes_it() -> None:
    for headers in (
        {"host": "\x1b[31m\n" + "x" * 10_000},
        {"content-type": "\xff\n" + "x" * 10_000, "content-length": "1"},
    ):
        found = refusal(Door(frozenset()), "POST", "/", headers)
        assert found is not None
        assert len(found.cause) < 200
        assert found.cause.isprintable()
        assert found.cause.isascii()


@pytest.mark.parametrize(
    ("host", "is_own"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("", False)],
)
def test_loopback(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own
