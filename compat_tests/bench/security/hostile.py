"""`make bench-hostile`: what a client notices of half-open TLS handshakes, of wrong logins, and of crowds.

    python -m compat_tests.bench.security.hostile [--seconds 60] [--rate 2000] [--kinds kpybroker,kafka] [--shared]
    python -m compat_tests.bench.security.hostile --crowds [--seconds 20]

The client produces one record after the other over SASL_SSL, 50 a second; its latency is measured without an attack and
with each of the two at `--rate` a minute. Attackers hold up to 2 000 half-open handshakes at once. Broker and clients
have a core each. The attacker shares that of the client and gives way to it: what it computes itself is no part of
what the client waits for. `--shared` pins nothing. Memory is that of the broker's process, before all attacks, at its
highest, and after them. Exits with 1 when kpybroker's p99 under attack is twice
its usual one or more.

With `--crowds` both brokers run at once, and the attackers are crowds (`compat_tests.overload.crowds`) on a plain
listener, one broker's after the other's. The client, from an address of its own, asks for the metadata of a topic
again and again. Exits with 1 when it waits longer for kpybroker than for Kafka (p99); where the crowd is one
connection, when it waits more than five times as long as usual.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, NamedTuple

from confluent_kafka import Producer

from compat_tests.bench.measuring.brokers import (
    KIND_NAMES,
    Cores,
    both_brokers,
    compile_sources,
    pinned,
    scratch_directory,
    stock_broker,
    stock_zookeeper,
)
from compat_tests.bench.measuring.costs import come_to_rest, memory, peak_rss_mb
from compat_tests.overload.crowds import PARTITIONS
from compat_tests.overload.crowds import latencies as crowd_latencies
from compat_tests.support.quick import create_topic
from compat_tests.support.security.secured import librdkafka_login, secured_keys
from compat_tests.support.services import Broker
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port

ATTACKS: Final = ("half-open", "wrong-login")
RATIO_MAX: Final = 2.0
PRODUCES_A_SECOND: Final = 50
VALUE: Final = b"x" * 100
WARM_UP_S: Final = 5.0
WAIT_S: Final = 60.0
TOPIC: Final = "hostile"


class Side(NamedTuple):
    """A broker with its SASL_SSL listener."""

    broker: Broker
    port: int
    authority: Authority


class Latency(NamedTuple):
    """Of one-record produces, in milliseconds, and how many attacks there were at the same time."""

    p50: float
    p99: float
    worst: float
    attacks: int


@contextmanager
def side(kind: str, directory: Path, cores: Cores) -> Iterator[Side]:
    """A broker that runs."""
    authority, port = Authority(directory / "certificates"), free_port()
    with ExitStack() as stack:
        connect = None
        if kind == "kafka":
            zookeeper = stock_zookeeper(directory / "zookeeper", cores.client)
            stack.callback(zookeeper.stop)
            zookeeper.start()
            connect = zookeeper.connect
        broker = stock_broker(kind, directory / kind, connect, cores.broker, {})
        broker.configure(secured_keys(broker.port, port, authority))
        stack.callback(broker.service.kill)
        broker.start()
        create_topic(broker.bootstrap, TOPIC)
        yield Side(broker, port, authority)


@contextmanager
def under(attack: str | None, of: Side, rate: float, cores: Cores) -> Iterator[list[int]]:
    """An attack for the length of the block; the list has how many there were, after it."""
    counts: list[int] = []
    if attack is None:
        yield counts
        return
    command = ["nice", "-n", "19", sys.executable, "-m", "compat_tests.overload.attacks"]
    command += [attack, "127.0.0.1", str(of.port)]
    command += [str(of.authority.certificate), "--rate", str(rate)]
    with subprocess.Popen(
        pinned(cores.client, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as attacker:
        try:
            yield counts
            out, _ = attacker.communicate("", timeout=WAIT_S)
            counts.append(int(out))
        finally:
            attacker.kill()


def latencies(producer: Any, seconds: float) -> list[float]:
    """Milliseconds of each record from the call to its acknowledgement."""
    found: list[float] = []
    begin = time.perf_counter()
    number = 0
    while time.perf_counter() - begin < seconds:
        started = time.perf_counter()
        errors: list[Any] = []
        producer.produce(TOPIC, VALUE, on_delivery=lambda error, _, errors=errors: errors.append(error))
        assert producer.flush(WAIT_S) == 0, f"no acknowledgement within {WAIT_S:g} s"
        assert errors == [None], errors
        found.append((time.perf_counter() - started) * 1000)
        number += 1
        time.sleep(max(0.0, begin + number / PRODUCES_A_SECOND - time.perf_counter()))
    return found


def measured(attack: str | None, of: Side, options: argparse.Namespace, cores: Cores) -> Latency:
    """The client is logged in before the attack begins."""
    producer = Producer({**librdkafka_login(f"127.0.0.1:{of.port}", of.authority), "linger.ms": 0, "acks": "1"})
    latencies(producer, WARM_UP_S)
    with under(attack, of, options.rate, cores) as counts:
        if attack is not None:
            latencies(producer, WARM_UP_S)  # until the attack is at its height
        found = latencies(producer, options.seconds)
    cuts = quantiles(found, n=100)
    return Latency(cuts[49], cuts[98], max(found), sum(counts))


CROWDS: Final = (("metadata", 1, 1_000_000), ("metadata", 1_000, 1_000), ("offsets", 1_000, 10), ("fetch", 1_500, 1))
"""Kind, connections, requests on each. What the last one has sent is served for a while after it has left."""
CROWDED_TOPIC: Final = "crowded"
ONE_RATIO_MAX: Final = 5.0
PAUSE_S: Final = 0.005


@contextmanager
def crowding(address: tuple[str, int], crowd: tuple[str, int, int], cores: Cores) -> Iterator[list[int]]:
    """A crowd for the length of the block; the list has how many responses it received, after it."""
    kind, connections, pipelined = crowd
    command = ["nice", "-n", "19", sys.executable, "-m", "compat_tests.overload.crowds", kind, *map(str, address)]
    command += [CROWDED_TOPIC, "--connections", str(connections), "--pipelined", str(pipelined)]
    counts: list[int] = []
    with subprocess.Popen(
        pinned(cores.client, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as attacker:
        try:
            assert attacker.stdout is not None
            assert attacker.stdout.readline(), "the crowd could not connect"
            yield counts
            out, _ = attacker.communicate("", timeout=WAIT_S)
            counts.append(int(out))
        finally:
            attacker.kill()


def under_crowds(options: argparse.Namespace, cores: Cores) -> int:
    """A row for each crowd and broker."""
    print("| crowd | broker | p50, ms | p99, ms | worst, ms | p99 to usual | responses to the crowd |")
    print("|---|---|---|---|---|---|---|")
    is_missed = False
    with scratch_directory(None) as directory, both_brokers(directory, cores) as brokers:
        usual: dict[str, float] = {}
        for kind, broker in brokers.items():
            create_topic(broker.bootstrap, CROWDED_TOPIC, partitions=PARTITIONS)
            create_topic(broker.bootstrap, TOPIC)
            address = ("127.0.0.1", broker.port)
            crowd_latencies(address, TOPIC, WARM_UP_S, PAUSE_S)
            usual[kind] = _crowd_row("none", kind, crowd_latencies(address, TOPIC, options.seconds, PAUSE_S), 0, None)
        for crowd in CROWDS:
            p99: dict[str, float] = {}
            for kind, broker in brokers.items():
                address = ("127.0.0.1", broker.port)
                with crowding(address, crowd, cores) as counts:
                    found = crowd_latencies(address, TOPIC, options.seconds, PAUSE_S)
                name = f"{crowd[0]}, {crowd[1]} x {crowd[2]}"
                p99[kind] = _crowd_row(name, kind, found, sum(counts), usual[kind])
            is_one = crowd[1] == 1
            is_missed |= p99["kpybroker"] > (ONE_RATIO_MAX * usual["kpybroker"] if is_one else p99["kafka"])
    return int(is_missed)


def _crowd_row(name: str, kind: str, found: list[float], responses: int, usual: float | None) -> float:
    cuts = quantiles(found, n=100) if len(found) > 1 else found * 99
    ratio = 1.0 if usual is None else cuts[98] / usual
    times = f"{cuts[49]:.2f} | {cuts[98]:.2f} | {max(found):.1f} | {ratio:.1f}"
    print(f"| {name} | {KIND_NAMES[kind]} | {times} | {responses} |", flush=True)
    return cuts[98]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=2_000, help="attacks a minute")
    parser.add_argument("--kinds", default="kpybroker,kafka")
    parser.add_argument("--shared", action="store_true", help="pin nothing")
    parser.add_argument("--crowds", action="store_true", help="the crowds, and nothing else")
    options = parser.parse_args()
    compile_sources()
    cores = Cores.shared() if options.shared else Cores.apart()
    if options.crowds:
        return under_crowds(options, cores)
    print(
        "| broker | attack | p50, ms | p99, ms | worst, ms | p99 to usual | attacks | memory, MB: before, most, after |"
    )
    print("|---|---|---|---|---|---|---|---|")
    worst = 0.0
    for kind in options.kinds.split(","):
        with scratch_directory(None) as directory, side(kind, directory, cores) as of:
            ratios = list(_rows(kind, of, options, cores))
            worst = max(worst, *ratios) if kind == "kpybroker" else worst
    print(f"kpybroker's p99 under attack to its usual one: {worst:.2f} (bar: below {RATIO_MAX:g})")
    return int(worst >= RATIO_MAX)


def _rows(kind: str, of: Side, options: argparse.Namespace, cores: Cores) -> Iterator[float]:
    """Print a row for each attack; what its p99 is to the usual one."""
    pid = of.broker.service.pid
    usual = measured(None, of, options, cores)
    before = memory(pid).rss
    _print(kind, "none", usual, usual, f"{before:.0f}")
    for attack in ATTACKS:
        found = measured(attack, of, options, cores)
        come_to_rest([pid])
        _print(kind, attack, found, usual, f"{before:.0f}, {peak_rss_mb(pid):.0f}, {memory(pid).rss:.0f}")
        yield found.p99 / usual.p99


def _print(kind: str, attack: str, found: Latency, usual: Latency, megabytes: str) -> None:
    times = f"{found.p50:.2f} | {found.p99:.2f} | {found.worst:.1f} | {found.p99 / usual.p99:.2f}"
    print(f"| {KIND_NAMES[kind]} | {attack} | {times} | {found.attacks} | {megabytes} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
