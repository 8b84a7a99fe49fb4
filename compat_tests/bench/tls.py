"""`make bench-tls`: produce and consume over TLS next to Kafka's, handshakes a second, memory of an idle connection.

    python -m compat_tests.bench.tls [--rounds 3] [--records 200000] [--connections 500]

Both brokers have the same certificate (RSA, 2048 bits) and the same client, Kafka's own performance tools, and take
turns on one core; the client has the other one. Handshakes are `openssl s_time`, which is done at once with each
connection. Memory is what a broker holds with so many idle connections, less what it held before. Exits with 1 when
kpybroker misses a bar.
"""

from __future__ import annotations

import argparse
import re
import socket
import ssl
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from compat_tests.bench.brokers import (
    KIND_NAMES,
    Cores,
    compile_sources,
    pinned,
    scratch_directory,
    stock_broker,
    stock_zookeeper,
)
from compat_tests.bench.clients import Consumed, consumer_performance, producer_performance
from compat_tests.bench.costs import come_to_rest, memory
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process
from kpybroker.wire.api import ApiKey
from kpybroker.wire.headers import RequestHeader, encode_request_header
from tests.support.certificates import PASSWORD, Authority
from tests.support.ports import free_port

RATIO_MIN = 1.2
IDLE_KB_MAX = 100.0
RECORD_BYTES = 1000
HANDSHAKE_SECONDS = 5
PRODUCED = re.compile(r"([\d.]+) records/sec")
REAL = re.compile(r"(\d+) connections in (\d+) real seconds")


class Side:
    """A broker with a TLS listener, and the files that a client needs."""

    def __init__(self, broker: Broker, authority: Authority) -> None:
        self.broker = broker
        self.authority = authority
        self.port = free_port()
        broker.configure({"listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SSL://127.0.0.1:{self.port}"})

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def sides(directory: Path, cores: Cores) -> Iterator[dict[str, Side]]:
    authority = Authority(directory / "certificates")
    _, store = authority.issue("server")
    keys = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(store), "ssl.keystore.password": PASSWORD}
    keys["ssl.key.password"] = PASSWORD
    zookeeper = stock_zookeeper(directory / "zookeeper", cores.client)
    with ExitStack() as stack:
        stack.callback(zookeeper.stop)
        zookeeper.start()
        found: dict[str, Side] = {}
        for kind, connect in (("kafka", zookeeper.connect), ("kpybroker", None)):
            found[kind] = Side(stock_broker(kind, directory / kind, connect, cores.broker, keys), authority)
            stack.callback(found[kind].broker.service.kill)
            found[kind].broker.start()
        yield found


def client_file(directory: Path, authority: Authority) -> Path:
    file = directory / "client.properties"
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={authority.certificate}\n"
    file.write_text(f"security.protocol=SSL\n{trust}")
    return file


def throughput(side: Side, topic: str, records: int, file: Path, core: tuple[int, ...]) -> tuple[float, float]:
    """(written, read) records a second."""
    create_topic(side.broker.bootstrap, topic)
    produce = producer_performance(side.address, topic, records, RECORD_BYTES, {"acks": 1, "linger.ms": 5})
    written = PRODUCED.findall(run_process(pinned(core, [*produce, "--producer.config", str(file)])).out)
    consume = consumer_performance(side.address, topic, records)
    read = Consumed.read(run_process(pinned(core, [*consume, "--consumer.config", str(file)])).out)
    assert read.count >= records
    return float(written[-1]), read.records_per_s


def handshakes(side: Side, core: tuple[int, ...]) -> float:
    """New connections a second."""
    command = ["openssl", "s_time", "-connect", side.address, "-new", "-time", str(HANDSHAKE_SECONDS)]
    out = run_process(pinned(core, [*command, "-CAfile", str(side.authority.certificate)])).out
    count, seconds = REAL.search(out).groups()  # type: ignore[union-attr]
    return int(count) / int(seconds)


def idle_kilobytes(side: Side, connections: int) -> float:
    """What each of so many connections costs that have asked for the API versions."""
    pid = side.broker.service.pid
    context = ssl.create_default_context(cafile=str(side.authority.certificate))
    frame = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, 1, "idle"))
    come_to_rest([pid])
    before = memory(pid).rss
    with ExitStack() as stack:
        for _ in range(connections):
            plain = socket.create_connection(("127.0.0.1", side.port), 30)
            stream = stack.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
            stream.sendall(len(frame).to_bytes(4, "big") + frame)
            assert stream.recv(4)
        come_to_rest([pid])
        return (memory(pid).rss - before) * 1000 / connections


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--connections", type=int, default=500)
    options = parser.parse_args()
    compile_sources()
    cores = Cores.apart()
    with scratch_directory(None) as directory, sides(directory, cores) as found:
        file = client_file(directory, found["kafka"].authority)
        rates: dict[str, list[tuple[float, float]]] = {kind: [] for kind in found}
        for number in range(options.rounds + 1):  # the first one warms up
            for kind, side in found.items():
                measured = throughput(side, f"round-{number}", options.records, file, cores.client)
                if number:
                    rates[kind].append(measured)
        idle = {kind: idle_kilobytes(side, options.connections) for kind, side in found.items()}
        shaken = {kind: handshakes(side, cores.client) for kind, side in found.items()}
    print("| over TLS | produce, records/s | consume, records/s | handshakes/s | KB of an idle connection |")
    print("|---|---|---|---|---|")
    middle = {kind: [statistics.median(column) for column in zip(*rates[kind], strict=True)] for kind in rates}
    for kind, (written, read) in middle.items():
        print(f"| {KIND_NAMES[kind]} | {written:,.0f} | {read:,.0f} | {shaken[kind]:,.0f} | {idle[kind]:,.0f} |")
    ratios = [ours / theirs for ours, theirs in zip(middle["kpybroker"], middle["kafka"], strict=True)]
    print(f"kpybroker to Kafka: produce {ratios[0]:.2f}, consume {ratios[1]:.2f} (bar {RATIO_MIN})")
    return int(min(ratios) < RATIO_MIN or idle["kpybroker"] > IDLE_KB_MAX)


if __name__ == "__main__":
    sys.exit(main())
