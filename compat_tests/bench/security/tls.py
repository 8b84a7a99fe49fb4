"""`make bench-tls`: produce and consume over TLS next to Kafka's, handshakes a second, memory of an idle connection.

    python -m compat_tests.bench.security.tls [--rounds 3] [--records 2000000] [--connections 500]

Both brokers have the same certificate (RSA, 2048 bits) and the same client, Kafka's own performance tools, and take
turns on one core; the client has the other one. A third broker decrypts what it receives, keeps nothing of it, and
responds: its rate to Kafka's is about the highest that a broker can have. For the consumer, how busy its core is says
the same: with a full core it reads no faster from any broker. Handshakes are `openssl s_time`, which is done
at once with each connection. Memory is what a broker holds with so many idle connections, less what it held before.
Exits with 1 when kpybroker misses a bar that the client has not filled its core for.
"""

from __future__ import annotations

import argparse
import re
import resource
import socket
import ssl
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from compat_tests.bench.limits import responses_only
from compat_tests.bench.load.clients import (
    Run,
    consumed_rate,
    consumer_performance,
    produced_reports,
    producer_performance,
)
from compat_tests.bench.measuring.brokers import (
    KIND_NAMES,
    Cores,
    compile_sources,
    pinned,
    scratch_directory,
    stock_broker,
    stock_zookeeper,
)
from compat_tests.bench.measuring.costs import come_to_rest, memory
from compat_tests.deps import ROOT
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker, Service
from compat_tests.support.tools import run_process
from kpybroker.wire.api import ApiKey
from kpybroker.wire.headers import RequestHeader, encode_request_header
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.ports import free_port

RATIO_MIN = 1.2
IDLE_KB_MAX = 100.0
RECORD_BYTES = 1000
ENDLESS = 1_000_000_000
WARM_UP_REPORTS, REPORTS = 3, 2
"""Of 5 s each: a JVM that still compiles is slower than any broker."""
WARM_SHARE = 0.6
FULL = 0.95
"""The share of its core from which a client is what limits the rate."""
CONSUMED_TOPIC = "bench-tls"
HANDSHAKE_SECONDS = 5
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
    pem, store = authority.issue("server")
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
        found[responses_only.READY] = responding(directory / "responds-only", pem, authority, cores)
        stack.callback(found[responses_only.READY].broker.service.kill)
        yield found


def responding(directory: Path, pem: Path, authority: Authority, cores: Cores) -> Side:
    """The broker that only responds, with its two ports: topics are made on the plain one."""
    side = Side(Broker(responses_only.READY, directory, None, {}), authority)
    ports = [str(side.broker.port), str(side.port), str(pem)]
    command = pinned(cores.broker, [sys.executable, "-m", responses_only.__name__, *ports])
    side.broker.service = Service(responses_only.READY, command, ROOT)
    side.broker.service.log_file = directory / "responds-only.log"
    side.broker.service.start(lambda output: responses_only.READY in output)
    return side


def fill_values(side: Side, records: int) -> None:
    """The topic that is read, on the plain listener."""
    create_topic(side.broker.bootstrap, CONSUMED_TOPIC)
    run_process(producer_performance(side.broker.bootstrap, CONSUMED_TOPIC, records, RECORD_BYTES, {"acks": 1}))


def client_file(directory: Path, authority: Authority) -> Path:
    file = directory / "client.properties"
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={authority.certificate}\n"
    file.write_text(f"security.protocol=SSL\n{trust}")
    return file


@dataclass(frozen=True, slots=True)
class Rate:
    """MB of record values a second, the broker's CPU seconds per GB, and how much of its core the client uses."""

    mb_per_s: float
    cpu: float
    client: float = 0.0

    @staticmethod
    def median(rates: Sequence[Rate]) -> Rate:
        fields = [(rate.mb_per_s, rate.cpu, rate.client) for rate in rates]
        return Rate(*(statistics.median(values) for values in zip(*fields, strict=True)))

    def __str__(self) -> str:
        return f"{self.mb_per_s:,.1f} ({self.cpu:.1f} s)"


def produced(side: Side, name: str, file: Path, core: tuple[int, ...]) -> Rate:
    """Of a producer whose JVM is warm."""
    here = Run(side.broker, core, name, 1.0)
    command = producer_performance(side.address, name, ENDLESS, RECORD_BYTES, {"acks": 1, "linger.ms": 5})
    with here.own_topic(), here.running([*command, "--producer.config", str(file)]) as client:
        reports = produced_reports(client)
        for _ in range(WARM_UP_REPORTS):
            next(reports)
        began_s, before = time.monotonic(), here.cpu()
        megabytes = sum(next(reports) for _ in range(REPORTS)) * RECORD_BYTES / 1e6
        return Rate(megabytes / (time.monotonic() - began_s), (here.cpu() - before) / megabytes * 1000)


def consumed(side: Side, records: int, file: Path, core: tuple[int, ...]) -> Rate:
    """Of a consumer once its JVM is warm; CPU is for all that it reads, from the start of its JVM."""
    here = Run(side.broker, core, CONSUMED_TOPIC, 1.0)
    before, before_client, began_s = here.cpu(), _ended_clients_cpu(), time.monotonic()
    command = consumer_performance(side.address, CONSUMED_TOPIC, records, detailed=True)
    rate = consumed_rate(here.client([*command, "--consumer.config", str(file)]), records * WARM_SHARE)
    client = (_ended_clients_cpu() - before_client) / (time.monotonic() - began_s)
    return Rate(rate * RECORD_BYTES / 1e6, (here.cpu() - before) / (records * RECORD_BYTES / 1e9), client)


def _ended_clients_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--connections", type=int, default=500)
    options = parser.parse_args()
    compile_sources()
    cores = Cores.apart()
    with scratch_directory(None) as directory, sides(directory, cores) as found:
        file = client_file(directory, found["kafka"].authority)
        served = [kind for kind in found if kind != responses_only.READY]
        for kind in served:
            fill_values(found[kind], options.records)
        written: dict[str, list[Rate]] = {kind: [] for kind in found}
        read: dict[str, list[Rate]] = {kind: [] for kind in served}
        for number in range(options.rounds):
            for kind in found:
                written[kind].append(produced(found[kind], f"round-{number}", file, cores.client))
            for kind in served:
                read[kind].append(consumed(found[kind], options.records, file, cores.client))
        idle = {kind: idle_kilobytes(found[kind], options.connections) for kind in served}
        shaken = {kind: handshakes(found[kind], cores.client) for kind in served}
    print(
        "| over TLS | produce, MB/s (CPU a GB) | consume, MB/s (CPU a GB) | handshakes/s | KB of an idle connection |"
    )
    print("|---|---|---|---|---|")
    most = {kind: (Rate.median(written[kind]), Rate.median(read[kind])) for kind in served}
    for kind, (to, of) in most.items():
        print(f"| {KIND_NAMES[kind]} | {to} | {of} | {shaken[kind]:,.0f} | {idle[kind]:,.0f} |")
    ceiling = Rate.median(written[responses_only.READY])
    print(f"| a broker that decrypts, and only responds | {ceiling} | | | |")
    ratios = [ours.mb_per_s / theirs.mb_per_s for ours, theirs in zip(most["kpybroker"], most["kafka"], strict=True)]
    print(f"kpybroker to Kafka: produce {ratios[0]:.2f}, consume {ratios[1]:.2f} (bar {RATIO_MIN})")
    print(f"the broker that only responds to Kafka: produce {ceiling.mb_per_s / most['kafka'][0].mb_per_s:.2f}")
    busy = {kind: most[kind][1].client for kind in served}
    shares = ", ".join(f"{share:.0%} with {KIND_NAMES[kind]}" for kind, share in busy.items())
    print(f"the consumer's core is busy: {shares} (full from {FULL:.0%})")
    has_missed = ratios[0] < RATIO_MIN or (ratios[1] < RATIO_MIN and busy["kpybroker"] < FULL)
    return int(has_missed or idle["kpybroker"] > IDLE_KB_MAX)


if __name__ == "__main__":
    sys.exit(main())
