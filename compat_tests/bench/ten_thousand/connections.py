"""Ten thousand connections that say nothing: how fast they are accepted, what one holds, what a hot producer loses."""

from __future__ import annotations

import resource
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat_tests.bench.load.clients import Run
from compat_tests.bench.load.workloads import RAW_BATCH
from compat_tests.bench.ten_thousand import tls_alone
from compat_tests.bench.ten_thousand.scene import OURS, Bound, Figures, Place, Scene, resident_kb
from compat_tests.support.services import Broker
from kpybroker.wire.api import ApiKey
from kpybroker.wire.headers import RequestHeader, encode_request_header
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.ports import free_port

REQUESTS = 20_000
ROUNDS = 3
TIMEOUT_S = 60.0
ROOM = {"max.connections": "100000", "connections.max.idle.ms": "3600000"}

PLAIN_BOUNDS = (
    Bound("accepted, a second", "1/s", least=2000.0),
    Bound("memory of one", "KB", most=7.0),
    Bound("16 KB batches with them, to without", "", least=0.9),
)
TLS_BOUNDS = (
    Bound("accepted, a second", "1/s"),
    Bound("memory of one", "KB", most=20.0),
    Bound("of it the ssl module's alone", "KB"),
)


def scenes(quick: bool) -> list[Scene]:
    sizes = (20, 100) if quick else (100, 1000, 10_000)
    return [
        Scene("connections", sizes, PLAIN_BOUNDS, plain),
        Scene("TLS connections", sizes, TLS_BOUNDS, encrypted),
    ]


def plain(place: Place) -> Figures:
    with place.broker(ROOM) as broker:
        before = _rate(broker, place)
        before_kb = resident_kb(broker)
        with idle(broker.port, place.size, None) as seconds:
            held_kb = resident_kb(broker) - before_kb
            with_them = _rate(broker, place)
        return {
            "accepted, a second": place.size / seconds,
            "memory of one": held_kb / place.size,
            "16 KB batches with them, to without": with_them / before,
        }


def encrypted(place: Place) -> Figures:
    place.directory.mkdir(parents=True, exist_ok=True)
    authority = Authority(place.directory / "certificates")
    pem, store = authority.issue("server")
    with place.broker(ROOM, (port := free_port(), str(store), PASSWORD)) as broker:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        with idle(port, 1, context):
            before_kb = resident_kb(broker)
        with idle(port, place.size, context) as seconds:
            held_kb = resident_kb(broker) - before_kb
        figures = {"accepted, a second": place.size / seconds, "memory of one": held_kb / place.size}
        if place.kind == OURS:
            figures["of it the ssl module's alone"] = _alone_kb(pem, authority.certificate, place.size)
        return figures


def _alone_kb(pem: Path, authority: Path, count: int) -> float:
    command = (sys.executable, "-m", tls_alone.__name__, str(pem), str(authority), str(count))
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _rate(broker: Broker, place: Place) -> float:
    """MB/s of a raw producer, the median of some."""
    rates = []
    for number in range(ROUNDS):
        here = Run(broker, place.cores.client, f"hot-{number}", 1.0)
        with here.own_topic():
            produced = here.raw(in_flight=8, requests=int(place.seconds(REQUESTS)), **RAW_BATCH)
        rates.append(produced["megabytes"] / produced["seconds"])
    return statistics.median(rates)


@contextmanager
def idle(port: int, count: int, context: ssl.SSLContext | None) -> Iterator[float]:
    """Connections that have asked for the API versions, as every client does first; the seconds that all of them took.

    Each is there when it has its response: what only waits in the socket's queue is not accepted.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, 1, "idle"))
    frame = len(header).to_bytes(4, "big") + header
    opened: list[socket.socket] = []
    begin = time.perf_counter()
    try:
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
            opened.append(connection)
            if context is not None:
                connection = opened[-1] = context.wrap_socket(connection, server_hostname="127.0.0.1")
            connection.sendall(frame)
        for connection in opened:
            assert connection.recv(1 << 16), "an idle connection was refused"
        yield time.perf_counter() - begin
    finally:
        for connection in opened:
            connection.close()
